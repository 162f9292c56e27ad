"""A table to try an audit on: scores of an overfitted model for simulated patients of three hospitals in one year.

python examples/scores.py > scores.csv
focalcal audit scores.csv --score score --labels outcome --groups site --time month --out audit

docs/images/audit.png is the first screen of audit/audit.html, 1,200 pixels wide.
"""

import csv
import sys

import numpy as np
from sklearn.linear_model import LogisticRegression

random = np.random.default_rng(0)
rows, measured = 6000, 40
site, month = random.choice(["north", "south", "west"], rows, p=[0.5, 0.3, 0.2]), random.integers(1, 13, rows)
values = random.normal(size=(rows, measured))
log_odds = values @ (random.normal(size=measured) / 5) - 1.5
log_odds += 0.8 * (site == "west") + 0.7 * (month >= 10)  # what the model is not told
outcome = random.random(rows) < 1 / (1 + np.exp(-log_odds))

known = (np.arange(rows) < 400) & (site != "west") & (month < 10)  # few rows for so many measurements
model = LogisticRegression(C=100, max_iter=1000).fit(values[known], outcome[known])
scores = model.predict_proba(values)[:, 1]

table = csv.writer(sys.stdout, lineterminator="\n")
table.writerow(["score", "outcome", "site", "month"])
for row in np.flatnonzero(~known):
    table.writerow([f"{scores[row]:.6f}", int(outcome[row]), site[row], f"2025-{month[row]:02}"])
