"""Phrases that plain technical English says otherwise, in every file of the repository. `make check` runs this."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
_UNITS = "row|run|label|class|core|example|epoch|setting|cell|bin|metric|process|worker|image|element|line|batch|seed"
_NOT_COUNTED = "in|of|by|through|are|is|was|that|as|to|with|for|from|gives?|at|on|like|or|and|than|not|has|have|makes?"
PHRASES = {
    rf"\b(?:one|an?|two|three|four|several) (?!(?:{_NOT_COUNTED})\b)[a-z]{{2,}} an? (?:{_UNITS})\b"
    r"(?!'| (?:has|have|of)\b)": "per",
    rf"\b(?:bytes|once) an? (?:{_UNITS})\b(?! (?:is|has)\b)": "per",
    r"\bmend(?:s|ed|ing)?\b": "fix",
    r"\brivals\b": "baselines, other classes",
    r"\bone a core\b": "one per core",
    r"\bhad back\b": "recovered",
    r"\bOf weights, order\b|\bOf the Ray cluster\b|\bColours: as the system\b": "a full sentence",
    r"\blies there\b|\bwhere data sets\s+lie\b": "is there, are kept",
    r"\bturns the order round\b": "reverses the order",
    r"\bat an error of [\d.]+ % \(before\b|\bright about itself\b": "from ... to ...; calibrated, overfits",
    r"\bWhat all of them share: \d+ facts\b": "what the facts are",
}
_QUOTING = {".ci/wording.py", "tests/docs/test_wording.py"}  # files that say what not to say
_TEXT = {".py", ".md", ".toml", ".c", ".h", ".cff", ".j2", ".css", ".js", ".yml", ".sh", ""}


def faults(path: Path, text: str) -> list[str]:
    """One line per phrase found, as compilers print them."""
    found = []
    for pattern, remedy in PHRASES.items():
        for match in re.finditer(pattern, text, re.IGNORECASE):
            line = text.count("\n", 0, match.start()) + 1
            found.append(f"{path}:{line}: {' '.join(match[0].split())!r}; say: {remedy}")
    return found


def main() -> int:
    """The number of files with such a phrase, at most 1."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = [Path(name) for name in listed.splitlines() if Path(name).suffix in _TEXT and name not in _QUOTING]
    found = [fault for path in files if (ROOT / path).is_file() for fault in faults(path, (ROOT / path).read_text())]
    print(*found, sep="\n", end="\n" if found else "")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
