import json

import pytest
from support.data_folders import FABRICATED
from typer.testing import CliRunner

from focalcal.cli.app import app
from focalcal.lab.data import CATALOGUE, DATA_SETS, fingerprint, load_data


@pytest.fixture
def run():
    runner = CliRunner()
    return lambda *arguments: runner.invoke(app, ["data", *map(str, arguments)])


def test_list_tells_what_is_here(run, tmp_path):
    FABRICATED["ag_news"](tmp_path)
    (tmp_path / "CIFAR-10-C.tar").touch()
    result = run("list", "--data-dir", tmp_path, "--json")
    here = {row["name"]: row["here"] for row in json.loads(result.output)}
    assert set(here) == set(CATALOGUE) >= set(DATA_SETS)
    assert [here[name] for name in ("digits", "ag_news", "cifar10c", "cifar10")] == [
        *("built in", "here", "archive", "absent")
    ]
    table = run("list", "--data-dir", tmp_path)
    assert table.exit_code == 0
    assert "ag_news           here      127,600 news items, 4 classes [non-commercial use only]" in table.output


def test_list_tells_a_part_from_nothing(run, tmp_path):
    def stands():
        return {row["name"]: row["here"] for row in json.loads(run("list", "--data-dir", tmp_path, "--json").output)}

    (tmp_path / "fashion-mnist").mkdir()
    (tmp_path / "fashion-mnist" / "train-images-idx3-ubyte.gz.part").touch()
    (tmp_path / "finsen").mkdir()
    assert (stands()["fashion_mnist"], stands()["finsen"]) == ("absent", "absent")
    FABRICATED["fashion_mnist"](tmp_path / "made")
    for path in (tmp_path / "made" / "fashion-mnist").iterdir():  # some gzipped, some not
        assert stands()["fashion_mnist"] != "here"
        path.rename(tmp_path / "fashion-mnist" / path.name)
    assert stands()["fashion_mnist"] == "here"
    (tmp_path / "fashion-mnist" / "train-images-idx3-ubyte.gz").unlink()
    assert stands()["fashion_mnist"] == "part"


def test_verify_reads_word_vectors(run, tmp_path):
    (tmp_path / "glove").mkdir()
    assert "must hold glove.6B.100d.txt" in run("verify", "glove", "--data-dir", tmp_path).output
    (tmp_path / "glove" / "glove.6B.50d.txt").write_text("the 1 2\ncat 3 4\n")
    assert "must hold 400000 words, got 2" in run("verify", "glove", "--data-dir", tmp_path).output
    allowed = run("verify", "glove", "--data-dir", tmp_path, "--allow-partial")
    assert allowed.output.startswith("glove.6B.50d.txt: 2 words  sha256 ")


def test_verify_prints_counts_and_fingerprints(run):
    result = run("verify", "digits")
    assert result.exit_code == 0
    assert f"test      360  sha256 {fingerprint(load_data('digits').test)}" in result.output
    assert json.loads(run("verify", "digits", "--json").output)["counts"]["train"] == 1077


def test_verify_refuses_a_part_unless_allowed(run, tmp_path):
    FABRICATED["ag_news"](tmp_path)
    refused = run("verify", "ag_news", "--data-dir", tmp_path)
    assert refused.exit_code == 2
    assert refused.output.startswith("focalcal: ag_news: train must hold 120000 examples")
    allowed = run("verify", "ag_news", "--data-dir", tmp_path, "--allow-partial")
    assert "4 classes, a part of it" in allowed.output


def test_get_without_a_way_to_download_says_what_to_do(run, tmp_path):
    result = run("get", "finsen", "--data-dir", tmp_path)
    assert result.exit_code == 2
    assert f"put it into {tmp_path}/finsen" in result.output
    assert run("get", "digits").output == "digits needs no file\n"


def test_get_says_that_it_is_here(run, tmp_path):
    FABRICATED["cifar10"](tmp_path)
    result = run("get", "cifar10", "--data-dir", tmp_path)
    assert result.exit_code == 0
    assert "it is here already; `focalcal data verify cifar10` checks it" in result.output
    assert str(tmp_path / "cifar-10-batches-py") in result.output


def test_mistakes_are_one_line(run, monkeypatch):
    monkeypatch.delenv("FOCALCAL_DATA", raising=False)
    for arguments in (("get", "nothing"), ("verify", "nothing"), ("get", "cifar10"), ("verify", "cifar10")):
        result = run(*arguments)
        assert result.exit_code == 2
        assert result.output.startswith("focalcal: ")
        assert result.output.count("\n") == 1
