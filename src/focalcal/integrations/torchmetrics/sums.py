"""What all adapters have in common: stated input, and float64 sums that only change device."""

from __future__ import annotations

import inspect
import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from focalcal.core.arrays import as_array
from focalcal.core.checks import one_of, whole_number
from focalcal.core.extras import install_command
from focalcal.metrics.metric import Metric as FocalcalMetric

try:
    from torchmetrics import Metric
except ImportError as missing:
    raise ImportError(
        "focalcal.integrations.torchmetrics needs the package torchmetrics: "
        + install_command("torchmetrics", extra="torchmetrics")
    ) from missing


_ARGUMENTS = {
    "num_classes": "K, how many columns the scores have",
    "num_labels": "L, how many columns the scores have",
    "n_bins": "number of confidence bins",
    "average": '"mean", or None for one value per label',
    "scores": 'what `update` is given, "probs" or "logits"',
    "ignore_index": "rows with this label are left out",
}


def adapter_class(
    base: type[SumsMetric], name: str, metric: FocalcalMetric, limited: Any, docstring: str, **attributes: Any
) -> type[SumsMetric]:
    """A subclass for one metric; `limited` has the limits of its values."""
    lower, upper = limited.limits
    call = inspect.signature(base)
    *common, rest = call.parameters.values()
    shown = {n: v for n, v in _options(metric).items() if n not in call.parameters}
    own = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=v) for n, v in shown.items()]
    attributes |= {
        "__signature__": call.replace(parameters=[*common, *own, rest]),
        "__doc__": docstring + _arguments(metric, [*call.parameters, *shown]),
        "__module__": "focalcal.integrations.torchmetrics",
        "metric": metric,
        "higher_is_better": None if metric.better is None else metric.better == "higher",
        "plot_lower_bound": lower,
        "plot_upper_bound": upper if math.isfinite(upper) else None,
    }
    return type(name, (base,), attributes)


def _arguments(metric: FocalcalMetric, names: Sequence[str]) -> str:
    """The part of a docstring that says what each argument is."""
    known = (name for name in names if name != "kwargs")
    described = {name: _ARGUMENTS.get(name) or f"as `focalcal.metrics` takes it in `{metric.name}`" for name in known}
    return "\n\nArgs:\n" + "\n".join(f"    {name}: {text}." for name, text in described.items())


def _options(metric: FocalcalMetric) -> dict[str, Any]:
    """Those options of the metric that are open where its sums are all there is."""
    source = metric.source
    open_to_sums = {"n_bins", *source.sketch_options} if source.holds else {*source.options}
    return {name: default for name, default in source.options.items() if name in open_to_sums}


class SumsMetric(Metric):
    """What all have in common: stated input, float64 states that only change device."""

    is_differentiable = False
    higher_is_better: bool | None = None
    full_state_update = False
    metric: ClassVar[FocalcalMetric | None] = None  # None where there are several

    def __init__(self, width: int, what: str, scores: str, ignore_index: int | None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        one_of("scores", scores, ("probs", "logits"))
        whole_number(what, width, least=1, remedy="it is the scores' dimension 1")
        self._width, self._what = width, what
        self.scores, self.ignore_index = scores, ignore_index
        # A collection lets metrics of equal states share one update, so whatever directs the update is in the state.
        rules = [scores == "logits", ignore_index is not None, ignore_index or 0]
        self.add_state("rules", torch.tensor(rules, dtype=torch.int64), dist_reduce_fx="max")

    def _pop_options(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        """Those keywords that are options of the metric."""
        known = {} if self.metric is None else _options(self.metric)
        return {name: kwargs.pop(name) for name in known if name in kwargs}

    def _add_sums(self, name: str, *shape: int) -> None:
        self.add_state(name, torch.zeros(shape, dtype=torch.float64), dist_reduce_fx="sum")

    def _rows_in(self, preds: Any, target: Any) -> int:
        """How many labels are not ignored; refuses scores of another width than was said."""
        shape = as_array("preds", preds).shape
        if len(shape) < 2 or shape[1] != self._width:
            raise ValueError(
                f"preds must have {self._what} = {self._width} in dimension 1, got shape {shape}; "
                f"make the metric with the {self._what} of the scores"
            )
        labels = as_array("target", target)
        return labels.size if self.ignore_index is None else int((labels != self.ignore_index).sum())

    def _apply(self, fn: Any, exclude_state: Any = "") -> Any:
        """Follow a change of device, never one of dtype: half-precision sums would be wrong after 2,048 rows."""
        return super()._apply(lambda t: t.to(fn(t.new_empty(0)).device), exclude_state)

    def merge_state(self, incoming_state: Any) -> None:
        """Add the state of another metric that was made in the same way."""
        states = incoming_state.metric_state if isinstance(incoming_state, Metric) else incoming_state
        for name, default in self._defaults.items():
            other = states.get(name) if isinstance(states, dict) else None
            if not isinstance(other, Tensor) or not isinstance(default, Tensor):
                continue
            if other.shape != default.shape or (not other.is_floating_point() and other.tolist() != default.tolist()):
                raise ValueError(
                    f"states can be merged of metrics made with the same {self._what} and options, got another {name}: "
                    f"{tuple(other.shape) if other.dim() else other.tolist()}; make both in the same way"
                )
        super().merge_state(incoming_state)

    def compute(self) -> Any:
        """The value on all rows seen so far, float64; in several processes, on the rows of all."""
        self._refuse_empty()
        value = self._value()
        if isinstance(value, dict):
            return {name: self._scalar(each) for name, each in value.items()}
        return self._scalar(value)

    def _scalar(self, value: Any) -> Tensor:
        return torch.as_tensor(value, dtype=torch.float64, device=self.device)

    def _refuse_empty(self) -> None:
        if float(self.totals[0]) == 0:  # type: ignore[index]
            raise ValueError(f"{type(self).__name__} has seen no row; call update before compute")

    @abstractmethod
    def _value(self) -> Any:
        """What `compute` returns."""
