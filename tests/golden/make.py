"""Write the golden files: `python tests/golden/make.py`, or only those named, `... make.py metrics theory`.

What they hold is what the library computes now; look at the difference before you commit it.
"""

import os
import sys
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # as tests run
sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from golden.tables import TABLES  # noqa: E402
from golden.values import FOLDER, store  # noqa: E402

for name in sys.argv[1:] or TABLES:
    store(name, {case: one.value() for case, one in TABLES[name].items()})
    print(f"{name}.json: {len(TABLES[name])} cases, {(FOLDER / f'{name}.json').stat().st_size:,} bytes")
