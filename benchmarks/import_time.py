"""Does focalcal make a script start more slowly?

    python benchmarks/import_time.py [--rounds N]

Fresh interpreters in turn, CPU time of each: `import torch`, a loss imported and constructed, `import torch`
again as a control. To reach: the loss within 1.15 of `import torch`.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys

SCRIPTS = {
    "import torch": "import torch",
    "loss": "from focalcal import FocalCalibrationLoss; FocalCalibrationLoss()",
    "import focalcal": "import focalcal",
    "control": "import torch",
}


def cpu_seconds(code: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10, help="fresh interpreters of each kind (default 10)")
    rounds = parser.parse_args().rounds
    times: dict[str, list[float]] = {name: [] for name in SCRIPTS}
    for _ in range(rounds):
        for name, code in SCRIPTS.items():
            times[name].append(cpu_seconds(code))
    base = statistics.median(times["import torch"])
    print(f"import torch: {base:.2f} s of CPU time\n\n| script | / import torch |\n|---|---:|")
    for name, code in SCRIPTS.items():
        print(f"| `{code}`{' (control)' if name == 'control' else ''} | {statistics.median(times[name]) / base:.2f} |")


if __name__ == "__main__":
    main()
