import os

import pytest
from forked import ended, started
from stored_runs import spec, stored

from focalcal.results import Store, index
from focalcal.results.index import listing


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "store")
    for seed in range(4):
        stored(store, spec(seed), nll=float(seed))
    return store


def nlls(store):
    return sorted(run.metrics("test")["nll"] for run in store.runs())


@pytest.fixture
def examined(monkeypatch):
    """The names of the runs that were read from their folders, not from the cache."""
    seen = []
    true = index.examined

    def watched(folder, state=None):
        seen.append(os.path.basename(folder))
        return true(folder, state)

    monkeypatch.setattr(index, "examined", watched)
    return seen


def test_each_run_is_read_once(store, examined):
    first = listing(store.path)
    assert sorted(examined) == sorted(first.entries)
    again = listing(store.path)
    assert len(examined) == 4
    assert [(one.spec, one.record, one.manifest) for one in again.entries.values()] == [
        (one.spec, one.record, one.manifest) for one in first.entries.values()
    ]
    stored(store, spec(9), nll=9.0)
    assert nlls(store) == [0.0, 1.0, 2.0, 3.0, 9.0]
    assert examined[4:] == [spec(9).key]


def test_the_cache_is_safe_to_delete_and_to_spoil(store):
    assert nlls(store) == [0.0, 1.0, 2.0, 3.0]
    (cache,) = store.path.glob("cache/*")
    whole = cache.read_bytes()
    for spoilt in (
        b"",
        b"\n\n",
        b"garbage " * 9,
        whole[: len(whole) // 2],
        whole.replace(b'"nll": 2.0', b'"nll": 8.0'),
    ):
        cache.write_bytes(spoilt)
        assert nlls(store) == [0.0, 1.0, 2.0, 3.0]
    for path in store.path.glob("cache/*"):
        path.unlink()
    assert nlls(store) == [0.0, 1.0, 2.0, 3.0]


def test_a_removed_run_is_not_listed_from_the_cache(store):
    store.runs()
    store.remove([spec(1).key])
    assert nlls(store) == [0.0, 2.0, 3.0]
    stored(store, spec(1), nll=5.0)  # the same key, another result
    assert nlls(store) == [0.0, 2.0, 3.0, 5.0]


def test_many_specs_are_looked_up_in_the_cache(store, examined, monkeypatch):
    monkeypatch.setattr("focalcal.results.store._FEW", 2)
    wanted = [spec(seed) for seed in (9, 2, 0, 8, 2)]
    for _ in range(2):
        assert store.missing(wanted) == [spec(9), spec(8)]
    assert sorted(examined) == sorted([spec(0).key, spec(2).key])  # each once, and no others
    assert nlls(store) == [0.0, 1.0, 2.0, 3.0]
    assert len(examined) == 4
    (store.path / "runs" / spec(2).key / "result.json").write_text("{")
    assert store.missing(wanted) == [spec(9), spec(2), spec(8)]


def test_looking_up_some_does_not_forget_the_others(store, examined, monkeypatch):
    monkeypatch.setattr("focalcal.results.store._FEW", 0)
    for seed in range(10, 30):
        stored(store, spec(seed))
        assert store.missing([spec(seed)]) == []  # more files of the cache than are left alone otherwise
    store.runs()
    assert len(examined) == 24
    store.missing([spec(10)])
    store.runs()
    assert len(examined) == 24


def test_cache_files_are_merged(store, examined):
    for seed in range(10, 40):
        stored(store, spec(seed))
        assert len(store.runs()) == seed - 5
    assert len(examined) == 34
    assert len(list(store.path.glob("cache/*"))) <= 9


def test_processes_that_list_at_once_agree(store):
    def work() -> None:
        for _ in range(12):
            assert nlls(store)[:4] == [0.0, 1.0, 2.0, 3.0]
            for path in list(store.path.glob("cache/*"))[1:]:
                path.unlink(missing_ok=True)

    readers = [started(work) for _ in range(3)]
    for seed in range(20, 26):
        stored(store, spec(seed), nll=float(seed))
    assert [ended(one) for one in readers] == [0, 0, 0]
    assert nlls(store) == [0.0, 1.0, 2.0, 3.0, *map(float, range(20, 26))]
