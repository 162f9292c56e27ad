"""The numbers of the paper's text that stored runs can answer, each with the query that does; `text.toml` has them.

What its text repeats from its tables is not there; `python -m paper.theory` and `python -m paper.overhead` show the
paper's numbers beside their own.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import Literal

from paper.claims.printed_numbers import FOLDER
from paper.claims.queries import Query, named_query

Unit = Literal["", "%", "points"]  # a point is a hundredth
READ_INTO_IT = (  # what the text leaves open
    "Not printed in the paper, and read into it: lam = 0, 0.25, 0.5 and 1 on cifar100/resnet110; the settings of the "
    "three gammas, in its order; AUROC as what 4 of 14 findings are won on; 14 of 28, which its totals leave. Its 1 "
    "and 0.2 points are bounds."
)


@dataclass(frozen=True)
class TextNumber:
    """A number of the text: what it says, as printed ("0.18", "5 of 9"), where, and which study and query give ours."""

    what: str
    printed: str
    unit: Unit
    section: str
    study: str
    ours: Query


TEXT_NUMBERS = tuple(
    TextNumber(
        number["what"],
        number["printed"],
        number.get("unit", ""),
        number["section"],
        number["study"],
        named_query(**number["query"]),
    )
    for number in tomllib.loads((FOLDER / "text.toml").read_text("utf-8"))["number"]
)
