"""The table of networks in docs/guide/models.md; run as a script, this file prints it."""

from pathlib import Path

import pytest
import torch

from focalcal.lab.models import IMAGENET, MODEL_INFO, MODELS, PLUS_MINUS_ONE, ModelInfo, build_model

HEAD = ("name", "one input", "classes", "parameters", "normalisation")
CLASSES = {
    "resnet50_tiny": 200,
    "chexnet": 14,
    "minilm": 4,
    **dict.fromkeys(("gp_cnn", "dan"), 20),
    **dict.fromkeys(("vit_small", "deit_small", "swin_tiny"), 100),
}
NORMALISATIONS = {None: "the data set's", IMAGENET: "`IMAGENET`", PLUS_MINUS_ONE: "`PLUS_MINUS_ONE`"}


def model_table() -> str:
    """One row per entry of MODELS: its input, and its parameters for the number of classes that it is used with.

    Needs `transformers` for the three that come from there; none of them is given memory.
    """
    rows = [HEAD, ("---",) * len(HEAD), *(_row(name, MODEL_INFO[name]) for name in MODELS)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def _row(name: str, info: ModelInfo) -> tuple[str, ...]:
    classes = CLASSES.get(name, 10)
    options = {"features": 64} if info.inputs == "features" else {}
    with torch.device("meta"):
        network = build_model(name, classes=classes, **options)
    shape = info.shape or tuple(options.values())
    return (
        f"`{name}`",
        f"{info.inputs} {'x'.join(map(str, shape))}",
        str(classes),
        f"{sum(weight.numel() for weight in network.parameters()):,}",
        NORMALISATIONS[info.normalisation] if info.inputs == "images" else "-",
    )


GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "models.md"


def test_the_guide_repeats_the_table():
    pytest.importorskip("transformers")
    table = model_table()
    assert table in GUIDE.read_text()
    assert [row.split("`")[1] for row in table.splitlines()[2:]] == list(MODELS)
    assert "| `vit_small` | images 3x224x224 | 100 | 21,704,164 | `PLUS_MINUS_ONE` |" in table
    assert "| `mlp` | features 64 | 10 | 85,002 | - |" in table


if __name__ == "__main__":
    print(model_table(), end="")
