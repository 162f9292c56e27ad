import errno
import os
from types import SimpleNamespace

import pytest
from support.small_disks import make_read_only, mounted
from support.stored_runs import spec, stored

from focalcal.core.atomic import write_atomically
from focalcal.lab.store import Store


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_forbidden_folder_is_found_out_by_writing(tmp_path):
    store = Store(tmp_path / "store")
    stored(store, spec())
    for path in (store.path / "tmp", store.path):
        path.chmod(0o555)
    try:
        with pytest.raises(
            PermissionError, match="must take new runs, got Permission denied; make the folder writable"
        ):
            store.check_writable()
    finally:
        for path in (store.path, store.path / "tmp"):
            path.chmod(0o755)


def test_a_read_only_store_can_be_read_and_says_that_it_cannot_be_written(tmp_path):
    with mounted(tmp_path / "disk", "size=40m") as disk:
        store = Store(disk / "store")
        stored(store, spec())
        make_read_only(disk)
        store = Store(disk / "store")
        assert [run.key for run in store.runs()] == [spec().key]
        assert store.run(spec().key).predictions("test").n == 6
        assert store.missing([spec(0), spec(1)]) == [spec(1)]
        assert store.problems() == []
        assert store.sql("select count(*) from runs").fetchall() == [(1,)]
        with pytest.raises(OSError, match="must take new runs, got Read-only file system; make") as caught:
            store.check_writable()
        assert caught.value.errno == errno.EROFS
        with pytest.raises(OSError, match="cannot be made: Read-only file system"):
            Store(disk / "another")


def test_a_full_disk_is_found_out_before_and_a_run_that_does_not_fit_leaves_nothing(tmp_path):
    with mounted(tmp_path / "disk", "size=40m") as disk:
        store = Store(disk / "store")
        store.check_writable()
        with pytest.raises(OSError, match="bytes free of 46,777,216 that are needed; free some space") as caught:
            store.check_writable(30_000_000)
        assert caught.value.errno == errno.ENOSPC
        filler = disk / "filler"
        with pytest.raises(OSError, match="No space"):
            filler.write_bytes(bytes(60 << 20))
        with pytest.raises(OSError, match="must take new runs, got") as caught:
            store.check_writable()
        assert caught.value.errno == errno.ENOSPC
        with pytest.raises(OSError, match="No space"):
            stored(store, spec())
        assert store.runs() == store.problems() == []
        with pytest.raises(OSError, match="cannot be written: No space left on device"):
            write_atomically(disk / "one more", bytes(1 << 20))
        assert sorted(path.name for path in disk.iterdir()) == ["filler", "store"]
        filler.unlink()
        store.check_writable()
        stored(store, spec())
        assert store.problems(contents=True) == []


@pytest.mark.parametrize(
    ("bytes_left", "files_left", "message"),
    [(1 << 20, 100, "got 1,048,576 bytes free"), (1 << 40, 0, "got no free inodes")],
)
def test_what_the_file_system_says_of_itself_is_heeded(tmp_path, monkeypatch, bytes_left, files_left, message):
    store = Store(tmp_path / "store")
    store.check_writable(1000)
    assert not list(store.path.glob("tmp/*"))  # where there is room no trace is left
    with pytest.raises(ValueError, match="needed_bytes must be >= 0"):
        store.check_writable(-1)
    told = SimpleNamespace(f_bavail=bytes_left // 512, f_frsize=512, f_files=1000, f_favail=files_left)
    monkeypatch.setattr(os, "statvfs", lambda path: told)
    with pytest.raises(OSError, match=message) as caught:
        store.check_writable()
    assert caught.value.errno == errno.ENOSPC
