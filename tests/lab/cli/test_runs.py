import json
import math

import pytest
from support.stored_runs import epochs_file, flip_a_bit, record, spec, stored
from typer.testing import CliRunner

from focalcal.lab.cli.runs import app
from focalcal.lab.store import Store


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "store")
    for seed in (0, 1):
        stored(store, spec(seed), epochs=epochs_file(tmp_path), nll=0.5 + seed)
    stored(store, spec(10, "ce", data_set="cifar10", model="resnet50"), ece=math.nan, nll=math.inf)
    return store


@pytest.fixture
def run(store):
    runner = CliRunner()

    def call(*arguments, **options):
        return runner.invoke(app, [*map(str, arguments), "--store", str(store.path)], **options)

    return call


def test_list_shows_what_was_run_and_the_test_metrics(run):
    result = run("list")
    assert result.exit_code == 0
    head, *lines = result.stdout.splitlines()
    assert head.split() == [
        "key",
        "data",
        "set",
        "model",
        "objective",
        "options",
        "seed",
        "seconds",
        "error",
        "nll",
        "ece",
        "brier",
    ]
    assert [line.split()[1] for line in lines] == ["cifar10", "digits", "digits"]
    key = spec(1).key[:12]
    assert lines[2].split() == [
        key,
        "digits",
        "small_cnn",
        "fcl",
        *["gamma=3", "lam=1", "1", "1.5", "0.2500", "1.5000", "0.1250", "0.3750"],
    ]
    assert lines[0].split()[-4:] == ["0.2500", "inf", "-", "0.3750"]


def test_list_filters_and_speaks_json(run):
    def seeds(*arguments):
        return [row["seed"] for row in json.loads(run("list", "--json", *arguments).stdout)]

    assert seeds() == [10, 0, 1]
    assert seeds("--data-set", "digits") == seeds("--objective", "fcl") == [0, 1]
    assert seeds("--model", "resnet50") == seeds("--seed", 10) == [10]
    assert seeds("--data-set", "digits", "--seed", 1) == [1]
    nothing = run("list", "--seed", 7)
    assert (nothing.exit_code, nothing.stdout) == (0, "")
    assert "none of 3 runs is such" in nothing.stderr
    row = json.loads(run("list", "--json", "--seed", 10).stdout)[0]
    assert (row["test"]["nll"], row["test"]["ece"], row["test"]["error"]) == (None, None, 0.25)


def test_list_names_failures_and_problems_on_stderr(run, store):
    store.record_failure(spec(4), kind="non-finite loss", message="loss is nan\nin batch 3")
    (store.path / "runs" / spec(1).key / "record.json").write_text("{")
    result = run("list")
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 3
    failed, problem = result.stderr.splitlines()
    assert failed == f"failed: {spec(4).key[:12]} non-finite loss: loss is nan in batch 3"
    assert problem.startswith(f"problem: {store.path}/runs/{spec(1).key}: damaged: record.json was changed")


def test_show_prints_everything_about_a_run(run, store):
    key = spec(1).key
    text = run("show", key[:6]).stdout
    assert text.startswith(
        f"digits/small_cnn fcl(gamma=3, lam=1) seed 1\nkey       {key}\nfolder    {store.path}/runs/{key}"
    )
    assert "1.5 s, 2 epochs, 2 of them recorded" in text
    assert ["test", "1.500", "0.2500", "0.1250", "0.3750"] in [line.split() for line in text.splitlines()]
    assert '"lr": 0.1' in text
    assert '"threads": 1' in text
    told = json.loads(run("show", key, "--json").stdout)
    assert told["spec"] == spec(1).as_dict()
    assert told["metrics"]["test"]["nll"] == 1.5
    assert (told["epochs"], told["stored_epochs"], told["predictions"]) == (2, 2, ["val", "test"])


def test_sql_answers_with_a_table_or_json(run):
    query = "select objective, count(*) as runs, max(lam) as lam from runs group by objective order by objective"
    assert [line.split() for line in run("sql", query).stdout.splitlines()] == [
        ["objective", "runs", "lam"],
        ["ce", "1", "-"],
        ["fcl", "2", "1"],
    ]
    assert json.loads(run("sql", query, "--json").stdout)[1] == {"objective": "fcl", "runs": 2, "lam": 1.0}
    empty = run("sql", "select key, seed from runs where seed = 99")
    assert (empty.exit_code, empty.stdout, empty.stderr) == (0, "", "no rows; columns: key, seed\n")
    assert json.loads(
        run("sql", "select current_date as today, [inf] as i from (select 1e999 as inf)", "--json").stdout
    )


@pytest.mark.parametrize(
    "query", ["select nothing from runs", "copy runs to 'x.csv'", "select model::int from runs", "drop"]
)
def test_sql_mistakes_are_one_line(run, query, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("sql", query)
    assert result.exit_code == 2
    assert result.stderr.startswith(
        "focalcal: query must be SQL over runs, test_metrics, metrics and epochs, got an error: "
    )
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "x.csv").exists()


def test_rm_asks_unless_told_not_to(run, store):
    key = spec(0).key
    kept = run("rm", key[:8], input="n\n")
    assert kept.exit_code == 1
    assert "digits/small_cnn fcl(gamma=3, lam=1) seed 0" in kept.stderr
    assert "nothing was deleted" in kept.stderr
    assert store.has(key)
    assert run("rm", key[:8], input="y\n").stdout.endswith(f"{store.path}/runs/{key}\n")
    assert not store.has(key)
    assert run("rm", spec(1).key, spec(1).key[:8], "--yes").exit_code == 0
    assert len(store.runs()) == 1


def test_rm_refuses_what_is_not_clear_and_then_removes_nothing(run, store):
    for wrong in ("", "ab", "zzzz", "0" * 10):
        result = run("rm", spec(0).key, wrong, "--yes")
        assert result.exit_code == 2
        assert result.stderr.startswith("focalcal: ")
    (store.path / "runs" / (spec(0).key[:10] + "f" * 22)).mkdir()
    result = run("rm", spec(0).key[:10], "--yes")
    assert result.exit_code == 2
    assert "which begins 2" in result.stderr
    assert len(store.runs()) == 3


def test_rm_takes_damaged_runs_by_their_whole_name(run, store):
    folder = store.path / "runs" / spec(0).key
    flip_a_bit(folder / "epochs.jsonl", 20)
    short = run("rm", folder.name[:8], "--yes")
    assert short.exit_code == 2
    assert "give the whole name" in short.stderr
    whole = run("rm", folder.name, "--yes")
    assert whole.exit_code == 0
    assert "epochs.jsonl was changed" in whole.stderr
    assert not folder.exists()


def test_export_prints_where_the_file_is(run, tmp_path):
    target = tmp_path / "runs.csv"
    assert run("export", target).stdout == f"{target}\n"
    assert len(target.read_text().splitlines()) == 7
    assert run("export", target, spec(1).key[:8]).exit_code == 0
    assert len(target.read_text().splitlines()) == 3
    assert run("export", tmp_path / "runs.xls").exit_code == 2


def test_check_reads_every_file(run, store, tmp_path):
    weights = tmp_path / "weights.pt"
    weights.write_bytes(bytes(1000))
    kept = store.add(spec(5), record=record(), epochs=None, predictions=[], files={"weights.pt": weights})
    assert run("check").stdout == "4 runs are whole\n"
    flip_a_bit(kept.path / "weights.pt", 500)
    flip_a_bit(store.path / "runs" / spec(0).key / "predictions" / "test.npz", 500)
    result = run("check")
    assert (result.exit_code, result.stdout) == (1, "2 runs are whole\n")
    for name in ("weights.pt", "predictions/test.npz"):
        assert f"{name} was changed after it was stored" in result.stderr


def test_check_says_which_files_have_no_checksum(run, store):
    added = store.path / "runs" / spec(1).key / "weights.pt"
    added.write_bytes(bytes(100))
    result = run("check")
    assert (result.exit_code, result.stdout) == (0, "3 runs are whole\n")
    assert result.stderr == f"note: {added} has no checksum: it was not stored with the run\n"


def test_failures_says_which_cells_failed_and_why(run, store):
    nothing = run("failures")
    assert (nothing.exit_code, nothing.stdout, nothing.stderr) == (0, "", f"{store.path}: no failures\n")
    store.record_failure(spec(4), kind="non-finite loss", message="loss is nan\nin batch 3", details={"batch": 3})
    store.record_failure(spec(1), kind="error", message="its run is there")
    foreign = store.path / "failures" / f"{spec(6).key}.json"
    [stored_failure] = store.failures()
    foreign.write_text(json.dumps({**stored_failure, "key": spec(6).key, "spec": {}}))
    result = run("failures")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"{spec(4).key[:12]}  digits/small_cnn fcl gamma=3 lam=1 seed 4  {stored_failure['time']}",
        "    non-finite loss: loss is nan in batch 3",
    ]
    assert json.loads(run("failures", "--json").stdout) == [stored_failure]
    assert stored_failure["details"] == {"batch": 3}
    assert "no failure: must be a failure's record" in run("list").stderr


def test_the_store_is_found_by_its_variable_or_its_usual_name(store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FOCALCAL_STORE", raising=False)
    runner = CliRunner()
    lost = runner.invoke(app, ["list"])
    assert lost.exit_code == 2
    assert lost.stderr.startswith("focalcal: focalcal-runs must be a store of runs")
    assert not (tmp_path / "focalcal-runs").exists()
    store.path.rename(tmp_path / "focalcal-runs")
    assert runner.invoke(app, ["check"]).stdout == "3 runs are whole\n"
    (tmp_path / "focalcal-runs").rename(tmp_path / "elsewhere")
    monkeypatch.setenv("FOCALCAL_STORE", str(tmp_path / "elsewhere"))
    assert runner.invoke(app, ["check"]).stdout == "3 runs are whole\n"
