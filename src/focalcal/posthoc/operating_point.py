"""Which lam to train with next, from the held-out logits of one network (docs/math/operating_point.md)."""

from __future__ import annotations

import html
import math
import textwrap
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.core.checks import finite_at_least, shown, whole_number
from focalcal.core.chunks import row_chunks
from focalcal.core.numerics import log_softmax, logsumexp
from focalcal.metrics.bootstrap_statistics import row_weights
from focalcal.metrics.reliability import check_level
from focalcal.posthoc.calibrator import CalibrationWarning
from focalcal.posthoc.calibrator_inputs import labelled_rows
from focalcal.posthoc.recovery import PosteriorRecovery
from focalcal.posthoc.temperature import HIGHEST_TEMPERATURE, LOWEST_TEMPERATURE, TemperatureScaling
from focalcal.theory.matching import Match, MatchStatus, matching_lam
from focalcal.theory.recovery import inverse_map

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from focalcal.core.arrays import Labels, PerRow, Scores

_POPULATION = 1 << 18  # elements that the posteriors need not exceed; their share of the error is in the derivation
_POPULATION_ROWS = 1000
_NODES = 9  # temperatures at which the likelihood of every row is known
_REACH = 6.0  # standard errors of log T on either side
GAMMAS = (1.0, 2.0, 3.0, 5.0)
LEAST_ROWS = 100  # the interval of a temperature from fewer is wider than what lam could gain
_PRECISION = 1e-4  # of lam, relative: far below the width of its interval
_LITTLE = 1.1  # below such a temperature studies found nothing to gain (docs/math/operating_point.md)


def fitted_temperature(calibrator: Any, logits: Scores, labels: Labels) -> float:
    """The calibrator's temperature, which must not be a bound."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        calibrator.fit(logits, labels)
    if calibrator.at_bound_ or getattr(calibrator, "status_", "converged") != "converged":
        reason = getattr(calibrator, "status_", "the labels are predicted perfectly, or worse than chance")
        raise ValueError(
            f"logits must have a best temperature between {LOWEST_TEMPERATURE:g} and {HIGHEST_TEMPERATURE:g}, got "
            f"{calibrator.temperature_:g}: {reason}; check the labels, and pass more rows that the network was not "
            "trained on"
        )
    return float(calibrator.temperature_)


class HeldOut:
    """Held-out logits and labels of a network, taken for c log q*(eta) and labels drawn from eta.

    q* is that of Focal Calibration Loss at `trained_with`, gamma = 0 being cross-entropy, where q* = eta. c, the
    overfitting factor, maximises the likelihood of the eta recovered from softmax(logits / c).
    """

    def __init__(self, logits: Scores, labels: Labels, trained_with: tuple[float, float]) -> None:
        self._logits, self._labels = logits, labels
        self._gamma, self._lam = trained_with
        self._sampled = _systematic_sample(logits)

    def overfitting(self) -> float:
        """c; after cross-entropy the temperature of temperature scaling."""
        if self._gamma == 0:
            return fitted_temperature(TemperatureScaling(), self._logits, self._labels)
        recovery = PosteriorRecovery(self._gamma, self._lam, fit_temperature=True)
        return fitted_temperature(recovery, self._logits, self._labels)

    def posteriors(self, temperature: float) -> Float[np.ndarray, "m k"]:
        """The recovered posteriors of the sampled rows."""
        return np.asarray(np.exp(self._log_probs(self._logits[self._sampled], temperature)))

    def interval(self, temperature: float, *, level: float, resamples: int, seed: int) -> tuple[float, float]:
        """Percentiles of the temperature that resampled rows need."""
        reach = _REACH * self._standard_error(temperature)
        nodes = reach * np.cos(np.pi * (np.arange(_NODES) + 0.5) / _NODES)  # Chebyshev's, in log T - log temperature
        losses = np.stack([self._row_losses(temperature * math.exp(node)) for node in nodes])
        grid = np.linspace(-reach, reach, 2001)
        through = np.linalg.solve(np.vander(nodes / reach).T, np.vander(grid / reach, _NODES).T)  # (nodes, grid)
        batches = row_weights(len(self._logits), len(self._logits), resamples, seed)
        best = np.concatenate([grid[((losses @ weights).T @ through).argmin(1)] for weights in batches])
        tail = (1 - level) / 2
        low, high = temperature * np.exp(np.quantile(best, [tail, 1 - tail]))
        return float(low), float(high)

    def _standard_error(self, temperature: float) -> float:
        """Of log T, by the sandwich formula from differences of the rows' losses."""
        step = 0.01
        below, at, above = (self._row_losses(temperature * math.exp(move)) for move in (-step, 0.0, step))
        slope, curvature = (above - below) / (2 * step), (above + below - 2 * at).sum() / step**2
        return float(min(np.sqrt((slope**2).sum()) / max(curvature, 1e-300), 1.0))

    def _row_losses(self, temperature: float) -> PerRow:
        losses = np.empty(len(self._labels))
        for start, rows in row_chunks(self._logits):
            at = np.arange(len(rows))
            losses[start + at] = -self._log_probs(rows, temperature)[at, self._labels[start + at]]
        return losses

    def _log_probs(self, logits: Scores, temperature: float) -> Scores:
        with np.errstate(all="ignore"):
            scaled = (logits - logits.max(1, keepdims=True)).astype(np.float64) / temperature
            log_probs = log_softmax(scaled) if self._gamma == 0 else inverse_map(scaled, self._gamma, self._lam)
        return np.asarray(log_probs)


def _systematic_sample(logits: Scores) -> Int[np.ndarray, " m"]:
    """Every so many rows in the order of confidence: what depends on confidence varies less than in a random sample."""
    wanted = max(_POPULATION_ROWS, _POPULATION // logits.shape[1])
    if len(logits) <= wanted:
        return np.arange(len(logits))
    lead = [logsumexp(rows.astype(np.float64)) - rows.max(1) for _, rows in row_chunks(logits)]
    places = (np.arange(wanted) + 0.5) * (len(logits) / wanted)
    return np.argsort(np.concatenate(lead), kind="stable")[places.astype(np.int64)]


@dataclass(frozen=True, repr=False)
class OperatingPoint:
    """The (gamma, lam) whose distortion cancels a network's overconfidence, and what is known about it.

    Attributes:
        gamma: of the next training.
        lam: for `gamma`; inf where FCL has nothing to cancel, 0 where no lam distorts enough: see `status`.
        interval: of lam, at `level`, from the bootstrap of the rows.
        temperature: of the logits, by temperature scaling.
        overfitting: the same without the distortion of the network's own objective; after cross-entropy the same.
        overfitting_interval: at `level`.
        level: of both intervals.
        status: whether lam cancels the overfitting, and what to do if not.
        helps: whether FCL is worth training: there is overconfidence beyond doubt, and FCL reduces it.
        gamma_needed: the gamma with which lam = 0 would do, where `gamma` is too small; inf if none up to 64 does.
        matches: lam for several gamma, in their order, `gamma` among them.
        trained_with: the (gamma, lam) of the network.
        rows: how many the answer is from.
        classes: K.
        posteriors: the estimates that T_pop is computed over: all rows, or a sample of them.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> eta = rng.dirichlet([0.3] * 5, size=4000)
    >>> labels = (eta.cumsum(1) < rng.random((4000, 1))).sum(1).clip(max=4)
    >>> point = operating_point(1.5 * np.log(eta), labels)
    >>> point.helps, bool(point.interval[0] < point.lam < point.interval[1])
    (True, True)
    """

    gamma: float
    lam: float
    interval: tuple[float, float]
    temperature: float
    overfitting: float
    overfitting_interval: tuple[float, float]
    level: float
    status: MatchStatus
    helps: bool
    gamma_needed: float | None
    matches: tuple[Match, ...]
    trained_with: tuple[float, float]
    rows: int
    classes: int
    posteriors: Float[np.ndarray, "m k"] = field(compare=False)

    @property
    def paste(self) -> str:
        """The line to train with next, as `sentence` says; "" where that names no gamma and lam to take."""
        if not self.helps:
            return "CrossEntropyLoss()"
        match = self._recommended
        return f'FocalCalibrationLoss(gamma={match.gamma:g}, lam={match.lam:.3g}, scale="matched")' if match else ""

    @property
    def _recommended(self) -> Match | None:
        """At `gamma`, or where that is too small at the least larger one with a lam that matches."""
        return next((match for match in self.matches if match.gamma >= self.gamma and match.matched), None)

    @property
    def sentence(self) -> str:
        """What to do, and why."""
        low, high = self.overfitting_interval
        factor = f"the overfitting factor {self.overfitting:.3f} [{low:.3f}, {high:.3f}]"
        if self.status is MatchStatus.NOT_OVERCONFIDENT:
            return f"Keep cross-entropy: {factor} is not above 1, so there is no overconfidence for FCL to cancel."
        if self.status is MatchStatus.SHARPENS:
            return "Keep cross-entropy: over posteriors as flat as these, focal loss raises the confidence."
        if not self.helps:
            return f"Keep cross-entropy: {factor} cannot be told from 1 by {self.rows:,} rows."
        if self.status is MatchStatus.GAMMA_TOO_SMALL:
            return f"Even lam = 0 does not cancel {factor} at gamma = {self.gamma:g}. {self._beyond()}"
        first, last = self.interval
        little = " Cross-entropy is so nearly calibrated that little can be gained." * (self.overfitting < _LITTLE)
        return (
            f"Train with gamma = {self.gamma:g} and lam = {self.lam:.3g} [{first:.3g}, {last:.3g}], which cancels "
            f"{factor}.{little}"
        )

    def _beyond(self) -> str:
        """What to do where `gamma` is too small."""
        regularise = "regularise the network, or train it for fewer epochs, and ask again."
        larger = self._recommended
        if larger is not None:
            return f"Take gamma = {larger.gamma:g} with lam = {larger.lam:.3g}, or {regularise}"
        if self.gamma_needed is not None and math.isfinite(self.gamma_needed):
            return f"It would take gamma = {self.gamma_needed:.3g}: {regularise}"
        return f"Nor does any gamma up to 64: {regularise}"

    def frame(self) -> dict[str, list[Any]]:
        """One row per gamma as columns, which `pandas.DataFrame` and `pyarrow.table` take."""
        return {
            "gamma": [match.gamma for match in self.matches],
            "lam": [match.lam for match in self.matches],
            "effective_temperature": [match.effective_temperature for match in self.matches],
            "matched": [match.matched for match in self.matches],
            "status": [str(match.status) for match in self.matches],
        }

    def record(self) -> dict[str, Any]:
        """Everything as numbers, strings and lists, for JSON."""
        return {
            **{name: getattr(self, name) for name in ("gamma", "lam", "temperature", "overfitting", "level", "helps")},
            "interval": list(self.interval),
            "overfitting_interval": list(self.overfitting_interval),
            "status": str(self.status),
            "gamma_needed": self.gamma_needed,
            "trained_with": list(self.trained_with),
            "rows": self.rows,
            "classes": self.classes,
            "sentence": self.sentence,
            "paste": self.paste,
            "by_gamma": self.frame(),
        }

    def __repr__(self) -> str:
        """The sentence, the line to paste if there is one, and one line per gamma."""
        objective = "cross-entropy" if self.trained_with[0] == 0 else f"FCL{self.trained_with}"
        lines = [
            f"OperatingPoint: T = {self.temperature:.4f} after {objective}, {self.rows:,} rows, {self.classes} classes",
            *textwrap.wrap(self.sentence, 96, initial_indent="  ", subsequent_indent="  "),
            *([f"  {self.paste}"] if self.paste else []),
            *(f"  gamma = {match.gamma:<4g} {_lam_text(match)}" for match in self.matches),
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><td>{match.gamma:g}</td><td>{_lam_text(match)}</td></tr>" for match in self.matches)
        line = f"<pre>{html.escape(self.paste)}</pre>" if self.paste else ""
        return f"<p>{html.escape(self.sentence)}</p>{line}<table><tr><th>gamma</th><th>lam</th></tr>{rows}</table>"


def _lam_text(match: Match) -> str:
    if match.matched:
        return f"lam = {match.lam:.3g}"
    return {MatchStatus.GAMMA_TOO_SMALL: "too small: not even lam = 0"}.get(match.status, "keep cross-entropy")


def operating_point(
    logits: Any = None,
    labels: Any = None,
    gamma: float = 3.0,
    trained_with: tuple[float, float] = (0.0, 0.0),
    *,
    probs: Any = None,
    gammas: Sequence[float] = GAMMAS,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> OperatingPoint:
    """The lam to train with at `gamma`, from held-out rows of a network that was trained already.

    Overfitting makes a network more confident than the posterior, FCL less; the lam returned lets them cancel. If the
    network was trained with cross-entropy, its temperature T on held-out data is the overfitting, the posteriors eta
    are estimated by softmax(logits / T), and lam solves T_pop(gamma, lam) = 1/T over them (`matching_lam`). If it was
    trained with FCL, the logits are then taken for c log q*(eta), and c and eta come from `PosteriorRecovery` with its
    fitted temperature c, of which cross-entropy is the case gamma = 0. So the answer can be refined by the very network
    that it led to.

    The learning rate of cross-entropy carries over to `scale="matched"` only. The interval's ends are those of the
    overfitting factor (bootstrap percentiles over rows) taken through the same map; of large files a systematic sample
    of rows stands for the posteriors.

    Args:
        logits: (N, K), or in any other form that calibrators take; or `probs=` in their place.
        labels: (N,) of rows that were not trained on.
        gamma: of the next training.
        trained_with: (gamma, lam) of the network; (0, 0) is cross-entropy.
        probs: in place of logits.
        gammas: others to say the lam of.
        level: of the intervals.
        resamples: of the bootstrap.
        seed: of the bootstrap.

    Returns:
        lam with its interval, and whether FCL is worth training.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> eta = rng.dirichlet([0.3] * 5, size=4000)
    >>> labels = (eta.cumsum(1) < rng.random((4000, 1))).sum(1).clip(max=4)
    >>> point = operating_point(1.5 * np.log(eta), labels)  # logits half again as large as they should be
    >>> point.paste
    'FocalCalibrationLoss(gamma=3, lam=0.636, scale="matched")'
    """
    wanted, others = finite_at_least("gamma", gamma, 0.0), [finite_at_least("gammas", one, 0.0) for one in gammas]
    trained = gamma_and_lam(trained_with)
    check_level(level)
    whole_number("resamples", resamples, least=20, most=10**7, remedy="1000 is usual")
    if getattr(logits, "top1", False):
        raise ValueError(
            "logits must be those of all classes, got Predictions of confidences and whether they are right, of which "
            "no temperature of a network is known; store its logits"
        )
    rows = labelled_rows(logits, labels, probs=probs, clip="data")
    scores, index = rows.logits, rows.labels
    if len(scores) < LEAST_ROWS:
        raise ValueError(
            f"logits must have at least {LEAST_ROWS} rows, got {len(scores)}; a temperature from so few says nothing "
            "about lam: pass more held-out rows"
        )
    temperature = fitted_temperature(TemperatureScaling(), scores, index)
    network = HeldOut(scores, index, trained)
    overfitting = temperature if trained[0] == 0 else network.overfitting()
    low, high = network.interval(overfitting, level=level, resamples=resamples, seed=seed)

    def matched(factor: float, g: float, *, find_gamma: bool = False) -> Match:
        eta = network.posteriors(max(factor, 1.0))  # below 1 the answer does not depend on them
        return matching_lam(eta, factor, gamma=g, precision=_PRECISION, find_gamma=find_gamma)

    match = matched(overfitting, wanted, find_gamma=True)
    several = {g: matched(overfitting, g) for g in others if g != wanted} | {wanted: match}
    reduces = match.status in (MatchStatus.MATCHED, MatchStatus.GAMMA_TOO_SMALL) and match.effective_temperature < 1
    ends = sorted((matched(low, wanted).lam, matched(high, wanted).lam))
    return OperatingPoint(
        gamma=wanted,
        lam=match.lam,
        interval=(ends[0], ends[1]),
        temperature=temperature,
        overfitting=overfitting,
        overfitting_interval=(low, high),
        level=level,
        status=match.status,
        helps=reduces and low > 1,
        gamma_needed=match.gamma_needed,
        matches=tuple(several[g] for g in sorted(several)),
        trained_with=trained,
        rows=len(scores),
        classes=scores.shape[1],
        posteriors=network.posteriors(overfitting),
    )


def gamma_and_lam(given: Any) -> tuple[float, float]:
    """`trained_with` of a caller, as two numbers >= 0."""
    try:
        gamma, lam = given
    except (TypeError, ValueError, RuntimeError):  # the last is a tensor's
        raise ValueError(
            f"trained_with must be the pair (gamma, lam) of the network's own loss, got {shown(given)}; "
            "(0, 0) is cross-entropy"
        ) from None
    return finite_at_least("trained_with[0]", gamma, 0.0), finite_at_least("trained_with[1]", lam, 0.0)
