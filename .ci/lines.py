"""Lines of Python per package, beside the table of docs/architecture.md, which is the budget.

python .ci/lines.py            what exceeds its number by more than 2 %; exit code 1 if anything does
python .ci/lines.py --write    the table again, with what is there now
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
_ROW = re.compile(r"^\| `([\w/.]+)` \| ([\d,]+) \|$", re.MULTILINE)
_TABLE = re.compile(r"(?<=\| package \| lines \|\n\|---\|---:\|\n)(?:\|.*\|\n)+")
_TOLERANCE = 1.02


def lines_per_package(root: Path = ROOT) -> dict[str, int]:
    """Of every package of src, of the laboratory's, of paper and of tests: files of Python, blank lines included."""
    package = root / "src" / "focalcal"
    folders = [*_packages(package), *_packages(package / "lab"), root / "paper", root / "tests"]
    whole = (folder for folder in folders if folder != package / "lab")
    return {str(folder.relative_to(root)): sum(map(_lines, folder.rglob("*.py"))) for folder in whole}


def budgets(page: str) -> dict[str, int]:
    """The numbers of the table."""
    return {name: int(lines.replace(",", "")) for name, lines in _ROW.findall(page)}


def excesses(measured: dict[str, int], budget: dict[str, int]) -> list[str]:
    """One sentence for each package that has outgrown its number, or has none."""
    return [
        f"{name} has {lines:,} lines where docs/architecture.md has {budget.get(name, 0):,}: take something away, "
        "or say why in the commit and run python .ci/lines.py --write"
        for name, lines in measured.items()
        if lines > _TOLERANCE * budget.get(name, 0)
    ]


def rewritten(page: str, measured: dict[str, int]) -> str:
    """The page with these numbers."""
    rows = "".join(f"| `{name}` | {lines:,} |\n" for name, lines in measured.items())
    text, count = _TABLE.subn(rows, page)
    if count != 1:
        raise ValueError(f"{PAGE} must have one table of lines per package, got {count}")
    return text


def _packages(folder: Path) -> Iterator[Path]:
    return (path.parent for path in sorted(folder.glob("*/__init__.py")))


def _lines(path: Path) -> int:
    return len(path.read_text("utf-8").splitlines())


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(rewritten(PAGE.read_text(), lines_per_package()))
    else:
        found = excesses(lines_per_package(), budgets(PAGE.read_text()))
        print("\n".join(found))
        sys.exit(bool(found))
