"""The claims of the paper about trained networks that stored runs can bear out or not; `claims.toml` has them."""

from __future__ import annotations

import tomllib

from paper.claims.paper_runs import PaperRuns
from paper.claims.printed_numbers import FOLDER
from paper.claims.queries import named_query
from paper.claims.verdicts import Claim, ClaimPart, JudgedClaim, JudgedPart

CLAIMS = tuple(
    Claim(
        claim["says"],
        claim["section"],
        claim["study"],
        tuple(
            ClaimPart(
                **{name: value for name, value in part.items() if name != "query"}, ours=named_query(**part["query"])
            )
            for part in claim["parts"]
        ),
    )
    for claim in tomllib.loads((FOLDER / "claims.toml").read_text("utf-8"))["claim"]
)


def judged_claims(runs: PaperRuns) -> list[JudgedClaim]:
    """All of them, in the paper's order."""
    return [JudgedClaim(claim, tuple(JudgedPart(part, part.ours(runs)) for part in claim.parts)) for claim in CLAIMS]
