"""The engines that can be tested here: native where it was compiled, and Triton alone where it is interpreted."""

import os

from focalcal import _native

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"  # `make test-triton`
# The gradient comes with the loss.
COMPUTED = ["triton"] if INTERPRETED else ["native", "torch"] if _native.available() else ["torch"]
ENGINES = [*COMPUTED, "formula"]
