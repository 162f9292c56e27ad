"""One call that chooses a calibrator: all are cross-fitted on the same folds, one is kept and fitted on all rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from focalcal.core.arrays import as_values
from focalcal.core.checks import one_of, whole_number
from focalcal.core.display import Displayed, text_table
from focalcal.posthoc.calibrator_inputs import labelled_rows
from focalcal.posthoc.comparison import (
    LEAST_ROWS,
    MOST_ROWS,
    SIMPLEST_FIRST,
    WITH_ZEROS,
    CalibratorCandidate,
    Rated,
    Score,
    named_candidates,
    rated_rows,
    row_losses,
)
from focalcal.posthoc.cross_fit import FOLDS, fitted_quietly
from focalcal.posthoc.estimator import clone
from focalcal.posthoc.mixture import CalibratorMixture, pooled_weights, share_of_evidence
from focalcal.posthoc.temperature import TemperatureScaling

if TYPE_CHECKING:
    from focalcal.core.arrays import Labels
    from focalcal.posthoc.calibrator import Calibrator

Preference = Literal["simple", "best"]
AS_THEY_ARE = "as they are"
_LITTLE = 0.05  # of what the best map gains: so much a simpler one may leave


@dataclass(frozen=True, eq=False, repr=False)
class CalibratorChoice(Displayed):
    """Every calibrator that was tried, best first, and which of them was chosen.

    Attributes:
        tried: the candidates, best first.
        chosen: its name; None if none lowers the score, so that the probabilities stay as they are.
        shown: whether it is shown to lower the score of rows that it was not fitted on.
        rows: that they were compared on, a uniform sample if there are more.
        raw_nll: the NLL of the scores as they are.
        raw_brier: their Brier score.
        left_out: names of calibrators that were not tried, and why.
        by: "nll" or "brier", by which they were compared.
        prefer: "simple" or "best", as it was asked for.
        weights: of the calibrators that are mixed, where `chosen` is "mixture"; what is left of 1 is uniform.
        mixed: the NLL of the mixture on rows that neither its calibrators nor its weights were fitted on.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(size=(2000, 3))
    >>> labels = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    >>> choice = calibrate(3 * logits, labels, candidates=["temperature", "vector"]).choice_
    >>> choice.chosen, choice.shown, len(choice.tried)
    ('temperature', True, 2)
    """

    tried: tuple[CalibratorCandidate, ...]
    chosen: str | None
    shown: bool
    rows: int
    raw_nll: float
    raw_brier: float
    left_out: dict[str, str]
    by: Score = "nll"
    prefer: Preference = "simple"
    weights: dict[str, float] = field(default_factory=dict)
    mixed: float = float("nan")

    @property
    def sentence(self) -> str:
        """Which calibrator, and why."""
        title, raw = ("NLL", self.raw_nll) if self.by == "nll" else ("Brier score", self.raw_brier)
        judged = f"on {self.rows:,} rows in {FOLDS} folds, each judged by what was fitted on the others"
        least = self.tried[0]
        if self.chosen is None:
            return (
                f"Keep the probabilities: no calibrator lowers the {title} of {raw:.4f} {judged}; the best, "
                f"{least.name}, has {getattr(least, self.by):.4f}."
            )
        if self.weights:
            parts = ", ".join(f"{name} {share:.2f}" for name, share in self.weights.items())
            what = parts if self.weights == {AS_THEY_ARE: 1.0} else f"mixture of {parts}"
            return (
                f"{what}: {title} {self.mixed:.4f} after {raw:.4f}, {judged}; the best single one, "
                f"{least.name}, has {getattr(least, self.by):.4f}."
            )
        kept = next(candidate for candidate in self.tried if candidate.name == self.chosen)
        values = f"{title} {getattr(kept, self.by):.4f} after {raw:.4f}, {judged}"
        if not self.shown:
            return f"{kept.name}: none is shown to lower the {title}, and this is the simplest that may; {values}."
        values += too_sure(kept.nll, self.rows)
        if kept is least:
            return f"{kept.name}: the best of {len(self.tried)}, and no simpler one is within noise of it; {values}."
        noise = "noise" if self.prefer == "best" else "noise and a twentieth of the gain"
        return (
            f"{kept.name}: the simplest of {len(self.tried)} whose {title} is within {noise} of the best, {least.name} "
            f"with {getattr(least, self.by):.4f}; {values}."
        )

    def frame(self) -> dict[str, list[Any]]:
        """One row per calibrator, best first; `change` is that of the score which chose, with its 95 % interval."""
        changes = [each.change if self.by == "nll" else each.brier_change for each in self.tried]
        frame: dict[str, list[Any]] = {"calibrator": [each.name for each in self.tried]}
        frame |= {name: [getattr(each, name) for each in self.tried] for name in ("nll", "brier", "ece")}
        for name, attribute in (("change", "mean"), ("low", "low"), ("high", "high")):
            frame[name] = [float("nan") if change is None else getattr(change, attribute) for change in changes]
        frame["chosen"] = [each.name == self.chosen for each in self.tried]
        frame["seconds"] = [each.seconds for each in self.tried]
        return frame

    def __str__(self) -> str:
        """The sentence and the table."""
        return f"{self.sentence}\n{text_table(self.frame())}"


def calibrate(
    logits: Any = None,
    labels: Any = None,
    *,
    probs: Any = None,
    sample_weight: Any = None,
    candidates: Mapping[str, Calibrator] | Sequence[str] | str | None = None,
    prefer: Preference = "simple",
    by: Score = "nll",
    groups: Any = None,
    seed: int = 0,
    classes: Sequence[Any] | None = None,
    positive: Any = None,
    ignore_index: int | None = None,
) -> Calibrator:
    """The calibrator that these held-out rows support, fitted on all of them; `choice_` says which and why.

    Every candidate is fitted five times on four fifths of (at most 20,000 of) the rows and judged on the rest, by its
    mean NLL or Brier score. ECE never chooses: a map to the mean accuracy has none.

    Args:
        logits, probs: (N, K), one of them, or in any other form that calibrators take.
        labels: (N,), held-out ones: the network must not have been trained on them.
        sample_weight: (N,) how often each row counts, in fits and in scores.
        candidates: names of CALIBRATORS, or calibrators by names of your own; by default all that make sense for the
            number of rows and classes.
        prefer: "simple" for the simplest that is shown to help and is not shown, paired over rows at 95 %, to leave
            more than a twentieth of what the best one gains, nor, of two classes, to miss the rate of events. "best",
            for the lowest NLL, for a `CalibratorMixture` of all that never give an exact zero and the scores as they
            are, its weights of largest likelihood on rows that none was fitted on: of several maps the lowest score is
            too often luck, and their mean is better. Few rows or a small gain leave part of the weight, or all of it,
            with the scores as they are. With by="brier" it is the simplest that is not shown to be worse than the best
            one at all.
        by: "nll" or "brier".
        groups: (N,) names of rows that belong together, such as a patient's; they stay in one fold, and intervals are
            over groups.
        seed: of the order of the rows.
        classes, positive, ignore_index: as for `Calibrator.fit`.

    Returns:
        The fitted calibrator. Where none is shown to lower the score, the simplest is taken of those that do not raise
        it; where all raise it, the probabilities stay as they are (temperature scaling with T = 1).

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(size=(2000, 3))
    >>> labels = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    >>> fitted = calibrate(3 * logits, labels, candidates=["temperature", "vector"])  # three times too confident
    >>> fitted.choice_.chosen, round(fitted.temperature_)
    ('temperature', 3)
    """
    one_of("prefer", prefer, ("simple", "best"))
    one_of("by", by, ("nll", "brier"))
    about: dict[str, Any] = {"classes": classes, "positive": positive, "ignore_index": ignore_index}
    rated, calibrators, left_out, _ = asked(logits, labels, probs, sample_weight, candidates, groups, seed, **about)
    choice = choose(rated, calibrators, left_out, by=by, prefer=prefer)
    refuse_none(choice.tried, choice.left_out)
    kept = TemperatureScaling(temperature=1.0) if choice.chosen is None else clone(calibrators[choice.chosen])
    if prefer == "best" and by == "nll":
        kept, choice = mixed(rated, calibrators, choice) or (kept, choice)
    given: dict[str, Any] = {"logits": logits, "labels": labels, "sample_weight": sample_weight, "probs": probs}
    fitted: Calibrator = kept.fit(**given, **about)
    fitted.choice_ = choice
    return fitted


def asked(
    logits: Any, labels: Any, probs: Any, sample_weight: Any, candidates: Any, groups: Any, seed: int, **about: Any
) -> tuple[Rated, dict[str, Calibrator], dict[str, str], tuple[Any, ...] | None]:
    """A caller's rows in random order, at most 20,000 of them, and candidates; what is left out; names of classes."""
    whole_number("seed", seed, least=0, most=2**63 - 1, remedy="0 is usual")
    rows = labelled_rows(
        logits, labels, probs=probs, masked=True, dense=True, clip="data", sample_weight=sample_weight, **about
    )
    (n, k), index = rows.scores.shape, rows.labels
    if n < LEAST_ROWS:
        raise ValueError(
            f"logits must have at least {LEAST_ROWS} rows to compare calibrators on, got {n}; fit TemperatureScaling, "
            "whose one number needs few"
        )
    calibrators, left_out = named_candidates(candidates, n, k)
    order = np.random.default_rng(seed).permutation(n)[:MOST_ROWS]
    weights = None if sample_weight is None or rows.weights is None else rows.weights[order]
    units = None if groups is None else _units(groups, n)[order]
    rated = rated_rows(rows.scores[order], index[order], rows.kind, weights=weights, units=units)
    return rated, calibrators, left_out, rows.classes


def refuse_none(tried: Sequence[CalibratorCandidate], left_out: Mapping[str, str]) -> None:
    """Refuse rows on which no candidate can be cross-fitted."""
    if not tried:
        name, why = next(iter(left_out.items()))
        raise ValueError(
            f"candidates must be possible to fit on four fifths of the rows, and none is: {name}, since {why}; pass "
            "more rows of every class, or name a calibrator that takes such rows"
        )


def choose(
    rated: Rated,
    calibrators: Mapping[str, Calibrator],
    left_out: Mapping[str, str],
    *,
    by: Score = "nll",
    prefer: Preference = "simple",
) -> CalibratorChoice:
    """Cross-fit the calibrators and keep one; those that cannot be fitted join the ones left out."""
    tried, failed = rated.candidates(calibrators, by)
    helpful = [each for each in tried if helps(each, by)]
    # Where none is shown to help, those that do not harm are left to choose from.
    pool = helpful or [each for each in tried if getattr(each, by) <= rated.raw(by) and np.isfinite(getattr(each, by))]
    chosen = simplest_alike(pool, rated, by, _LITTLE if prefer == "simple" else 0.0) if pool else None
    return CalibratorChoice(
        tried=tuple(tried),
        chosen=None if chosen is None else chosen.name,
        shown=chosen in helpful,  # never None
        rows=rated.rows,
        raw_nll=rated.raw("nll"),
        raw_brier=rated.raw("brier"),
        left_out={**left_out, **failed},
        by=by,
        prefer=prefer,
    )


def mixed(
    rated: Rated, calibrators: Mapping[str, Calibrator], choice: CalibratorChoice
) -> tuple[Calibrator, CalibratorChoice] | None:
    """The mixture of those that were cross-fitted, and what is said of it; None if it has one calibrator alone.

    Its weights are those of all rows; for its NLL each fold has the weights of the other folds.
    """
    losses = {each.name: each.row_losses["nll"] for each in choice.tried if each.name not in WITH_ZEROS}
    if len(losses) < 2 or (np.isneginf(rated.scores).any() and rated.kind == "logits"):
        return None
    leading = "structured" if "structured" in losses else min(losses, key=_place)
    order = [leading, *(name for name in losses if name != leading), AS_THEY_ARE]
    kept = TemperatureScaling(temperature=1.0)  # which clips zeros
    losses[AS_THEY_ARE] = rated.candidates({AS_THEY_ARE: kept})[0][0].row_losses["nll"]
    each, classes = np.exp(-np.stack([losses[name] for name in order], 1)), rated.scores.shape[1]
    counts = np.ones(rated.rows) if rated.weights is None else rated.weights
    held_out, parts = np.empty(rated.rows), [np.ones(rated.rows, dtype=bool)]
    for fold in rated.folds():
        parts.append(~np.isin(np.arange(rated.rows), fold))
        own = pooled_weights(each[parts[-1]], classes, counts[parts[-1]])
        held_out[fold] = each[fold] @ own + (1 - own.sum()) / classes
    scaled = fitted_quietly(TemperatureScaling(), rated.scores, rated.labels, rated.kind, rated.weights)
    scaled_losses = row_losses(scaled.predict_proba(**{rated.kind: rated.scores}), rated.labels)["nll"]
    gains = np.stack([losses[AS_THEY_ARE] + np.log(held_out), losses[AS_THEY_ARE] - scaled_losses], 1)
    if rated.units is not None:  # rows of one group say the same thing
        gains *= len(np.unique(rated.units)) / rated.rows
    shares = [share_of_evidence(counts[part] @ gains[part]) for part in parts]
    for fold, share in zip(rated.folds(), shares[1:], strict=True):
        held_out[fold] = share * held_out[fold] + (1 - share) * each[fold, -1]
    found = shares[0] * pooled_weights(each, classes, counts)
    found[-1] += 1 - shares[0]
    named = {name: float(weight) for name, weight in zip(order, found, strict=True) if weight > 0}
    named = dict(sorted(named.items(), key=lambda item: -item[1]))
    fitted = [clone(kept if name == AS_THEY_ARE else calibrators[name]) for name in named]
    said = replace(choice, chosen="mixture", weights=named, mixed=rated.mean(-np.log(held_out)))
    return CalibratorMixture(fitted, [*named.values()]), said


def helps(candidate: CalibratorCandidate, by: Score = "nll") -> bool:
    """Whether it is shown to lower the score.

    From an infinite NLL to a finite one is lower, unless the Brier score, which knows no infinity, is higher beyond
    doubt.
    """
    if by == "nll" and candidate.change is None:
        return candidate.brier_change is not None and candidate.brier_change.low <= 0
    change = candidate.change if by == "nll" else candidate.brier_change
    return change is not None and change.high < 0


def simplest_alike(
    pool: Sequence[CalibratorCandidate], rated: Rated, by: Score = "nll", little: float = _LITTLE
) -> CalibratorCandidate:
    """The simplest that is not shown to leave more than that share of what the first, the best one, gains.

    Without a share the choice would depend on how many rows there are: of enough rows any two maps can be told apart,
    by a thousandth of a nat as well as by a tenth.
    """
    best = pool[0]
    gain = rated.losses[by] - best.row_losses[by]
    allowed = little * gain if np.isfinite(gain).all() else 0.0
    alike = [
        each
        for each in pool
        if each is best or rated.change(each.row_losses[by] - best.row_losses[by] - allowed).low <= 0
    ]
    alike.sort(key=lambda each: _place(each.name, rated.scores.shape[1]))
    return next((each for each in alike if not _misses_the_rate(each, rated)), alike[0])  # each costs a bootstrap


def _misses_the_rate(candidate: CalibratorCandidate, rated: Rated) -> bool:
    """Whether, of two classes, the calibrated scores add up to another number of events than happened, beyond chance.

    Expected against observed is what risks are judged by first, and the NLL sees little of it: a temperature can take
    most of what there is to gain and leave O/E at 0.9.
    """
    if rated.top1 or rated.labels.ndim > 1 or rated.scores.shape[1] != 2:
        return False
    event = np.where(rated.scores.argmax(1) == 1, candidate.confidence, 1 - candidate.confidence)
    gap = rated.change(event - rated.labels)
    return gap.low > 0 or gap.high < 0


def too_sure(nll: float, rows: int) -> str:
    """What to say of an NLL that hardly an error went into: one of N rows of equal weight adds log 2 / N or more."""
    if nll >= math.log(2) / rows:
        return ""
    return f"; with hardly an error among {rows:,} rows to learn from, one on new rows may cost any NLL"


def _place(name: str, classes: int = 0) -> float:
    """In the order of simplicity; names of the caller's own are as simple as any, so that the best of them is taken."""
    if (name, classes) == ("platt", 2):  # of two classes a vector is the same map with twice the numbers
        return SIMPLEST_FIRST.index("vector") - 0.5
    return SIMPLEST_FIRST.index(name) if name in SIMPLEST_FIRST else len(SIMPLEST_FIRST)


def _units(groups: Any, rows: int) -> Labels:
    names = as_values("groups", groups)
    if names.shape != (rows,):
        raise ValueError(f"groups must have one name per row that counts, ({rows},), got shape {names.shape}")
    codes: Labels = np.unique(names, return_inverse=True)[1]
    if codes.max() + 1 < 2 * FOLDS:
        raise ValueError(
            f"groups must be at least {2 * FOLDS}, two for each of {FOLDS} folds, got {codes.max() + 1}; leave "
            "groups out if rows are independent"
        )
    return codes
