"""Calibration that differs between groups by as much as their rows show."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.special import stdtrit

from focalcal.core.arrays import like_given
from focalcal.core.checks import ProbabilityWarning, shown, warn, whole_number
from focalcal.core.display import Displayed, text_table
from focalcal.posthoc.affine_scaling import VectorScaling
from focalcal.posthoc.calibrator import CalibrationWarning, Calibrator
from focalcal.posthoc.calibrator_inputs import CheckedRows, labelled_rows
from focalcal.posthoc.cross_fit import cross_fit, fitted_quietly
from focalcal.posthoc.estimator import Estimator, check_fitted, clone
from focalcal.posthoc.group_effects import Effects, common_scores, fitted_effects, with_effects
from focalcal.posthoc.group_names import group_columns
from focalcal.posthoc.storage import ScoreColumns, Stored, calibrator, content_of, write_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from focalcal.core.arrays import PerRow, Scores

_LEAST_ROWS = 50


@dataclass(frozen=True, eq=False, repr=False)
class GroupGains(Displayed):
    """What the groups' own maps gain over the common one, in nats per row, on rows that neither was fitted on.

    Attributes:
        gain, low, high: of all rows, with a 95 % interval (Student's, paired by row).
        groups: the same for every group, with its rows and NLL, `temperature`, by which its map divides the common
            log-probabilities, and `shrinkage`, from 0 (as its own rows say) to 1 (as the common map says).

    >>> draws = np.random.default_rng(0)
    >>> logits, site = 2 * draws.normal(size=(3000, 3)), draws.choice(["a", "b"], 3000)
    >>> wide = logits / np.where(site == "a", 1.0, 3.0)[:, None]  # over-confident at b alone
    >>> labels = np.argmax(wide + draws.gumbel(size=wide.shape), 1)
    >>> gains = GroupwiseCalibration().fit(logits, labels, groups=site).gains_
    >>> round(gains.gain, 3), gains.groups["rows"]
    (0.048, [1560, 1440])
    """

    gain: float
    low: float
    high: float
    groups: dict[str, list[Any]]

    def frame(self) -> dict[str, list[Any]]:
        """One row per group."""
        return self.groups

    def __str__(self) -> str:
        """The gain of all rows, and one line per group."""
        return f"gain {self.gain:+.4f} nats per row [{self.low:+.4f}, {self.high:+.4f}]\n{text_table(self.groups)}"


class GroupwiseCalibration(Estimator):
    """A common map, and for each group a factor on its log-probabilities and a bias, shrunk by the groups' evidence.

    With p the common map's probabilities a row of group g has softmax(exp(t_g) log p + b_g), t_g ~ N(0, tau_t^2) and
    b_g ~ N(0, tau_b^2 I). The effects are the posterior mode, and the tau maximise the marginal likelihood (Laplace):
    groups that do not differ, or have few rows, keep the common map, and those with many rows that do get their own.
    Several columns of groups, overlapping ones too (site, age, device), add their effects, each with its own tau. If
    the effects raise the NLL of rows they were not fitted on, they are dropped, and a warning says so. Groups that are
    seen at prediction only have no effect: the common map holds for them, and one warning says so.

    Attributes: `calibrator_`, the common map; `effects_`, by column; `levels_`, their groups; `gains_` (`GroupGains`);
    `classes_`, `n_features_in_`.

    Args:
        calibrator: of all rows; by default a temperature and one bias per class (`VectorScaling(spread_l2=inf)`).
        folds: of the cross-fitting that `gains_` come from.

    >>> draws = np.random.default_rng(0)
    >>> logits, site = 2 * draws.normal(size=(3000, 3)), draws.choice(["a", "b"], 3000)
    >>> wide = logits / np.where(site == "a", 1.0, 3.0)[:, None]  # over-confident at b alone
    >>> labels = np.argmax(wide + draws.gumbel(size=wide.shape), 1)
    >>> groupwise = GroupwiseCalibration().fit(logits, labels, groups=site)
    >>> groupwise.gains_.low > 0, [round(t, 1) for t in groupwise.gains_.groups["temperature"]]
    (True, [0.6, 1.7])
    """

    calibrator_: Calibrator
    effects_: dict[str, Effects]
    levels_: dict[str, list[Any]]
    gains_: GroupGains
    classes_: NDArray[Any]
    n_features_in_: int
    columns_: ScoreColumns | None = None  # where the table of an audit had the scores that it is for
    _said: frozenset[Any] = frozenset()  # groups that a warning has named

    def __init__(self, calibrator: Calibrator | None = None, *, folds: int = 5) -> None:
        self.calibrator = calibrator
        self.folds = folds

    def fit(
        self,
        logits: Any = None,
        labels: Any = None,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        probs: Any = None,
        classes: Sequence[Any] | None = None,
    ) -> Self:
        """Learn from held-out logits (or probs) (N, K), labels (N,) and `groups`: (N,), (N, G), a dict or a table."""
        common = self._common()
        rows = labelled_rows(logits, labels, probs=probs, classes=classes, sample_weight=sample_weight)
        kept = len(rows.labels)
        columns = group_columns(groups, rows.shape[0])
        if sample_weight is not None:
            columns = {name: column[np.asarray(sample_weight).ravel() > 0] for name, column in columns.items()}
        if kept < _LEAST_ROWS:
            raise ValueError(
                f"logits must have at least {_LEAST_ROWS} rows for groups, got {kept}; use one map for all"
            )
        found = {
            name: np.unique(column.astype(_plain_type(column)), return_inverse=True) for name, column in columns.items()
        }
        self.levels_ = {name: levels.tolist() for name, (levels, _) in found.items()}
        places = [place for _, place in found.values()]
        fitted, effects = self._fit_rows(common, rows, places, slice(None), None)
        own, theirs = self._cross_fitted(common, rows, places, [one.tau for one in effects])
        gain = theirs - own
        if gain @ rows.weights < 0:
            warn(
                f"groups do not help: their effects raise the NLL of rows they were not fitted on by "
                f"{-float(np.average(gain, weights=rows.weights)):.2g}, so the common map is kept for all; fit on more "
                "rows, or on other groups",
                CalibrationWarning,
            )
            effects, gain, own = [_none(one) for one in effects], np.zeros(kept), theirs
        self.calibrator_, self.effects_ = fitted, dict(zip(columns, effects, strict=True))
        self.gains_ = self._gains(gain, own, places)
        self.n_features_in_, self._said = rows.logits.shape[1], frozenset()
        self.classes_ = np.arange(self.n_features_in_) if rows.classes is None else np.array(rows.classes)
        return self

    def predict_proba(self, logits: Any = None, *, probs: Any = None, groups: Any = None) -> Any:
        """Calibrated probabilities (N, K) of rows and their groups, as at `fit`; a tensor for a tensor."""
        check_fitted(self, "calibrator_")
        given = logits if probs is None else probs
        kind = "logits" if probs is None else "probs"
        calibrated = np.asarray(self.calibrator_.predict_proba(**{kind: given}), dtype=np.float64)
        places = self._places(group_columns(groups, len(calibrated)))
        return like_given(given, with_effects(common_scores(calibrated), list(self.effects_.values()), places))

    def predict(self, logits: Any = None, *, probs: Any = None, groups: Any = None) -> Any:
        """The class of largest calibrated probability, (N,), in NumPy."""
        return self.classes_[np.asarray(self.predict_proba(logits, probs=probs, groups=groups)).argmax(1)]

    def save(self, path: str | PathLike[str]) -> None:
        """Write a JSON file, which `load_calibrator` reads; `gains_` are left out."""
        check_fitted(self, "calibrator_")
        effects = {
            column: {
                "levels": self.levels_[column],
                **{part: np.asarray(of).tolist() for part, of in vars(one).items()},
            }
            for column, one in self.effects_.items()
        }
        state = {"common": self.calibrator_, "classes_": self.classes_, "effects": effects}
        stored = Stored(type(self).__name__, {"folds": self.folds}, self.n_features_in_, state)
        write_json(path, content_of(stored))

    @classmethod
    def _restore(cls, stored: Stored, path: str | PathLike[str]) -> Self:
        try:
            common = calibrator("common", stored.state["common"], stored.classes or 0)
            restored = cls(clone(common), folds=stored.params.get("folds", 5))
            restored.levels_, restored.effects_ = {}, {}
            for name, content in stored.state["effects"].items():
                restored.levels_[name], restored.effects_[name] = _read(content, common.n_features_in_)
            restored.classes_ = np.array(stored.state["classes_"])
            if len(restored.classes_) != common.n_features_in_ or not restored.effects_:
                raise ValueError("it must name every class and a column of groups")
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is no valid {cls.__name__}: {error!r}") from error
        restored.calibrator_, restored.n_features_in_ = common, common.n_features_in_
        return restored

    def _common(self) -> Calibrator:
        whole_number("folds", self.folds, least=2, most=1000, remedy="5 is usual")
        if self.calibrator is None:
            return VectorScaling(spread_l2=np.inf)
        if not isinstance(self.calibrator, Calibrator):
            raise TypeError(f"calibrator must be one such as TemperatureScaling(), got {shown(self.calibrator)}")
        return self.calibrator

    def _fit_rows(
        self, common: Calibrator, rows: CheckedRows, places: Sequence[NDArray[np.int64]], part: Any, taus: Any
    ) -> tuple[Calibrator, list[Effects]]:
        """The common map and the effects of some rows."""
        labels, weights = rows.labels[part], rows.weights[part]
        scores, names = rows.scores[part], labels
        if rows.classes is not None:
            names = np.array(rows.classes, dtype=object)[labels]
        fitted = fitted_quietly(common, scores, names, rows.kind, weights, classes=rows.classes)
        z = common_scores(_quiet_probs(fitted, rows.kind, scores))
        sizes = [len(levels) for levels in self.levels_.values()]
        return fitted, fitted_effects(z, labels, weights, [place[part] for place in places], sizes, taus)

    def _cross_fitted(
        self, common: Calibrator, rows: CheckedRows, places: Sequence[NDArray[np.int64]], taus: Any
    ) -> tuple[PerRow, PerRow]:
        """-log p of every label, with the effects and by the common map, each fitted on other rows."""
        own, theirs = np.empty((2, len(rows.labels)))
        fits = cross_fit(
            len(rows.labels),
            lambda others: self._fit_rows(common, rows, places, others, taus),
            folds=self.folds,
            seed=0,
        )
        for fold, (fitted, effects) in fits:
            at = np.arange(len(fold)), rows.labels[fold]
            z = common_scores(_quiet_probs(fitted, rows.kind, rows.scores[fold]))
            with np.errstate(divide="ignore"):
                own[fold] = -np.log(with_effects(z, effects, [place[fold] for place in places])[at])
                theirs[fold] = -np.log(with_effects(z, [], [])[at])
        return own, theirs

    def _gains(self, gain: Any, own: Any, places: Sequence[Any]) -> GroupGains:
        names = ("column", "group", "rows", "nll", "gain", "low", "high", "temperature", "shrinkage")
        table: dict[str, list[Any]] = {name: [] for name in names}
        for (column, levels), one, place in zip(self.levels_.items(), self.effects_.values(), places, strict=True):
            for at, level in enumerate(levels):
                inside = place == at
                mean, low, high = _interval(gain[inside])
                values = (column, level, int(inside.sum()), float(own[inside].mean()), mean, low, high)
                more = (float(np.exp(-one.log_factor[at])), float(one.shrinkage[at]))
                for name, value in zip(names, values + more, strict=True):
                    table[name].append(value)
        return GroupGains(*_interval(gain), table)

    def _places(self, columns: Mapping[str, NDArray[Any]]) -> list[NDArray[np.int64]]:
        """The number of each row's group in every column, -1 for one that the fit has not seen."""
        if set(columns) != set(self.levels_):
            raise ValueError(
                f"groups must have the columns of the fit, {', '.join(self.levels_)}, got {', '.join(columns)}; pass "
                "them in the form of the fit"
            )
        places, new = [], []
        for name, levels in self.levels_.items():
            numbers = {level: at for at, level in enumerate(levels)}
            each, member = np.unique(columns[name].astype(_plain_type(columns[name])), return_inverse=True)
            new += [(name, level) for level in each.tolist() if level not in numbers]
            places.append(np.array([numbers.get(level, -1) for level in each.tolist()], dtype=np.int64)[member])
        if frozenset(new) - self._said:
            self._said |= frozenset(new)
            warn(
                f"groups must be those of the fit to have a map of their own, got {new[0][1]!r} in {new[0][0]} "
                f"({len(new)} such), which is given the common map; fit on rows of it",
                CalibrationWarning,
            )
        return places


def _quiet_probs(fitted: Calibrator, kind: str, scores: Any) -> Scores:
    """Without another warning of zeros."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProbabilityWarning)
        return np.asarray(fitted.predict_proba(**{kind: scores}), dtype=np.float64)


def _plain_type(column: NDArray[Any]) -> Any:
    """Text where names are objects of several kinds, which have no order."""
    return np.str_ if column.dtype.kind in ("O", "T") else column.dtype


def _interval(values: PerRow) -> tuple[float, float, float]:
    mean = float(values.mean())
    if len(values) < 2 or not np.isfinite(values).all():
        return mean, -np.inf, np.inf
    half = float(stdtrit(len(values) - 1, 0.975) * values.std(ddof=1) / np.sqrt(len(values)))
    return mean, mean - half, mean + half


def _none(one: Effects) -> Effects:
    return Effects(np.zeros_like(one.log_factor), np.zeros_like(one.bias), (0.0, 0.0), np.ones_like(one.shrinkage))


def _read(content: Any, classes: int) -> tuple[list[Any], Effects]:
    levels, tau = content["levels"], content["tau"]
    arrays = {name: np.array(content[name], dtype=np.float64) for name in ("log_factor", "bias", "shrinkage")}
    size = len(levels)
    right = [array.shape for array in arrays.values()] == [(size,), (size, classes), (size,)] and len(tau) == 2
    if not right or not all(np.isfinite(array).all() for array in arrays.values()):
        raise ValueError(f"it must hold finite effects of {size} groups on {classes} classes")
    return levels, Effects(arrays["log_factor"], arrays["bias"], (float(tau[0]), float(tau[1])), arrays["shrinkage"])
