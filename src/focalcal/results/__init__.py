"""What a run is, and where runs are kept: `Spec`, its key, and the `Store` on disk."""

from focalcal.results.problems import Problem, RunProblem
from focalcal.results.protocol import Protocol
from focalcal.results.run import Run
from focalcal.results.spec import SCHEMA, Spec
from focalcal.results.store import Store

__all__ = ["SCHEMA", "Problem", "Protocol", "Run", "RunProblem", "Spec", "Store"]
