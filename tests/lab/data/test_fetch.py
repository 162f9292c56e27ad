"""Downloads, against a server in this process."""

import hashlib
import tarfile
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from filelock import FileLock
from support.data_folders import cifar10 as fabricated

from focalcal.lab.data import DataSetError, fetch_data_set, load_data
from focalcal.lab.data.catalogue import CATALOGUE, CatalogueEntry, Remote
from focalcal.lab.data.fetch import fetch

CONTENT = bytes(range(256)) * 4000


class Server(ThreadingHTTPServer):
    """Serves CONTENT; `breaks` is how many answers stop half-way."""

    content, breaks, ranges = CONTENT, 0, True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked = []


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        server.asked.append(self.headers.get("Range"))
        if self.path != "/file":
            self.send_error(404)
            return
        start = 0
        asked = self.headers.get("Range")
        if server.ranges and asked:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            if start >= len(server.content):
                self.send_error(416)
                return
        body = server.content[start:]
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(server.content) - 1}/{len(server.content)}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if server.breaks:
            server.breaks -= 1
            body = body[: len(body) // 2]
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with Server() as one:
        thread = threading.Thread(target=one.serve_forever, args=(0.01,))
        thread.start()
        yield one
        one.shutdown()
        thread.join()


@pytest.fixture
def remote(server):
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    return Remote(f"http://127.0.0.1:{server.server_port}/file", "set/file", len(CONTENT), f"sha256:{sha256}")


def names(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_a_download(remote, tmp_path):
    told = []
    path = fetch(remote, tmp_path, progress=lambda done, of: told.append((done, of)))
    assert path == tmp_path / "set" / "file"
    assert path.read_bytes() == CONTENT
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert names(tmp_path) == ["file"]


def test_a_broken_download_is_resumed(remote, server, tmp_path):
    server.breaks = 2
    assert fetch(remote, tmp_path).read_bytes() == CONTENT
    half = len(CONTENT) // 2
    assert server.asked == [None, f"bytes={half}-", f"bytes={half + half // 2}-"]


def test_an_interrupted_download_leaves_no_final_file_and_goes_on_later(remote, server, tmp_path):
    class Interrupted(BaseException):
        pass

    def stop(done, of):
        if done > len(CONTENT) // 3:
            raise Interrupted

    with pytest.raises(Interrupted):
        fetch(remote, tmp_path, progress=stop)
    assert names(tmp_path) == ["file.part"]
    have = (tmp_path / "set" / "file.part").stat().st_size
    assert 0 < have < len(CONTENT)
    assert fetch(remote, tmp_path).read_bytes() == CONTENT
    assert server.asked == [None, f"bytes={have}-"]


def test_a_connection_that_keeps_breaking_leaves_no_final_file(remote, server, tmp_path):
    server.breaks = 9
    with pytest.raises(DataSetError, match=r"could not download .*download .* as .*set/file"):
        fetch(remote, tmp_path, attempts=2)
    assert "file" not in names(tmp_path)


@pytest.fixture
def part(remote, server, tmp_path):
    """Half of the file, of a download that broke."""
    server.breaks = 1
    with pytest.raises(DataSetError):
        fetch(remote, tmp_path, attempts=1)
    return tmp_path / "set" / "file.part"


def test_a_part_is_continued_only_if_a_checksum_can_tell_that_the_file_has_changed(part, remote, server, tmp_path):
    server.content = CONTENT[::-1]
    with pytest.raises(DataSetError, match="must have the sha256 checksum"):
        fetch(remote, tmp_path)
    part.write_bytes(CONTENT[:100])
    assert fetch(replace(remote, checksum=None), tmp_path).read_bytes() == CONTENT[::-1]


def test_a_server_without_ranges_is_asked_for_everything_again(part, remote, server, tmp_path):
    server.ranges = False
    assert fetch(remote, tmp_path).read_bytes() == CONTENT


def test_a_part_that_is_longer_than_the_file_is_begun_again(part, remote, tmp_path):
    part.write_bytes(CONTENT + CONTENT)
    assert fetch(remote, tmp_path).read_bytes() == CONTENT


def test_a_refusal_keeps_what_has_arrived(part, remote, server, tmp_path):
    with pytest.raises(DataSetError, match="Not Found"):
        fetch(replace(remote, url=remote.url + "s"), tmp_path)
    assert part.stat().st_size == len(CONTENT) // 2
    assert len(server.asked) == 2  # a page that is not there is asked for once


@pytest.mark.parametrize("content", [CONTENT[:-1] + b"x", CONTENT + b"more"], ids=["tampered", "too long"])
def test_the_wrong_content_is_refused_and_removed(content, remote, server, tmp_path):
    server.content = content
    with pytest.raises(DataSetError, match=r"file.part: must have (the sha256 checksum|1024000 bytes)"):
        fetch(remote, tmp_path)
    assert names(tmp_path) == []


def test_without_a_network_one_message_says_what_to_put_where(remote, tmp_path, monkeypatch):
    """Of every file that is missing."""
    closed = [replace(remote, url=f"http://127.0.0.1:9/{name}", path=f"set/{name}") for name in "abc"]
    closed[2] = replace(closed[2], checksum=None)
    monkeypatch.setitem(CATALOGUE, "svhn", CatalogueEntry("small", "set", tuple(closed)))
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "a").write_bytes(CONTENT)
    with pytest.raises(DataSetError) as caught:
        fetch_data_set("svhn", tmp_path)
    missing = [f"http://127.0.0.1:9/b (1024000 bytes, {remote.checksum}) as {tmp_path}/set/b"]
    missing += [f"http://127.0.0.1:9/c (1024000 bytes, checksum unknown) as {tmp_path}/set/c"]
    assert f"download {' and '.join(missing)}, then run the same command again" in str(caught.value)
    assert names(tmp_path) == ["a"]


def test_a_file_that_is_there_is_verified(remote, server, tmp_path, monkeypatch):
    monkeypatch.setitem(CATALOGUE, "svhn", CatalogueEntry("small", "set", (remote,)))
    path = tmp_path / "set" / "file"
    path.parent.mkdir()
    path.write_bytes(CONTENT[:-1] + b"?")
    with pytest.raises(DataSetError, match=r"set/file: must have the sha256 checksum"):
        fetch_data_set("svhn", tmp_path)
    path.write_bytes(CONTENT)
    assert fetch_data_set("svhn", tmp_path) == path.parent
    assert server.asked == []


def test_two_processes_do_not_write_one_download(remote, server, tmp_path):
    (tmp_path / "set").mkdir()
    with FileLock(tmp_path / "set" / "file.part.lock"), pytest.raises(DataSetError, match="another process"):
        fetch(remote, tmp_path)
    assert server.asked == []
    assert fetch(remote, tmp_path).read_bytes() == CONTENT


@pytest.fixture
def served_cifar(server, remote, tmp_path, monkeypatch):
    """CIFAR-10's catalogue entry, pointing to a small archive on this server."""
    fabricated(tmp_path / "made")
    with tarfile.open(tmp_path / "made.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "made" / "cifar-10-batches-py", "cifar-10-batches-py")
    server.content = (tmp_path / "made.tar.gz").read_bytes()
    checksum = f"md5:{hashlib.md5(server.content).hexdigest()}"
    served = Remote(remote.url, "cifar-10-python.tar.gz", len(server.content), checksum, ".")
    monkeypatch.setitem(CATALOGUE, "cifar10", replace(CATALOGUE["cifar10"], remotes=(served,)))
    return tmp_path / "data"


def test_an_archive_is_fetched_once_and_verified_and_unpacked_when_loaded(served_cifar, server):
    assert fetch_data_set("cifar10", served_cifar) == served_cifar / "cifar-10-batches-py"
    assert len(load_data("cifar10", served_cifar, allow_partial=True).test) == 20
    fetch_data_set("cifar10", served_cifar)
    assert len(server.asked) == 1
    (served_cifar / "cifar-10-batches-py").rename(served_cifar / "elsewhere")
    archive = served_cifar / "cifar-10-python.tar.gz"  # as one that was put there by hand
    for content, message in ((server.content[:-20], r"must have \d+ bytes"), (server.content[:-1] + b"?", "the md5")):
        archive.write_bytes(content)
        with pytest.raises(DataSetError, match=rf"cifar-10-python.tar.gz: .*{message}"):
            load_data("cifar10", served_cifar, allow_partial=True)
    archive.write_bytes(server.content)
    assert len(load_data("cifar10", served_cifar, allow_partial=True).test) == 20


def test_another_process_that_unpacked_first_is_no_error(served_cifar, server, monkeypatch):
    fetch_data_set("cifar10", served_cifar)
    (served_cifar / "cifar-10-batches-py").rename(served_cifar / "other")

    def beaten(archive, destination):
        (served_cifar / "other").rename(served_cifar / "cifar-10-batches-py")
        raise OSError("Directory not empty")

    monkeypatch.setattr("focalcal.lab.data.fetch.unpack", beaten)
    assert len(load_data("cifar10", served_cifar, allow_partial=True).test) == 20


def test_what_cannot_be_downloaded_says_how_to_get_it(tmp_path):
    with pytest.raises(DataSetError, match=r"chestxray14 cannot be downloaded by a program: .*images_001.tar.gz"):
        fetch_data_set("chestxray14", tmp_path)
    (tmp_path / "chestxray14").mkdir()
    (tmp_path / "chestxray14" / "test_list.txt").touch()
    assert fetch_data_set("chestxray14", tmp_path) == tmp_path / "chestxray14"  # for its loader to judge
    assert fetch_data_set("digits", tmp_path) is None
    with pytest.raises(ValueError, match=r"'nothing' is not a data set\. Known: digits"):
        fetch_data_set("nothing", tmp_path)


def test_the_catalogue_is_well_formed():
    for entry in CATALOGUE.values():
        assert entry.description
        assert entry.licence
        assert (entry.folder is None) or entry.remotes or entry.by_hand
        for remote in entry.remotes:
            assert remote.url.startswith(("http://", "https://"))
            assert ".." not in remote.path
            if remote.checksum:
                kind, value = remote.checksum.split(":")
                assert len(bytes.fromhex(value)) == {"md5": 16, "sha256": 32}[kind]
