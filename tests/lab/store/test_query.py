import doctest
import gc
import math
import sys
from dataclasses import replace

import pytest
from support.stored_runs import epochs_file, spec, stored

from focalcal.lab.store import Store, tables


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "store")
    for seed in (0, 1):
        for lam in (0.5, 2):
            stored(store, spec(seed, gamma=3, lam=lam), epochs=epochs_file(tmp_path), nll=lam + seed)
    stored(store, spec(0, "ce"), nll=math.inf, ece=math.nan)
    return store


def rows(store, query):
    return store.sql(query).fetchall()


def test_docstring_examples():
    assert doctest.testmod(tables).attempted == 2


def test_options_are_columns_and_metrics_are_rows(store):
    query = """
        select objective, lam, avg(value), count(*) from runs join metrics using (key)
        where split = 'test' and metric = 'nll' group by all order by all
    """
    assert rows(store, query) == [("ce", None, math.inf, 1), ("fcl", 0.5, 1.0, 2), ("fcl", 2.0, 2.5, 2)]
    assert rows(store, "select value from metrics where metric = 'ece' and value is null") == [(None,)]
    described = dict(store.sql("select column_name, column_type from (describe runs)").fetchall())
    assert described["seed"] == "BIGINT"
    assert described["gamma"] == described["seconds"] == "DOUBLE"
    assert described["training"] == described["provenance"] == "JSON"


def test_test_metrics_has_one_row_per_run_with_its_test_metrics(store):
    relation = store.sql("select * from test_metrics")
    found = {row["key"]: row for row in (dict(zip(relation.columns, one, strict=True)) for one in relation.fetchall())}
    runs = store.runs()
    assert len(found) == len(runs) == rows(store, "select count(*) from test_metrics")[0][0]
    for run in runs:
        row = found[run.key]
        test = {name: None if math.isnan(value) else value for name, value in run.metrics("test").items()}
        assert {name: row[name] for name in test} == test
        assert (row["objective"], row["seed"], row["lam"]) == (
            *(run.spec.objective, run.spec.seed),
            dict(run.spec.objective_options).get("lam"),
        )
    assert {run.metrics("val")["nll"] for run in runs} == {0.75}  # which enters no mean
    means = rows(store, "select objective, lam, avg(nll) from test_metrics group by all order by all")
    assert means == [("ce", None, math.inf), ("fcl", 0.5, 1.0), ("fcl", 2.0, 2.5)]


def test_test_metrics_of_runs_that_lack_some_or_have_odd_names(tmp_path):
    store = Store(tmp_path)
    stored(store, replace(spec(0), objective_options={"ece": 7}), Seconds=3.0, **{"ece/It's": 0.5, 'a"b': 1.0})
    record = {"metrics": {"val": {"nll": 1.0}}, "provenance": {}, "seconds": 1.0, "epochs": 1}
    store.add(spec(1, "ce"), record=record, epochs=None, predictions=[])  # never tested
    query = """select seed, ece, metric_ece, metric_seconds, seconds, "ece/It's", "a""b", nll from test_metrics"""
    assert rows(store, f"{query} order by seed") == [
        (0, 7.0, 0.125, 3.0, 1.5, 0.5, 1.0, 0.5),
        (1, None, None, None, 1.0, None, None, None),
    ]


def test_epochs_are_rows_with_flat_names(store):
    assert rows(store, "select epoch, train_loss, test_nll, gammas from epochs where key like '%' limit 2") == [
        (1, 1.0, 2.0, [1.0, 1.0]),
        (2, 0.5, 1.0, [1.0, 2.0]),
    ]
    assert rows(store, "select count(*) from Epochs") == [(8,)]
    inside = "select distinct (training->>'$.optimizer.lr')::double, provenance->>'threads' from runs"
    assert rows(store, inside) == [(0.1, "1")]


def test_an_option_may_have_the_name_of_a_column(tmp_path):
    store = Store(tmp_path)
    stored(
        store,
        replace(spec(5, "odd"), objective_options={"seed": 7, "Key": "x", "KEY": "y", "bins": [1, 2], "flag": True}),
    )
    stored(store, replace(spec(5, "other"), objective_options={"flag": 2}))
    found = rows(store, "select seed, option_seed, option_key, option_key_2, bins, flag from runs order by objective")
    assert found == [(5, 7.0, "y", "x", "[1, 2]", "True"), (5, None, None, None, None, "2")]


def test_an_empty_store_has_empty_tables_and_says_that_it_is_empty(tmp_path):
    store = Store(tmp_path)
    for table in ("runs", "test_metrics", "metrics", "epochs"):
        assert rows(store, f"select * from {table}") == []
    assert rows(store, "select avg(value) from metrics join runs using (key) where metric = 'nll'") == [(None,)]
    with pytest.raises(ValueError, match=r"ece.*the store holds no run yet, which would add columns"):
        store.sql("select objective, avg(ece) from test_metrics group by all")


@pytest.mark.parametrize(
    "query",
    [
        "copy runs to '{file}'",
        "attach '{file}' as other",
        "export database '{file}'",
        "select * from read_csv('/etc/passwd')",
        "select * from read_text('{store}/STORE.json')",
        "select * from '/etc/passwd'",
        "set enable_external_access = true",
        "reset lock_configuration",
        "install httpfs",
        "select * from store",  # a variable of the calling function
    ],
)
def test_queries_reach_no_files_and_no_variables(store, tmp_path, query):
    before = sorted(tmp_path.rglob("*"))
    store.runs()
    target = tmp_path / "written"
    with pytest.raises(ValueError, match="query must be SQL over runs, test_metrics, metrics and epochs"):
        store.sql(query.format(file=target, store=store.path)).fetchall()
    assert not target.exists()
    assert [path for path in sorted(tmp_path.rglob("*")) if "cache" not in path.parts] == [
        path for path in before if "cache" not in path.parts
    ]


def test_what_a_query_changes_is_a_copy_and_its_rows_outlive_the_store(store):
    store.sql("delete from runs")
    relation = store.sql("select count(*) from runs")
    del store
    gc.collect()
    assert relation.fetchall() == [(5,)]


def test_mistakes_are_explained(store):
    with pytest.raises(ValueError, match=r"(?s)got an error: .*gama"):
        store.sql("select gama from runs")
    with pytest.raises(ValueError, match="query must give rows, got ''; begin it with SELECT"):
        store.sql("")


def test_a_missing_package_is_named_with_its_extra(store, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(ModuleNotFoundError, match=r"package duckdb: pip install .+"):
        store.sql("select 1")
