"""The laboratory: data sets, networks, training, stored runs, studies, tuning and their reports.

It uses the library, and nothing of the library imports it.
"""

from focalcal.core.lazy import lazy_names

_PACKAGES = ("data", "evidence", "models", "report", "store", "studies", "training")

__all__ = [*_PACKAGES]
__getattr__, __dir__ = lazy_names(__name__, {}, submodules=_PACKAGES)
