"""Files that are whole or not there, on a disk that takes no more: every file of a child is held to a size."""

import pytest
import torch
from support.forked import ended, started

from focalcal.core.atomic import atomic_file, write_atomically
from focalcal.lab.training.checkpoint import save_checkpoint

resource = pytest.importorskip("resource")

ROOM = 100_000  # bytes of the largest file


def in_one_piece(path):
    write_atomically(path, bytes(2 * ROOM))


def bit_by_bit(path):
    with atomic_file(path) as handle:
        for _ in range(2 * ROOM // 1000):
            handle.write(bytes(1000))


def at_the_last_flush(path):
    with atomic_file(path) as handle:
        handle.write(bytes(ROOM - 1000))
        handle.flush()
        handle.write(bytes(2000))


def a_checkpoint(path):
    save_checkpoint(path, {"model": {"weight": torch.zeros(ROOM)}}, {"seed": "1"})


def a_checkpoint_with_little_missing(path):
    save_checkpoint(path, {"model": {"weight": torch.zeros(ROOM // 4)}}, {"seed": "1"})


@pytest.mark.parametrize(
    "write", [in_one_piece, bit_by_bit, at_the_last_flush, a_checkpoint, a_checkpoint_with_little_missing]
)
def test_a_full_disk_is_named_and_nothing_is_left_on_it(tmp_path, write):
    path = tmp_path / "file"
    path.write_bytes(b"before")

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, ROOM))
        with pytest.raises(OSError, match="cannot be written: File too large; free some space") as caught:
            write(path)
        assert str(path) in str(caught.value)

    assert ended(started(limited)) == 0
    assert [one.name for one in tmp_path.iterdir()] == ["file"]
    assert path.read_bytes() == b"before"


def test_other_errors_are_those_of_the_block(tmp_path):
    with pytest.raises(LookupError, match="mine"), atomic_file(tmp_path / "file"):
        raise LookupError("mine")
    with pytest.raises(KeyboardInterrupt), atomic_file(tmp_path / "file"):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
