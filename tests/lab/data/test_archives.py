import gzip
import io
import tarfile
import zipfile

import pytest

from focalcal.lab.data import DataSetError
from focalcal.lab.data.archives import unpack

FILES = {"set/a.bin": bytes(range(256)) * 400, "set/deep/b.txt": b"text"}


def tar(path, files=FILES, *, members=(), mode="w:gz"):
    with tarfile.open(path, mode) as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for info in members:
            archive.addfile(info)
    return path


def zipped(path, files=FILES, *, mode=None):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = (mode or 0o100644) << 16
            archive.writestr(info, content)
    return path


@pytest.mark.parametrize("make", [tar, lambda path: tar(path, mode="w"), zipped], ids=["tar.gz", "tar", "zip"])
def test_unpacking(make, tmp_path):
    made = unpack(make(tmp_path / "archive"), tmp_path / "out")
    assert made == [tmp_path / "out" / "set"]
    for name, content in FILES.items():
        assert (tmp_path / "out" / name).read_bytes() == content
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["set"]


def test_members_that_leave_the_folder_links_and_devices_are_refused_and_nothing_is_left(tmp_path):
    outside, link = r"archive: must be a whole .*outside the destination", r"'set/.* is a link or device"
    for name in ("../evil", "set/../../evil"):
        with pytest.raises(DataSetError, match=outside):
            unpack(tar(tmp_path / "archive", FILES | {name: b"evil"}), tmp_path / "deep" / "out")
    for kind, target in (
        *((tarfile.SYMTYPE, "/etc/passwd"), (tarfile.SYMTYPE, "a.bin"), (tarfile.LNKTYPE, "../../outside")),
        *((tarfile.CHRTYPE, ""), (tarfile.FIFOTYPE, "")),
    ):
        bad = tarfile.TarInfo("set/bad")
        bad.type, bad.linkname = kind, target
        with pytest.raises(DataSetError, match=link):
            unpack(tar(tmp_path / "archive", members=[bad]), tmp_path / "deep" / "out")
    assert {path.name for path in tmp_path.rglob("*")} <= {"archive", "deep"}


@pytest.mark.parametrize(
    ("make", "name"), [(tar, "{}/evil"), (zipped, "{}/evil"), (zipped, "../evil"), (zipped, "set/../../evil")]
)
def test_a_member_with_an_absolute_name_or_in_a_zip_stays_inside(make, name, tmp_path):
    unpack(make(tmp_path / "archive", {**FILES, name.format(tmp_path): b"evil"}), tmp_path / "deep" / "out")
    [evil] = tmp_path.rglob("evil")
    assert tmp_path / "deep" / "out" in evil.parents


def test_a_link_in_a_zip_becomes_a_file(tmp_path):
    unpack(zipped(tmp_path / "archive", {"link": b"/etc/passwd"}, mode=0o120777), tmp_path / "out")
    assert not (tmp_path / "out" / "link").is_symlink()


@pytest.mark.parametrize("make", [tar, lambda path: tar(path, mode="w"), zipped], ids=["tar.gz", "tar", "zip"])
@pytest.mark.parametrize("share", [0.1, 0.9, None])
def test_a_truncated_archive_or_none_at_all_is_refused_by_name(make, share, tmp_path):
    whole = make(tmp_path / "archive").read_bytes()
    (tmp_path / "archive").write_bytes(b"hello" * 1000 if share is None else whole[: int(share * len(whole))])
    with pytest.raises(DataSetError, match="archive: must be a whole"):
        unpack(tmp_path / "archive", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["archive"]


def test_a_tampered_archive_is_refused_by_its_checksum(tmp_path):
    archive = tar(tmp_path / "archive", mode="w")
    plain = archive.read_bytes()
    whole = bytearray(gzip.compress(plain, compresslevel=0))
    whole[whole.index(b"text")] ^= 1  # the content, not its checksum
    archive.write_bytes(whole)
    with pytest.raises(DataSetError, match=r"archive: must be a whole .*CRC"):
        unpack(archive, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["archive"]


@pytest.mark.parametrize("make", [tar, zipped])
def test_a_bomb_is_refused(make, tmp_path):
    with pytest.raises(DataSetError, match="unpacks to more than 65536 bytes"):
        unpack(make(tmp_path / "archive", {"zeros": bytes(1 << 20)}), tmp_path / "out", max_bytes=1 << 16)


def test_entries_join_those_of_a_folder_that_is_there_and_none_is_overwritten(tmp_path):
    (tmp_path / "out" / "other").mkdir(parents=True)
    unpack(tar(tmp_path / "archive"), tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["other", "set"]
    with pytest.raises(DataSetError, match="must not exist yet"):
        unpack(tar(tmp_path / "archive"), tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["archive", "out"]
