"""The engines that can be tested here: without a compiled kernel there is no native one."""

from focalcal import _native

COMPUTED = ["native", "torch"] if _native.available() else ["torch"]  # the gradient comes with the loss
ENGINES = [*COMPUTED, "formula"]
