"""What a run is, and where runs are kept: `Spec`, its key, and the `Store` on disk."""

from focalcal.results.protocol import Protocol
from focalcal.results.spec import SCHEMA, Spec

__all__ = ["SCHEMA", "Protocol", "Spec"]
