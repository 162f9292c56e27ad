"""What a run is, and where runs are kept: `Spec`, its key, and the `Store` on disk.

Names are imported when first used: reading a store needs neither torch nor what a `Spec` is checked with.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from focalcal.results.content import Evaluation as Evaluation
    from focalcal.results.evaluations import Evaluations as Evaluations
    from focalcal.results.keys import SCHEMA as SCHEMA
    from focalcal.results.problems import Problem as Problem
    from focalcal.results.problems import RunProblem as RunProblem
    from focalcal.results.protocol import Protocol as Protocol
    from focalcal.results.run import Run as Run
    from focalcal.results.spec import Spec as Spec
    from focalcal.results.store import Store as Store

_HOME = {
    "Evaluation": "content",
    "Evaluations": "evaluations",
    "SCHEMA": "keys",
    "Problem": "problems",
    "Protocol": "protocol",
    "Run": "run",
    "RunProblem": "problems",
    "Spec": "spec",
    "Store": "store",
}

__all__ = ["SCHEMA", "Evaluation", "Evaluations", "Problem", "Protocol", "Run", "RunProblem", "Spec", "Store"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"focalcal.results has no attribute {name!r}; it has {', '.join(__all__)}")
    value = getattr(import_module(f"focalcal.results.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
