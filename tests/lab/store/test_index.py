import os

import pytest
from support.forked import ended, started
from support.stored_runs import flip_a_bit, spec, stored

from focalcal.lab.store import Store, index
from focalcal.lab.store.index import list_store
from focalcal.lab.store.run_folder import Checksums


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setattr(index, "_FEW", 0)  # so that few runs have an index, too
    store = Store(tmp_path / "store")
    for seed in range(4):
        stored(store, spec(seed), nll=float(seed))
    return store


def nlls(store):
    return sorted(run.metrics("test")["nll"] for run in store.runs())


@pytest.fixture
def read(monkeypatch):
    """The names of the runs that were read from their folders, not from the index."""
    seen = []
    true = index.read_folder

    def watched(folder, state=None):
        seen.append(os.path.basename(folder))
        return true(folder, state)

    monkeypatch.setattr(index, "read_folder", watched)
    return seen


def test_each_run_is_read_once(store, read):
    first, again = (list_store(store.path, Checksums())[0] for _ in range(2))
    assert sorted(read) == sorted(first)
    assert len(read) == 4
    assert [(run.glance, run.settings, run.record, run.files) for run in again.values()] == [
        (run.glance, run.settings, run.record, run.files) for run in first.values()
    ]
    stored(store, spec(9), nll=9.0)
    assert nlls(store) == [0.0, 1.0, 2.0, 3.0, 9.0]
    assert read[4:] == [spec(9).key]


def test_the_index_is_safe_to_delete_and_to_spoil(store):
    assert nlls(store) == [0.0, 1.0, 2.0, 3.0]
    path = store.path / "runs.parquet"
    whole = path.read_bytes()
    for spoilt in (b"", b"garbage " * 9, whole[: len(whole) // 2]):
        path.write_bytes(spoilt)
        assert nlls(store) == [0.0, 1.0, 2.0, 3.0]
    for at in range(4, len(whole), 197):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        assert nlls(store) == [0.0, 1.0, 2.0, 3.0], at
    path.unlink()
    assert nlls(store) == [0.0, 1.0, 2.0, 3.0]


def test_a_removed_run_is_not_listed_and_a_check_of_the_contents_does_not_trust_the_index(store):
    store.runs()
    store.remove([spec(1).key])
    assert nlls(store) == [0.0, 2.0, 3.0]
    stored(store, spec(1), nll=5.0)  # the same key, another result
    assert nlls(store) == [0.0, 2.0, 3.0, 5.0]
    path = store.path / "runs" / spec(1).key / "record.json"
    flip_a_bit(path, path.read_bytes().index(b'"test"') + 1)
    assert len(store.runs()) == 4  # sizes and times are as they were
    (problem,) = store.problems(contents=True)
    assert "record.json was changed" in problem.message


def test_the_index_of_a_large_store_is_made_again_when_two_percent_of_it_are_stale(store, monkeypatch):
    store.runs()
    path = store.path / "runs.parquet"
    monkeypatch.setattr(index, "_STALE", 2)  # half
    before = path.read_bytes()
    for seed in (10, 11):
        stored(store, spec(seed))
        assert len(store.runs()) == seed - 5
        assert path.read_bytes() == before
    for seed in range(12, 15):
        stored(store, spec(seed))
    assert len(store.runs()) == 9
    assert path.read_bytes() != before


def test_processes_that_list_at_once_agree(store):
    def work() -> None:
        for _ in range(12):
            assert nlls(store)[:4] == [0.0, 1.0, 2.0, 3.0]

    readers = [started(work) for _ in range(3)]
    for seed in range(20, 26):
        stored(store, spec(seed), nll=float(seed))
    assert [ended(one) for one in readers] == [0, 0, 0]
    assert nlls(store) == [0.0, 1.0, 2.0, 3.0, *map(float, range(20, 26))]
