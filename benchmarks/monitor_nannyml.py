"""What `nannyml` says of the streams that `python benchmarks/monitor.py peers FOLDER` has written.

    python -m venv /tmp/nannyml && /tmp/nannyml/bin/pip install nannyml statsmodels
    /tmp/nannyml/bin/python benchmarks/monitor_nannyml.py FOLDER

In an environment of its own: it needs no focalcal. The reference are the first 20 periods of 500 rows; a drift begins
after 60 more. Realised accuracy with its default thresholds (three standard deviations of the reference's chunks), and
CBPE, which estimates accuracy without outcomes.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

os.environ["NML_DISABLE_USAGE_LOGGING"] = "1"  # before the import: else every call reports to its makers' server
import nannyml
import numpy as np
import pandas

REFERENCE, BEFORE, ROWS, STREAMS = 20, 60, 500, 20


def judged(rows: pandas.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each period after the reference: alerts of realised accuracy, and accuracy estimated and realised."""
    frame = rows.assign(said=1).rename(columns={"correct": "truth"})
    reference, later = frame[: REFERENCE * ROWS], frame[REFERENCE * ROWS :]
    columns = {"y_pred": "said", "y_true": "truth", "y_pred_proba": "p", "problem_type": "classification_binary"}
    realised = nannyml.PerformanceCalculator(metrics=["accuracy"], chunk_size=ROWS, **columns).fit(reference)
    estimated = nannyml.CBPE(metrics=["accuracy"], chunk_size=ROWS, **columns).fit(reference)
    of = realised.calculate(later).filter(period="analysis").to_df()["accuracy"]
    guess = estimated.estimate(later).filter(period="analysis").to_df()["accuracy"]
    return of["alert"].to_numpy(bool), guess["value"].to_numpy(), of["value"].to_numpy()


def main(folder: Path) -> None:
    warnings.simplefilter("ignore")
    for file in sorted(folder.glob("*.parquet"), key=lambda path: int(path.stem)):
        early, delays, errors = 0, [], []
        for _, rows in pandas.read_parquet(file).groupby("stream"):
            if len(delays) == STREAMS:
                break
            alerts, guess, came = judged(rows[["p", "correct"]].reset_index(drop=True))
            early += alerts[:BEFORE].any()
            after = np.flatnonzero(alerts[BEFORE:])
            delays.append(after[0] + 1 if len(after) else np.inf)
            errors += np.abs(guess - came)[:BEFORE].tolist()
        drift = int(file.stem) / 10
        print(
            f"drift of {drift:.0f} points: alert before it in {early} of {len(delays)} streams; median periods to the"
        )
        print(
            f"  first alert after it {np.median(delays):.0f}; mean absolute error of CBPE {100 * np.mean(errors):.2f}"
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
