"""Stored runs to draw: quick ones of synthetic predictions, and a few that were really trained."""

import itertools
import json
from dataclasses import replace
from pathlib import Path

import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg

from focalcal.lab.evidence.evidence import gather
from focalcal.lab.store import Evaluations, Protocol, Run, Spec, Store
from focalcal.lab.studies.run import run_spec
from focalcal.lab.studies.spec_builder import spec_of
from focalcal.lab.training import recipe
from focalcal.metrics import summary
from focalcal.predictions import Predictions
from support.small_runs import digits_spec

NINE = ("ce", "focal", "brier", "mmce", "ls", "flsd53", "dual_focal", "adafocal", "fcl")


def predicted(seed=0, rows=400, classes=4, sharpness=2.0, split="test", **fields) -> Predictions:
    """Logits whose softmax is overconfident for a sharpness above 1."""
    random = torch.Generator().manual_seed(seed)
    truth = 1.5 * torch.randn(rows, classes, generator=random, dtype=torch.float64)
    labels = torch.multinomial(truth.softmax(1), 1, generator=random)[:, 0]
    return Predictions(logits=(sharpness * truth).float(), labels=labels, split=split, **fields)


def stored(
    store: Store,
    objective="fcl",
    *,
    seed=0,
    data_set="digits",
    model="small_cnn",
    options=(),
    predictions=None,
    metrics=(),
    epochs=(),
    training=(("epochs", 2),),
) -> Run:
    """A run without training; its metrics are those of its predictions, but for `metrics`."""
    made = predicted(seed) if predictions is None else predictions
    test = {**summary(**{made.kind: made.scores}, labels=made.labels).as_dict(), **dict(metrics)}
    record = {"metrics": {"test": test}, "provenance": {}, "seconds": 1.0, "epochs": len(epochs)}
    path = epochs_file(store.path / "epochs-to-store", epochs) if epochs else None
    spec = Spec(
        data_set=data_set,
        model=model,
        objective=objective,
        objective_options=dict(options),
        seed=seed,
        training=dict(training),
    )
    return store.add(spec, record=record, epochs=path, predictions=[made])


def epochs_file(path: Path, epochs) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in epochs))
    return path


def evidence_of(runs, **options):
    return gather(runs, title="a study", **options)


def epochs_with(values):
    """Records of epochs with these NLLs of the test split."""
    return [{"epoch": at, "test": {"nll": value}} for at, value in enumerate(values, 1)]


def known_posterior_runs(store: Store) -> list[Run]:
    """Really trained, for an epoch, on data whose posterior is known."""
    base = replace(recipe("gaussian_mixture_mlp_lite"), epochs=1, batch_size=32)
    size = Protocol(train_examples=128, test_examples=64)
    cells = [("ce", {}), ("mmce", {}), ("fcl", {"gamma": 3.0, "lam": 1.0})]
    return [run_spec(spec_of(base, name, options, seed=0, protocol=size), store) for name, options in cells]


def saliency_run(store: Store) -> Run:
    base = replace(recipe("digits_small_cnn_lite"), epochs=1, batch_size=64)
    spec = spec_of(base, "ce", seed=0, protocol=Protocol(train_examples=128))
    return run_spec(spec, store, evaluations=Evaluations(saliency=5))


def adafocal_run(store: Store) -> Run:
    return run_spec(digits_spec("adafocal", epochs=3), store)


def faults(figure) -> list[str]:
    """Texts and legends that leave the page or lie on each other, and axes whose parts overlap."""
    canvas = FigureCanvasAgg(figure)
    renderer, page = canvas.get_renderer(), figure.bbox
    parts = [*figure.axes, *figure.legends, *(text for text in figure.texts if text.get_text())]
    boxes = [(str(part), part.get_tightbbox(renderer)) for part in parts]
    slack = 1.0
    found = [
        f"{name} leaves the page"
        for name, box in boxes
        if box.x0 < -slack or box.y0 < -slack or box.x1 > page.x1 + slack or box.y1 > page.y1 + slack
    ]
    for (one, first), (other, second) in itertools.combinations(boxes, 2):
        width = min(first.x1, second.x1) - max(first.x0, second.x0)
        height = min(first.y1, second.y1) - max(first.y0, second.y0)
        if width > slack and height > slack:
            found.append(f"{one} overlaps {other}")
    return found


def font_sizes(figure) -> list[float]:
    from matplotlib.text import Text

    return [text.get_fontsize() for text in figure.findobj(Text) if text.get_text()]
