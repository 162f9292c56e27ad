import doctest
import os
import sys

import pytest
from support.figure_runs import epochs_file, epochs_with, evidence_of, faults, stored

from focalcal.lab.report.figures import figures, readable, save, view
from focalcal.lab.report.figures.view import as_file_name, unused
from focalcal.lab.store import Spec
from focalcal.pages.style import plain
from focalcal.predictions import Predictions

USUAL = (
    *("reliability", "temperature", "confidence", "epochs", "headline"),
    *("ranking-ece", "ranking-nll", "differences-ece", "differences-nll"),
)
HOSTILE = ("<script>alert(1)</script>", "$x_$", "$\\frac{", "50 % {}", "_hidden", "a\nb\x01", "n" * 200)


def test_every_figure_that_applies_and_no_other(evidence, nine, trained):
    assert figures(evidence_of([])) == {}
    assert set(figures(evidence, runs=nine)) == {f"{name}-digits-small_cnn" for name in USUAL}
    runs = [*trained["posterior"], trained["saliency"], trained["adafocal"]]
    found = figures(evidence_of(runs, details=True), runs=runs)
    alone = {name for name in USUAL if not name.startswith("differences")}  # one seed
    assert {name for name in found if "gaussian" not in name} == {
        *(f"{name}-digits-small_cnn" for name in alone),
        *(f"{name}-digits-mlp" for name in (*alone, "gammas")),
        "saliency-digits-small_cnn-ce-0",
    }
    assert "posterior-gaussian_mixture-mlp" in found
    assert all(display.title and display.frame().rows() for display in found.values())
    without = figures(evidence_of(runs))
    assert set(found) - set(without) == {"posterior-gaussian_mixture-mlp", "saliency-digits-small_cnn-ce-0"}


def test_surfaces_get_the_operating_point_of_their_setting(store):
    runs = [stored(store, options={"gamma": g, "lam": lam}) for g in (1.0, 2.0) for lam in (0.5, 1.0)]
    found = figures(evidence_of(runs), operating_points={"digits/small_cnn": (2, 0.5), "other/net": (1, 1)})
    assert found["surface-ece-digits-small_cnn"].facts["operating_point"] == (2.0, 0.5)
    assert found["surface-nll-digits-small_cnn"].facts["metric"] == "nll"


def test_several_labels_have_no_reliability_but_epochs(store):
    many = Predictions(logits=[[0.5, -1.0], [1.0, 2.0]], labels=[[1, 0], [0, 1]], split="test", multilabel=True)
    run = store.add(
        Spec(data_set="xray", model="cnn", objective="multilabel_fcl", seed=0, training={}),
        record={"metrics": {"test": {"nll": 0.5}}, "provenance": {}, "seconds": 1, "epochs": 1},
        epochs=epochs_file(store.path / "lines", epochs_with([0.5, 0.25])),
        predictions=[many],
    )
    assert list(figures(evidence_of([run]), runs=[run])) == ["epochs-xray-cnn", "ranking-nll-xray-cnn"]


@pytest.mark.parametrize(
    ("data_set", "names"), [("<script>alert('$x_$ %')</script>", HOSTILE[:3]), ("n" * 200 + "$", HOSTILE[3:])]
)
def test_names_from_outside_are_shown_as_they_are(store, tmp_path, data_set, names):
    runs = [stored(store, name, data_set=data_set, epochs=epochs_with([1.0, 0.5])) for name in names]
    runs += [
        stored(store, data_set=data_set, options={"gamma": gamma, "lam": lam})
        for gamma in (0.0, 1.0)
        for lam in (0.0, 1.0)
    ]
    found = figures(evidence_of(runs), runs=runs)
    assert len(found) == 9
    for key, display in found.items():
        assert key == os.path.basename(key)
        assert len(key) <= 120
        if key.startswith(("temperature", "confidence", "ranking-nll", "surface-nll", "headline")):
            continue  # drawn like reliability, and like the ranking of ECE
        figure = display.plot()
        assert faults(figure) == []  # which draws every text
        if key.startswith("epochs"):
            legend = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
            assert sorted(legend) == sorted(plain(name, longest=30) for name in names)
    pdf, png = save(found[key], tmp_path / "figures", key)
    assert (pdf.read_bytes()[:4], png.read_bytes()[1:4]) == (b"%PDF", b"PNG")


def test_names_that_become_the_same_file_are_told_apart(store):
    runs = [stored(store, data_set=name, model="m") for name in ("a b", "a:b", "A b")]
    found = figures(evidence_of(runs))
    assert [name for name in found if name.startswith("reliab")] == [
        "reliability-a-b-m",
        "reliability-a-b-m-2",
        "reliability-A-b-m-3",
    ]


def test_a_grid_does_not_crowd_out_the_other_objectives(store):
    runs = [stored(store, "ce"), stored(store, "brier")]
    runs += [stored(store, options={"gamma": float(g), "lam": float(lam)}) for g in range(4) for lam in range(5)]
    evidence = evidence_of(runs)
    assert readable(evidence, "digits/small_cnn") == ["ce", "brier"]
    found = figures(evidence)
    assert {row["objective"] for row in found["reliability-digits-small_cnn"].rows} == {"ce", "brier"}
    assert [len(row["lam"]) for row in found["surface-ece-digits-small_cnn"].rows] == [5] * 4


def test_damaged_files_are_told_and_the_rest_is_drawn(store, trained):
    run = trained["saliency"]
    copied = store.add(
        run.spec,
        record=run.record,
        epochs=None,
        predictions=[run.predictions("test")],
        files={"saliency.npz": run.file("saliency.npz")},
    )
    (copied.path / "saliency.npz").write_bytes(b"x" * (copied.path / "saliency.npz").stat().st_size)
    with pytest.warns(UserWarning, match="there is no figure of the saliency of Run.*was changed after it was stored"):
        found = figures(evidence_of([copied]), runs=[copied])
    assert "reliability-digits-small_cnn" in found
    assert not [name for name in found if name.startswith("saliency")]


def test_saved_files_are_the_same_every_time(evidence, tmp_path):
    made = [figures(evidence)["epochs-digits-small_cnn"] for _ in range(2)]
    first, second = (save(display, tmp_path / str(at), "it") for at, display in enumerate(made))
    assert [path.name for path in first] == ["it.pdf", "it.png"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert b"Date" not in first[0].read_bytes()
    assert b"tIME" not in first[1].read_bytes()
    assert sorted(os.listdir(tmp_path / "0")) == ["it.pdf", "it.png"]
    for name in ("", "../up", ".hidden"):
        with pytest.raises(ValueError, match="name must be that of a file"):
            save(made[0], tmp_path, name)


def test_without_matplotlib_the_extra_is_named(evidence, monkeypatch):
    display = figures(evidence)["epochs-digits-small_cnn"]
    assert display.frame().rows()  # numbers need none
    for module in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install .+"):
        display.plot()


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a$b$", r"a\$b\$"), ("_x", " _x"), ("a\nb", "a?b"), ("abcdefghij", "abc…ij"), ("\ud800", "?")],
)
def test_plain_text(text, shown):
    assert plain(text, longest=6) == shown


def test_no_name_leaves_its_folder_or_takes_anothers_place():
    assert doctest.testmod(view).failed == 0
    taken = []
    for name in ("../../up", "..", "", "a/b", "a b", "A b", "x" * 500):
        taken.append(unused(as_file_name(name), taken))
        assert taken[-1].strip(".-") == taken[-1] != ""
        assert "/" not in taken[-1]
        assert len(taken[-1]) < 200
    assert len({name.lower() for name in taken}) == len(taken)
