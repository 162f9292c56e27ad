import errno
import os
import select
import signal
import threading
import time

import pytest
from support.forked import STRIDES, ended, killed_at, started
from support.stored_runs import epochs_file, spec, stored

from focalcal.lab.store import Store, staging


@STRIDES
def test_killed_before_any_touch_of_a_file_there_is_a_whole_run_or_none(store, tmp_path, monkeypatch, stride):
    epochs = epochs_file(tmp_path)
    seen = {"none": 0, "whole": 0}
    step = 1
    while killed_at(step, lambda at=step: stored(store, spec(at), epochs=epochs, nll=float(at))):
        assert store.problems(contents=True) == []
        there = store.has(spec(step))
        assert [run.key for run in store.runs()].count(spec(step).key) == there
        seen["whole" if there else "none"] += 1
        stored(store, spec(step), epochs=epochs, nll=float(step))  # and it can be stored all the same
        assert store.run(spec(step).key).metrics("test")["nll"] == step
        step += stride
    assert seen["none"] * stride > 8  # before the renaming there are at least as many files to write
    assert seen["whole"] > 1  # and after it the workspace to clear
    assert len(store.runs()) == sum(seen.values()) + 1  # the last of which nobody killed
    assert store.problems(contents=True) == []
    leftovers = os.listdir(store.path / "tmp")
    assert leftovers  # the killed ones', too young to be touched
    monkeypatch.setattr(staging, "STALE_SECONDS", -1.0)
    stored(store, spec(step + 1))
    assert os.listdir(store.path / "tmp") == []


def test_a_leftover_is_left_alone_while_it_is_young_or_its_writer_lives(store, monkeypatch):
    tmp = store.path / "tmp"
    with staging.staging(tmp) as folder:
        (folder / "half").touch()
        monkeypatch.setattr(staging, "STALE_SECONDS", -1.0)
        staging.clear_leftovers(tmp)  # alive
        assert (folder / "half").exists()
    assert os.listdir(tmp) == []
    (tmp / "0123456789abcdef").mkdir()
    monkeypatch.setattr(staging, "STALE_SECONDS", 60.0)
    staging.clear_leftovers(tmp)  # young
    assert os.listdir(tmp) == ["0123456789abcdef"]
    os.utime(tmp / "0123456789abcdef", (0, 0))
    staging.clear_leftovers(tmp)
    assert os.listdir(tmp) == []


def test_several_processes_add_the_same_and_different_runs(store):
    def work(writer: int) -> None:
        for seed in range(6):
            stored(store, spec(seed), nll=float(writer))
            stored(store, spec(100 * writer + seed))

    writers = [started(lambda writer=writer: work(writer)) for writer in (1, 2, 3)]
    counts = []
    while len(counts) < 5 or (counts[-1] < 24 and len(counts) < 10_000):  # read while it is written
        counts.append(len(store.runs()))
        assert store.problems() == []
    assert [ended(writer) for writer in writers] == [0, 0, 0]
    assert counts == sorted(counts)
    assert len(store.runs()) == 24
    assert store.problems(contents=True) == []
    assert os.listdir(store.path / "tmp") == []


def test_one_process_at_a_time_works_on_a_spec(store):
    journal = store.path / "journal"

    def work() -> None:
        with store.claim(spec()):
            if not store.has(spec()):
                with open(journal, "a") as handle:
                    handle.write("trained\n")
                time.sleep(0.05)
                stored(store, spec())

    assert [ended(one) for one in [started(work) for _ in range(4)]] == [0] * 4
    assert journal.read_text() == "trained\n"
    assert not list(store.path.glob("work/*"))


def test_the_claim_of_a_killed_process_is_free(store):
    read, write = os.pipe()

    def hold() -> None:
        with store.claim(spec()):
            store.workspace(spec())
            os.write(write, b"!")
            time.sleep(60)

    holder = started(hold)
    assert os.read(read, 1) == b"!"
    granted = threading.Event()

    def ask() -> None:
        with store.claim(spec()):
            granted.set()

    waiting = threading.Thread(target=ask, daemon=True)
    waiting.start()
    assert not granted.wait(0.1)
    os.kill(holder, signal.SIGKILL)
    assert ended(holder) == -signal.SIGKILL
    assert granted.wait(30)
    waiting.join()
    assert not select.select([read], [], [], 0)[0]
    os.close(read)
    os.close(write)


def test_one_thread_at_a_time_works_on_a_spec(store):
    inside, most = [], []

    def work() -> None:
        with store.claim(spec()):
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.01)
            inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert most == [1] * 4
    assert not list(store.path.glob("work/*"))


def test_a_claim_is_refused_while_another_has_it_and_never_waits_for_itself(store):
    with store.claim(spec()), store.claim(spec(1)):  # which do not wait for each other
        assert not store.is_free(spec())
        with store.claim(spec(), wait=False) as granted:
            assert not granted
        with pytest.raises(RuntimeError, match="Deadlock"), store.claim(spec()):
            pass
    assert store.is_free(spec())
    assert not list(store.path.glob("work/*"))


def test_a_claim_does_not_outlive_its_holder_in_a_child_that_was_forked(store):
    """A forked process shares the descriptors of its parent, and with them, unless they are closed, its locks."""
    read, write = os.pipe()

    def hold() -> None:
        with store.claim(spec()):
            child = started(lambda: time.sleep(60))
            os.write(write, child.to_bytes(8, "little"))
            time.sleep(60)

    holder = started(hold)
    child = int.from_bytes(os.read(read, 8), "little")
    try:
        assert not store.is_free(spec())
        os.kill(holder, signal.SIGKILL)
        ended(holder)
        assert store.is_free(spec())
    finally:
        os.kill(child, signal.SIGKILL)
        os.close(read)
        os.close(write)


def test_without_flock_nothing_is_locked_by_lesser_means(store, monkeypatch):
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(OSError, match="not implemented"), store.claim(spec()):
        pass
    with pytest.raises(OSError, match="got Function not implemented; mount the file system with locks"):
        store.check_writable()


def test_two_writers_replace_a_damaged_run_once(store):
    run = stored(store, spec())
    (run.path / "record.json").write_text("{")
    writers = [started(lambda nll=nll: stored(store, spec(), nll=nll)) for nll in (1.0, 2.0, 3.0)]
    assert [ended(one) for one in writers] == [0, 0, 0]
    assert [one.kind for one in store.problems()] == ["set aside"]
    assert store.run(run.key).metrics("test")["nll"] in (1.0, 2.0, 3.0)


def test_a_store_is_made_by_many_at_once(tmp_path):
    makers = [started(lambda seed=seed: stored(Store(tmp_path / "new"), spec(seed))) for seed in range(4)]
    assert [ended(one) for one in makers] == [0] * 4
    assert len(Store(tmp_path / "new", create=False).runs()) == 4
