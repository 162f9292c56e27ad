"""What is known of a metric: its formula, name, unit and limits, which way is better, what chance alone gives."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from focalcal.metrics.scan import check_bins
from focalcal.predictions.inputs import Inputs

if TYPE_CHECKING:
    from focalcal.metrics.sources import Source


@dataclass(frozen=True, eq=False, repr=False)
class Metric:
    """One number of probabilities (N, K) or (N, K, d1, ...) and labels (N, d1, ...): `metric(probs, labels)`.

    `metric(logits=..., labels=...)` and `metric(predictions)` do as well; what else is taken for scores and labels is
    in `focalcal.predictions.inputs`. The predicted class is the first of equally probable ones. Rows whose label is
    `ignore_index` are left out. `sample_weight` (N,) is how many rows of the population each row stands for: the metric
    is that of the rows repeated so often, only ratios matter, and rows of weight 0 are left out; weights of
    `Predictions` are used unless others are given.

    Attributes:
        name: of the function.
        title: as papers write it.
        source: what of the rows it needs.
        description: of the formula itself.
        unit: "share", which is shown in percent, "nats" or "score".
        limits: the least and the largest value.
        better: "lower", "higher", or None.
        by_chance: a calibration error: labels drawn from the probabilities show what chance alone gives.
        proportion: each row counts 0 or 1, so that the interval is Wilson's.
        in_summary: whether `summary` has it.
        adapter: the name of its torchmetrics class.

    >>> from focalcal.metrics import ece
    >>> isinstance(ece, Metric), ece.title, round(ece([[0.9, 0.1], [0.9, 0.1]], [0, 1]), 4)
    (True, 'ECE', 0.4)
    """

    name: str
    title: str  # as papers write it
    source: Source
    description: str = ""  # of the formula itself unless said here
    unit: Literal["share", "nats", "score"] = "share"  # a share is shown in percent
    limits: tuple[float, float] = (0.0, 1.0)
    better: Literal["lower", "higher"] | None = "lower"
    by_chance: bool = False  # a calibration error: labels drawn from the probabilities show what chance alone gives
    proportion: bool = False  # each row counts 0 or 1, so that the interval is Wilson's
    in_summary: bool = False
    adapter: str = ""  # the name of its torchmetrics class

    def __post_init__(self) -> None:
        """Let it pass for a function."""
        returned = f"A float: {repr(self).partition(': ')[2].rstrip('>')}."
        text = self.description or inspect.getdoc(self.source.of) or ""
        as_function(self, self.name, text, self.source.options, returned)

    def __call__(
        self,
        probs: Any = None,
        labels: Any = None,
        *,
        logits: Any = None,
        confidence: Any = None,
        correct: Any = None,
        classes: Sequence[Any] | None = None,
        positive: Any = None,
        normalize: bool = False,
        sample_weight: Any = None,
        ignore_index: int | None = None,
        **options: Any,
    ) -> float:
        """The metric of whatever `focalcal.predictions.read_inputs` takes for scores and labels."""
        if options:
            self.check_options(options)
        given = self.source.read(
            probs, labels, logits=logits, confidence=confidence, correct=correct, classes=classes, positive=positive,
            normalize=normalize, sample_weight=sample_weight, ignore_index=ignore_index,
        )  # fmt: skip
        self.check_inputs(given)
        return self.source.measure(given, ignore_index, options)

    def check_inputs(self, given: Inputs) -> None:
        """Refuse confidences alone where they are not enough."""
        if given.kind == "outcomes" and self.source.needs_classes:
            raise ValueError(
                f"{self.name} needs the probabilities of all classes, got confidence and correct; "
                "pass probs or logits= and labels"
            )

    def check_options(self, options: dict[str, Any]) -> None:
        """Refuse an option that the metric does not have, and a number of bins that is none."""
        for name in options:
            if name not in self.source.options:
                known = ", ".join(inspect.signature(self).parameters)
                raise TypeError(f"{self.name} has no option {name!r}; it has {known}")
        if "n_bins" in options:
            options["n_bins"] = check_bins(options["n_bins"])

    def bins_option(self, n_bins: int) -> dict[str, Any]:
        """The option `n_bins`, if it has one."""
        return {"n_bins": n_bins} if "n_bins" in self.source.options else {}

    def __reduce__(self) -> str:
        """By name, as functions are pickled."""
        return self.name

    def __repr__(self) -> str:
        """Its name and what to expect of it."""
        better = "" if self.better is None else f", {self.better} is better"
        return f"<metric {self.name}: {self.title}, {self.unit} from {self.limits[0]:g} to {self.limits[1]:g}{better}>"


# What the arguments of every metric mean: its docstring lists those that it has.
_ARGUMENTS = {
    "probs": "(N, K) or (N, K, d1, ...) probabilities, or Predictions; one column, (N,), is of the class `positive`.",
    "labels": "(N,) or (N, d1, ...) classes from 0, or names if `classes` are given; of several labels, (N, L).",
    "logits": "scores before softmax, in the place of `probs`.",
    "confidence": "(N,) the probability of the predicted class, with `correct` in the place of `probs` and `labels`.",
    "correct": "(N,) whether that class is the label.",
    "classes": "the names that labels may have, in the order of the columns.",
    "positive": "the class whose probability a single column is, and whose metrics those of an event are.",
    "normalize": "divide rows by their sums, where these miss 1 by more than rounding.",
    "sample_weight": "(N,) how many rows of the population each row stands for.",
    "ignore_index": "rows of this label are left out.",
    "average": '"mean" over labels, or None for one value per label.',
    "n_bins": "how many bins there are.",
    "convention": "what is said above of the ends.",
    "norm": '"l1" for the mean distance, "l2" for the root of the mean square.',
    "bandwidth": "the width of the kernel; by default the smallest that is no smaller than the error it gives.",
    "k": "how many of the most probable classes may hold the label.",
    "accuracy": "that the answered rows are to have.",
    "knots": "of the flexible curve of the event.",
}


def as_function(entry: Any, name: str, description: str, options: dict[str, Any], returned: str) -> None:
    """Make an entry of the table a function of the package to whoever documents, names, inspects or pickles it."""
    call = inspect.signature(type(entry).__call__)
    common = list(call.parameters.values())[1:-1]
    own = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=v) for n, v in options.items()]
    listed = "\n".join(f"    {each.name}: {_ARGUMENTS[each.name]}" for each in (*common, *own))
    about = {
        "__name__": name,
        "__qualname__": name,
        "__module__": "focalcal.metrics",
        "__doc__": f"{description}\n\nArgs:\n{listed}\n\nReturns:\n    {returned}",
        "__signature__": call.replace(parameters=[*common, *own]),
    }
    for attribute, value in about.items():
        object.__setattr__(entry, attribute, value)
