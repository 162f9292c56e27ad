import os

import pytest
from support.forked import ended, started
from support.stored_runs import flip_a_bit, spec, stored

from focalcal.lab.store import Store, index
from focalcal.lab.store.index import list_store


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
    true = index.examine

    def watched(folder, state=None):
        seen.append(os.path.basename(folder))
        return true(folder, state)

    monkeypatch.setattr(index, "examine", watched)
    return seen


def test_each_run_is_read_once(store, examined):
    first = list_store(store.path)
    assert sorted(examined) == sorted(first.runs)
    again = list_store(store.path)
    assert len(examined) == 4
    assert [(run.settings, run.record, run.files) for run in again.runs.values()] == [
        (run.settings, run.record, run.files) for run in first.runs.values()
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


def test_a_check_of_the_contents_does_not_trust_the_cache(store):
    store.runs()
    path = store.path / "runs" / spec(1).key / "files.json"
    flip_a_bit(path, path.read_bytes().index(b'"test"') + 1)  # no checksum is of this file
    assert len(store.runs()) == 4  # sizes and times are as they were
    (problem,) = store.problems(contents=True)
    assert "must give the file of every split, got another for 'uest'" in problem.message


def test_caches_of_other_versions_are_not_read_and_go_in_the_end(store, examined):
    store.runs()
    (cache,) = store.path.glob("cache/*")
    cache.rename(cache.with_suffix(".v1"))
    for seed in range(10, 20):
        stored(store, spec(seed))
        store.runs()
    assert len(examined) == 4 + 4 + 10
    assert not list(store.path.glob("cache/*.v1"))


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
