"""The lists of docs/architecture.md are enough: what is added in the files that they name passes every contract."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
METRIC = '''
"""The square of the confidence gap."""

from focalcal.core.arrays import Array
from focalcal.core.binning import BinSums


def squared_gap_of(bins: BinSums) -> Array:
    """The square of mean confidence minus accuracy. No bins take part."""
    count, confidence, correct = bins.parts
    gap: Array = ((confidence - correct).sum(-1) / count.sum(-1)) ** 2
    return gap
'''
LOSS = '''
"""Focal loss with gamma = 1."""

from typing import Unpack

from torch import Tensor

from focalcal.losses.engines import focal_family
from focalcal.losses.module import CommonOptions, FocalFamilyLoss
from focalcal.losses.scale import terms_of


def two_anchors(logits: Tensor, target: Tensor) -> Tensor:
    """-(1 - p_y) log p_y of each example.

    Args:
        logits: (N, K) or (N, K, d1, ...).
        target: class indices (N, d1, ...) or probabilities of the shape of the logits.

    Returns:
        One value per example, (N, d1, ...).

    >>> import torch
    >>> two_anchors(torch.tensor([[0.0, 0.0]]), torch.tensor([0]))
    tensor([0.3466])
    """
    return focal_family(logits, target, terms_of(gamma=1.0), reduction="none")


class TwoAnchorsLoss(FocalFamilyLoss):
    """-(1 - p_y) log p_y.

    Args:
        weight, ignore_index, reduction: as in `nn.CrossEntropyLoss`.

    >>> import torch
    >>> TwoAnchorsLoss()(torch.tensor([[0.0, 0.0]]), torch.tensor([0]))
    tensor(0.3466)
    """

    def __init__(self, **common: Unpack[CommonOptions]) -> None:
        super().__init__(**common)

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """The reduced loss."""
        weight = self._buffers["weight"]
        return focal_family(
            logits, target, terms_of(gamma=1.0), weight, self.ignore_index, self.reduction, self.engine
        )
'''
CALIBRATOR = '''
"""Temperature scaling of which a hundredth is uniform."""

from typing import Any

from focalcal.posthoc.temperature import TemperatureScaling


class GuardedTemperature(TemperatureScaling):
    """0.99 softmax(logits / T) + 0.01 / K.

    Args:
        temperature: a T that is known already.

    >>> GuardedTemperature(temperature=1.0).predict_proba([[0.0, 0.0]])
    array([[0.5, 0.5]])
    """

    def _map(self, logits: Any, **learnt: Any) -> Any:
        return 0.99 * super()._map(logits, **learnt) + 0.01 / logits.shape[1]
'''
# By kind and by file of its list: what is put before a line of it, or the whole of a new file.
ADDITIONS = {
    "metric": {
        "src/focalcal/metrics/<name>.py": METRIC,
        "src/focalcal/metrics/table.py": {
            "from focalcal.metrics.sources import": "from focalcal.metrics.squared_gap import squared_gap_of\n",
            "top_k_accuracy = Metric(": 'squared_gap = Metric("squared_gap", "Squared gap", FromBins(squared_gap_of, '
            'binned=False), adapter="SquaredGap")\n',
            '    "top_k_accuracy",\n]': '    "squared_gap",\n',
        },
    },
    "loss": {
        "src/focalcal/losses/<name>.py": LOSS,
        "src/focalcal/losses/functional.py": {
            "\n__all__": "from focalcal.losses.two_anchors import two_anchors\n",
            "]\n": '    "two_anchors",\n',
        },
        "src/focalcal/losses/__init__.py": {
            "\nLOSSES": "from focalcal.losses.two_anchors import TwoAnchorsLoss\n",
            '        "multilabel_bce"': '        "two_anchors": TwoAnchorsLoss,\n',
            '    "functional",': '    "TwoAnchorsLoss",\n',
        },
    },
    "calibrator": {
        "src/focalcal/posthoc/<name>.py": CALIBRATOR,
        "src/focalcal/posthoc/__init__.py": {
            "\n__all__": "from focalcal.posthoc.guarded_temperature import GuardedTemperature\n",
            "    },\n)": '        "guarded_temperature": GuardedTemperature,\n',
            '    "HistogramBinning",\n': '    "GuardedTemperature",\n',
        },
    },
}
NAMES = {"metric": "squared_gap", "loss": "two_anchors", "calibrator": "guarded_temperature"}


def listed(kind):
    """The files of the package that the list of docs/architecture.md names, in its order."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    return re.findall(r"^\d\. `(src/[^`]+)`", text.partition(f"\n**A {kind}**\n")[2].partition("\n**")[0], re.MULTILINE)


@pytest.mark.parametrize("kind", ADDITIONS)
def test_the_list_is_short(kind):
    assert listed(kind) == [*ADDITIONS[kind]]
    assert len(listed(kind)) <= (3 if kind == "loss" else 2)


@pytest.mark.slow
def test_what_is_added_passes_the_contracts(tmp_path):
    unwanted = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for part in ("src", "tests", "paper"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=unwanted)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for kind, files in ADDITIONS.items():
        for file, added in files.items():
            path = tmp_path / file.replace("<name>", NAMES[kind])
            if isinstance(added, str):
                path.write_text(added.lstrip())
                continue
            text = path.read_text()
            for before, line in added.items():
                assert before in text, (file, before)
                text = text.replace(before, line + before, 1)
            path.write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow"]
    chosen = ["tests/contracts", "-k", " or ".join(["TwoAnchors", "GuardedTemperature", *NAMES.values()])]
    environment = os.environ | {"PYTHONPATH": f"{tmp_path / 'src'}{os.pathsep}{tmp_path}"}
    done = subprocess.run([*command, *chosen], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 60
