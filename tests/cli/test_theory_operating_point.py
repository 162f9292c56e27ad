"""`focalcal theory operating-point`: what the library says, a picture, and plain refusals."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from focalcal import Predictions, operating_point
from focalcal.cli.app import app
from focalcal.pages.operating_point_figure import OperatingPointFigure, temperature_curves
from focalcal.pages.style import GAMMA
from focalcal.theory import effective_temperature


@pytest.fixture(scope="module")
def held_out(tmp_path_factory):
    draws = np.random.default_rng(0)
    eta = draws.dirichlet(np.full(4, 0.4), size=1000).clip(1e-9)
    labels = (eta.cumsum(1) < draws.random((1000, 1))).sum(1).clip(max=3)
    path = tmp_path_factory.mktemp("predictions") / "val.npz"
    np.savez(path, logits=1.5 * np.log(eta), labels=labels)
    return path


@pytest.fixture
def run():
    return lambda *arguments: CliRunner().invoke(app, ["theory", "operating-point", *map(str, arguments)])


def test_prints_what_the_library_says(run, held_out):
    predictions = Predictions.load(held_out)
    point = operating_point(predictions.logits, predictions.labels, gamma=2.5)
    assert run(held_out, "--gamma", 2.5).output == f"{point!r}\n"
    record = json.loads(run(held_out, "--gamma", 2.5, "--json").output)
    assert record["lam"] == point.lam
    assert record["paste"] == point.paste
    refined = operating_point(predictions.logits, predictions.labels, trained_with=(1.0, 2.0))
    assert run(held_out, "--trained-with", 1, 2).output == f"{refined!r}\n"


def test_draws_the_curves(run, held_out, tmp_path):
    result = run(held_out, "--out", tmp_path / "point.PNG")
    assert result.output.splitlines()[-1] == str(tmp_path / "point.PNG")
    assert (tmp_path / "point.PNG").read_bytes().startswith(b"\x89PNG")


def test_the_point_lies_on_its_curve(held_out):
    predictions = Predictions.load(held_out)
    point = operating_point(predictions.logits, predictions.labels)
    display = OperatingPointFigure(temperature_curves(point))
    (axes,) = display.plot().axes
    lines = {line.get_label(): line.get_xydata() for line in axes.lines}
    assert {*(f"{GAMMA} = {gamma}" for gamma in (1, 2, 3, 5)), "operating point"} <= set(lines)
    (lam, height), course = lines["operating point"][0], lines[f"{GAMMA} = 3"]
    assert lam == point.lam
    assert np.interp(np.log(lam), np.log(course[:, 0]), course[:, 1]) == pytest.approx(height, abs=0.01)
    frame = display.frame().columns
    expected = effective_temperature(point.posteriors, gamma=frame["gamma"][20], lam=frame["lam"][20])
    assert frame["effective_temperature"][20] == pytest.approx(expected, rel=1e-12)


def test_refusals(run, held_out, tmp_path):
    for arguments, message in [
        ((tmp_path / "none.npz",), "the file must exist"),
        ((held_out, "--gamma", -1), "gamma"),
        ((held_out, "--out", "picture.gif"), "--out must end in one of .png, .pdf, .svg"),
    ]:
        result = run(*arguments)
        assert result.exit_code == 2
        assert message in result.output
        assert len(result.output.splitlines()) == 1
    several = tmp_path / "several.npz"
    Predictions(probs=np.full((200, 3), 0.5), labels=np.ones((200, 3), int), split="val", multilabel=True).save(several)
    assert "one label per row" in run(several).output


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda logits, labels: (np.exp(logits) / np.exp(logits).sum(1, keepdims=True), labels), "probs"),
        (lambda logits, labels: (logits[:99], labels[:99]), "at least 100 rows, got 99"),
        (lambda logits, labels: (logits, 0 * labels), "at least two classes, got one class only"),
        (lambda logits, labels: (logits, logits.argmax(1)), "check the labels, and pass more rows"),
    ],
    ids=["probabilities", "few rows", "one class", "every label predicted"],
)
def test_rows_that_say_nothing_are_refused_in_one_sentence(run, held_out, tmp_path, change, message):
    predictions = Predictions.load(held_out)
    logits, labels = change(predictions.logits.astype(float), predictions.labels)
    np.savez(tmp_path / "val.npz", logits=logits, labels=labels)
    result = run(tmp_path / "val.npz")
    assert result.exit_code == 2
    assert message in result.output
    assert len(result.output.splitlines()) == 1
