"""Structured scaling: an affine map that a ridge holds to temperature scaling, as firmly as the rows ask for."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from scipy.optimize import minimize

from focalcal.core.checks import finite_at_least, warn, whole_number, yes_or_no
from focalcal.core.chunks import row_chunks
from focalcal.core.numerics import logsumexp, namespace, softmax
from focalcal.posthoc.affine import (
    AffineFit,
    AffineProblem,
    Curvature,
    affine_probs,
    blas_threads,
    centred,
    unit_temperature,
)
from focalcal.posthoc.calibrator import CalibrationWarning, Calibrator
from focalcal.posthoc.cross_fit import stratified_folds
from focalcal.posthoc.mixture import uniform_part
from focalcal.posthoc.storage import Decoder, amounts, count, positive, share, vector, wide_matrix, word
from focalcal.posthoc.temperature import TemperatureStatus, optimal_inverse_temperature

if TYPE_CHECKING:
    from jaxtyping import Float

    from focalcal.core.arrays import Labels, PerRow, Scores

    Inputs = Float[np.ndarray, "n m"]

_LARGE, _LARGE_TOL = 5e9, 1e-3  # n K^2 from which products are float32's; a gradient that is 5e-7 nats from the optimum
_WITH_P, _LARGE_WITH_P = 1000, 2e7  # rows from which p stands beside x, and n K^2 up to which it does
_LARGEST_RATIO = 1e3  # of the size of x to that of p: without `mix` a row of x may be enormous
_SHARES_SETTLED = 1e-3  # nats for a whole share
_STRENGTHS = tuple(10 ** (0.5 - step / 2) for step in range(10))  # 3.2 ... 1e-4
_LEAST_ROWS = 1.0  # the least strength in rows: n times it, below which few rows would choose by accident
_PATIENCE = 2, 4  # strengths without a gain after which the path ends, once there was one and before
_TOL = 1e-2  # of the gradient, whose half square is 5e-5 nats
_MAX_ITER = 100
_SOME, _MANY = 2e6, 2e7  # n K^2 above which there are five folds at most, and above which three of them are held out
_SAMPLED = 5e9  # n K^2 of each of two samples of the rows, one fitted and one held out, where there is more
_PRICE = 3.0  # nats, of all rows together, that a whole share away from temperature scaling must gain
_SETTLED = 1e-5  # the projected gradient at which shares are taken, in nats
_LEAST_SHARE = 0.01


class StructuredScaling(Calibrator):
    """softmax(W x + V p + c), W = a 1 + D + O, with a ridge on the diagonal D, the off-diagonal O, V and the bias c.

    To the mean negative log-likelihood is added s (|O|^2 + |D|^2 + |V|^2 + |c|^2); a is free. x is the logarithm of
    p = (1 - w) softmax(z / T) + w / K less its row's mean, T being that of temperature scaling and w the uniform part
    that then has the largest likelihood, at least .1 / (n + .1) of it; without `mix` w = 0. So an infinite strength is
    temperature scaling, a single row costs a bounded loss, and a strength means the same for every scale of logits.

    "auto" takes no single s, whose choice few rows leave to chance, but W_T + sum_s v_s (W_s - W_T), W_s being the map
    of strength s and W_T temperature scaling: the shares v_s >= 0 minimise the loss of held-out rows (ten folds; fewer
    where n K^2 is above 2e6), and every whole share has to gain 3 nats, of all rows together. Folds depend on neither
    the order of rows and classes nor on whether a row has a weight or copies. Of more than two classes, 1,000 rows and
    n K^2 up to 2e7 the maps with V, in units in which p is as large as x, are on the path beside those without; others
    have V = 0. A number is s, of share 1, with V = 0.

    Each problem is convex. L-BFGS, preconditioned by a Kronecker factorisation of the Hessian, stops where the gradient
    is shorter than `tol` (1e-3, in single precision, where n K^2 is above 5e9). The end is checked: `status_` is
    "converged" or says what stood in the way, with a `CalibrationWarning`. Classes without rows are no fault.

    Attributes: `strengths_` and `shares_`, of maps with V = 0 first, both empty if it is temperature scaling;
    `weight_`, W (K, K), or W and V (K, 2 K); `bias_` (K,); `temperature_` and `uniform_`, T and w; `status_`,
    `n_iter_`, `classes_`, `n_features_in_`.

    Args:
        strength: s, or "auto".
        mix: False for w = 0.
        folds: of the choice of strengths.
        max_iter: of L-BFGS.
        tol: the gradient's size at which it stops.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = 2 * rng.normal(size=(2000, 3))
    >>> labels = (truth + rng.gumbel(size=truth.shape)).argmax(1)
    >>> logits = 3 * truth + [1.0, 0.0, -1.0]  # over-confident, and biased towards class 0
    >>> scaling = StructuredScaling(mix=False).fit(logits, labels)
    >>> bool(scaling.strength_ < 0.1), scaling.status_
    (True, 'converged')
    """

    _state: ClassVar[dict[str, Decoder]] = {
        "weight_": wide_matrix,
        "bias_": vector,
        "temperature_": positive,
        "uniform_": share,
        "strengths_": amounts,
        "shares_": amounts,
        "n_iter_": count,
        "status_": word,
    }

    def __init__(
        self,
        strength: float | Literal["auto"] = "auto",
        *,
        mix: bool = True,
        folds: int = 10,
        max_iter: int = 500,
        tol: float = 1e-7,
    ) -> None:
        self.strength = strength
        self.mix = mix
        self.folds = folds
        self.max_iter = max_iter
        self.tol = tol

    def _check_params(self) -> None:
        if isinstance(self.strength, str):
            if self.strength != "auto":
                raise ValueError(f'strength must be "auto" or a number >= 0, got {self.strength!r}; leave it out')
        elif not (isinstance(self.strength, float) and self.strength == math.inf):
            finite_at_least("strength", self.strength, 0.0)
        yes_or_no("mix", self.mix)
        finite_at_least("tol", self.tol, 0.0)
        whole_number("folds", self.folds, least=2, remedy="10 is usual")
        whole_number("max_iter", self.max_iter, least=1, remedy="500 is plenty")

    def _fit(self, logits: Scores, labels: Labels, weights: PerRow) -> None:
        plain = centred(logits.astype(np.float64))
        optimum = optimal_inverse_temperature(plain, labels, weights)
        self.temperature_ = 1 / optimum.inverse_temperature
        self.uniform_ = 0.0
        if self.mix:
            own = softmax(plain / self.temperature_)[np.arange(len(labels)), labels]
            self.uniform_ = uniform_part(own, weights, logits.shape[1])
        classes = logits.shape[1]
        bent = classes > 2 and weights.sum() >= _WITH_P and len(labels) * classes**2 <= _LARGE_WITH_P
        columns = 2 * classes if bent and self.strength == "auto" else classes
        inputs = self._inputs(plain, 1 / self.temperature_, self.uniform_, columns=columns)
        with blas_threads(classes):
            if optimum.status is TemperatureStatus.SEPARABLE:
                fit, scales = _temperature(classes, classes), np.ones(classes)
                self.strengths_ = self.shares_ = np.zeros(0)
                self._warn_of(f"{optimum.status}; fit on rows that the network was not trained on")
            else:
                fit, scales = self._best(inputs, labels, weights, classes)
        self.weight_ = (fit.part[:, :-1] + fit.scale * np.eye(*fit.part[:, :-1].shape)) * scales
        if not self.weight_[:, classes:].any():
            self.weight_ = self.weight_[:, :classes]
        self.bias_ = fit.part[:, -1] - fit.part[:, -1].mean()
        self.n_iter_ = fit.iterations

    def _best(
        self, inputs: Float[np.ndarray, "n m"], labels: Labels, weights: PerRow, classes: int
    ) -> tuple[AffineFit, Float[np.ndarray, " m"]]:
        """The fit, and what the columns of the inputs were multiplied by.

        Such that temperature scaling of x is 1, if it exists, and p, where there is one, as large as x.
        """
        x, p = inputs[:, :classes], inputs[:, classes:]
        optimum, scale = unit_temperature(x, labels, weights)
        scales, tol = np.full(inputs.shape[1], scale), self.tol
        scales[classes:] *= min(math.sqrt(float((x**2).sum() / max((p**2).sum(), 1e-300))), _LARGEST_RATIO)
        inputs = inputs * scales
        if len(x) * classes**2 > _LARGE:
            inputs, tol = inputs.astype(np.float32), max(tol, _LARGE_TOL)
        start = _temperature(classes, len(scales), optimum.inverse_temperature / scale)
        self.status_ = "converged"
        widths = sorted({classes, len(scales)})
        curvatures = {columns: Curvature(inputs[:, :columns], weights, classes) for columns in widths}
        shares: dict[tuple[int, float], float] = {}
        gradient = 0.0
        if self.strength == "auto":
            shares, gradient = path_shares(inputs, labels, weights, curvatures, start, folds=self.folds)
        elif self.strength < math.inf:
            shares = {(classes, float(self.strength)): 1.0}
        self.strengths_, self.shares_ = np.array([s for _, s in shares], np.float64), np.array([*shares.values()])
        if gradient > _SHARES_SETTLED:
            self._warn_of(f"the shares of the strengths have a gradient of {gradient:.2g}; pass a strength")
        total, problem, fit = start, None, start
        for (columns, strength), part in shares.items():
            if problem is None or fit.part.shape[1] != columns + 1:
                problem = AffineProblem(inputs[:, :columns], labels, weights, curvatures[columns])
                fit = _temperature(classes, columns, start.scale)
            fit = problem.fit(strength, fit, tol=tol, max_iter=self.max_iter)
            total = total.moved(fit, start, part)
            if not fit.gradient <= 10 * tol:
                self._warn_of(
                    f"the fit stopped after {fit.iterations} iterations with a gradient of {fit.gradient:.2g}; raise "
                    "max_iter, or the strength: with none, classes that are absent or perfectly separated have no "
                    "optimum"
                )
        return total, scales

    @property
    def strength_(self) -> float:
        """The strength of the largest share; infinite for temperature scaling."""
        return float(self.strengths_[self.shares_.argmax()]) if len(self.shares_) else math.inf

    def _warn_of(self, reason: str) -> None:
        self.status_ = reason
        warn(f"the weights are not optimal: {reason}", CalibrationWarning)

    def _inputs(self, plain: Any, inverse_temperature: Any, uniform: Any, *, columns: int) -> Any:
        """x, from centred logits, and beside it p if there are so many columns."""
        xp, classes = namespace(plain), plain.shape[1]
        x = plain * inverse_temperature
        probs = softmax(x) if self.mix or columns > classes else x
        if self.mix:
            probs = (1 - uniform) * probs + uniform / classes
            x = centred(xp.log(probs))
        join = np.concatenate if xp is np else xp.concat  # NumPy 1 has no concat
        return join([x, probs - 1 / classes], axis=1) if columns > classes else x

    def _arrays(self) -> dict[str, Any]:
        inverse_temperature = np.float64(1 / self.temperature_)
        learnt = {"weight": self.weight_, "bias": self.bias_}
        return learnt | {"inverse_temperature": inverse_temperature, "uniform": np.float64(self.uniform_)}

    def _map(self, logits: Any, **learnt: Any) -> Any:
        given = learnt["inverse_temperature"], learnt["uniform"]
        inputs = self._inputs(centred(logits), *given, columns=learnt["weight"].shape[1])
        return affine_probs(learnt["weight"], learnt["bias"], inputs)


def _temperature(classes: int, columns: int, scale: float = 1.0) -> AffineFit:
    return AffineFit(scale, np.zeros((classes, columns + 1)), gradient=0.0)


def path_shares(
    inputs: Inputs, labels: Labels, weights: PerRow, curvatures: dict[int, Curvature], start: AffineFit, *, folds: int
) -> tuple[dict[tuple[int, float], float], float]:
    """The share of each strength, and the projected gradient; what is left of 1 is temperature's.

    There is a path for as many first columns of the inputs as `curvatures` names. v >= 0 minimise the mean loss of
    held-out rows under the scores z_T + sum_s v_s (z_s - z_T), z_s from the fit at strength s and z_T from temperature
    scaling, both on the other folds, plus 3 / n sum_s v_s. It is convex.
    """
    classes = len(start.part)
    products = len(inputs) * classes**2
    sampled = products > _SAMPLED
    folds = max(2, round(products / _SAMPLED)) if sampled else min(folds, 5) if products > _SOME else folds
    visited = 1 if sampled else min(folds, 3) if products > _MANY else folds
    inputs, labels, weights, fold = stratified_folds(inputs, labels, weights, folds, classes)
    held_out = [fold == at for at in range(min(visited, fold.max() + 1))]
    fitted = [fold == 1] if sampled else [~held for held in held_out]
    truth, counts = (np.concatenate([values[held] for held in held_out]) for values in (labels, weights))
    starts = [
        optimal_inverse_temperature(inputs[rows, :classes], labels[rows], weights[rows]).inverse_temperature
        for rows in fitted
    ]
    plain = np.concatenate([a * inputs[held, :classes] for a, held in zip(starts, held_out, strict=True)])
    moves: dict[tuple[int, float], Scores] = {}
    for columns, curvature in curvatures.items():
        own = inputs[:, :columns]
        problems = [AffineProblem(own[rows], labels[rows], weights[rows], curvature) for rows in fitted]
        fits = [AffineFit(a, np.zeros((classes, columns + 1))) for a in starts]
        losses, gained = [_loss(plain, truth, counts)], -1
        for step, strength in enumerate(_STRENGTHS):
            if strength < _LEAST_ROWS / weights.sum():
                break
            for at, problem in enumerate(problems):
                fits[at] = problem.fit(strength, fits[at], tol=_TOL, max_iter=_MAX_ITER)
            found = np.concatenate([scores(own[held], fit) for held, fit in zip(held_out, fits, strict=True)])
            moves[columns, strength] = found - plain
            losses.append(_loss(found, truth, counts))
            if losses[-1] < min(losses[:-1]):
                gained = step
            elif step - gained >= _PATIENCE[gained < 0]:
                break
    shares, gradient = _best_shares(plain, [*moves.values()], truth, counts)
    mass = float(weights[fitted[0]].sum() / weights.sum())  # n s, the prior's precision, is what fits have in common
    found_shares = zip(moves, shares.tolist(), strict=True)
    return {(columns, s * mass): share for (columns, s), share in found_shares if share > _LEAST_SHARE}, gradient


def _best_shares(plain: Scores, moves: list[Scores], labels: Labels, weights: PerRow) -> tuple[Any, float]:
    """The shares of the moves, and the largest entry of the gradient projected on what may still change."""
    if not moves:
        return np.zeros(0), 0.0
    rows, mass = np.arange(len(labels)), float(weights.sum())
    each = np.stack([move.ravel() for move in moves])

    def objective(shares: Any) -> tuple[float, Any]:
        found = plain + (shares.astype(each.dtype) @ each).reshape(plain.shape)
        largest = found.max(1, keepdims=True)
        gap = np.exp(found - largest)
        total = gap.sum(1)
        loss = np.log(total) + largest[:, 0] - found[rows, labels]
        gap /= total[:, None]
        gap[rows, labels] -= 1
        gap *= (weights / mass)[:, None]
        return float(weights @ loss + _PRICE * shares.sum()) / mass, each @ gap.ravel() + _PRICE / mass

    options = {"maxiter": 500, "ftol": 0.0, "gtol": _SETTLED / 2}
    result = minimize(
        objective, np.zeros(len(moves)), jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(moves), options=options
    )
    gradient = np.where(result.x > 0, result.jac, np.minimum(result.jac, 0))
    return result.x, float(np.abs(gradient).max())


def _loss(scores_: Scores, labels: Labels, weights: PerRow) -> float:
    losses = logsumexp(scores_) - scores_[np.arange(len(labels)), labels]
    return float(weights @ losses / weights.sum())


def scores(inputs: Inputs, fit: AffineFit) -> Scores:
    """a x + M (f, 1) of every row."""
    classes = len(fit.part)
    found = np.empty((len(inputs), classes), inputs.dtype)
    for start, f in row_chunks(inputs):
        found[start : start + len(f)] = fit.scale * f[:, :classes] + f @ fit.part[:, :-1].T + fit.part[:, -1]
    return found
