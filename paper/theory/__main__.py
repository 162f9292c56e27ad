"""Solve the paper's numerical study again, and write tables, a figure and a page.

    python -m paper.theory [--out FOLDER] [--no-cross-check]

The folder is docs/results/theory unless another is named; it is made if need be, and files of these names are replaced.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from focalcal.lab.cli.progress import bar
from paper.theory.result_files import write_study
from paper.theory.theory_study import run_study

PUBLISHED = Path(__file__).parents[2] / "docs" / "results" / "theory"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=PUBLISHED)
    parser.add_argument(
        "--cross-check",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="solve everything again with SLSQP, which takes minutes",
    )
    asked = parser.parse_args()
    with bar("cross-checking") as progress:
        solved = run_study(cross_check=asked.cross_check, progress=progress)
    for path in write_study(solved, asked.out):
        print(path)


if __name__ == "__main__":
    main()
