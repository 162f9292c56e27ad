"""Numbers printed in the paper on Focal Calibration Loss, to stand beside ours and never in their place.

`cells.csv` has its tables, and what its text says of single cells, with the digits it prints; `text.toml` the other
numbers of its text. The supplement's tables are not here. Other runs on other machines, and often another protocol:
`against_paper` says which.
"""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from focalcal.pages.numbers import Printed

Protocol = Literal["main", "common split", "fine-tuned", "from scratch"]

FOLDER = Path(__file__).parent
GROUPS: dict[str, tuple[Any, ...]] = {
    name: tuple(values) for name, values in tomllib.loads((FOLDER / "groups.toml").read_text("utf-8")).items()
}
"""What names of settings, objectives and lam stand for."""
VISION, CIFAR10, TRANSFORMERS = GROUPS["vision"], GROUPS["cifar10"], GROUPS["transformers"]
TEN_SEED_SETTINGS = GROUPS["ten seeds"]  # and of the common split: the same three
OBJECTIVES, SURFACE_LAMS = GROUPS["table 1"], GROUPS["surface lams"]


@dataclass(frozen=True)
class PaperNumber:
    """A number of the paper, in percent or not, and the standard deviation that it prints beside it, if any."""

    value: Printed
    deviation: Printed | None
    percent: bool
    source: str


def _rows(name: str) -> list[dict[str, str]]:
    with open(FOLDER / name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


_CELLS = {
    (row["protocol"], row["setting"], row["objective"], row["metric"]): PaperNumber(
        Printed(row["value"]),
        Printed(row["deviation"]) if row["deviation"] else None,
        row["percent"] == "1",
        row["source"],
    )
    for row in _rows("cells.csv")
}
# AUROC that others reported for the findings of ChestX-ray14, as CheXNet's authors list them; their splits are others.
# Wang et al. (2017), Yao et al. (2017), Rajpurkar et al. (2017, CheXNet).
LITERATURE_AUROC = {row.pop("finding"): row for row in _rows("literature_auroc.csv")}
LITERATURE = tuple(LITERATURE_AUROC["Hernia"])


def paper_number(setting: str, objective: str, metric: str, *, protocol: Protocol = "main") -> PaperNumber | None:
    """What the paper prints for a cell under a protocol, or None.

    >>> paper_number("cifar10/resnet50", "fcl", "error").value.text
    '4.58'
    """
    return _CELLS.get((protocol, setting, objective, metric))


def table_cells() -> Iterator[tuple[Protocol, str, str, str]]:
    """Protocol, setting, objective and metric of every cell that `paper_number` knows, in the paper's order."""
    yield from _CELLS  # type: ignore[misc]  # the protocols of the file are those


def study_of(protocol: Protocol, setting: str) -> str:
    """The study that has the paper's cells of a setting."""
    named: dict[str, str] = {"common split": "adafocal", "fine-tuned": "transformer-finetune"}
    model = setting.partition("/")[2]
    return named.get(protocol, {"gp_cnn": "text", "chexnet": "chestxray"}.get(model, "vision"))


def literature_auroc(finding: str) -> dict[str, Printed]:
    """What others reported for one finding, by author; nothing for a finding that is not known."""
    return {author: Printed(value) for author, value in LITERATURE_AUROC.get(finding, {}).items()}
