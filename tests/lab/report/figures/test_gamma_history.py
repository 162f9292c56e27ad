import numpy as np
from support.figure_runs import evidence_of, faults, font_sizes, stored

from focalcal.lab.report.figures.gammas import gamma_history


def test_the_gammas_of_a_real_run(trained):
    run = trained["adafocal"]
    history = gamma_history(evidence_of([run]), "digits/mlp")
    frame = history.frame().columns
    epochs = run.epochs()
    assert len(epochs) == 3
    np.testing.assert_array_equal(np.reshape(frame["gamma"], (3, 15)), [epoch["gammas"] for epoch in epochs])
    np.testing.assert_array_equal(np.reshape(frame["lower"], (3, 15)), [epoch["edges"][:-1] for epoch in epochs])
    assert frame["bin"] == list(range(1, 16)) * 3
    figure = history.plot()
    lines = [line for line in figure.axes[0].lines if line.get_label() != "_zero"]
    np.testing.assert_array_equal(np.transpose([line.get_ydata() for line in lines]), [e["gammas"] for e in epochs])
    assert faults(figure) == []
    assert min(font_sizes(figure)) >= 7


def test_more_runs_than_can_be_shown_and_gammas_without_edges(store):
    epochs = [{"epoch": at, "gammas": [1.0, None, float(at)]} for at in (1, 2)]
    runs = [stored(store, "adafocal", seed=seed, epochs=epochs) for seed in range(8)]
    history = gamma_history(evidence_of(runs), "digits/small_cnn")
    assert len(history.panels) == 6
    assert "2 more runs are not shown." in history.note
    assert np.isnan(history.frame().columns["lower"]).all()
    assert np.isnan(history.frame().columns["gamma"]).sum() == 12
    assert faults(history.plot()) == []


def test_other_objectives_have_none(evidence):
    assert gamma_history(evidence, "digits/small_cnn") is None
