"""What torch is doing while a loss is called.

Some of it has only private names, which are looked up once, here. A torch that lacks one of them gets the
differentiable formula, which needs none of this: its losses are right, and slower.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd import forward_ad

try:
    _in_functorch = torch._C._are_functorch_transforms_active
    _dispatch_modes = torch._C._len_torch_dispatch_stack
    unwrap_if_dead = torch._C._functorch.unwrap_if_dead  # of a tensor that functorch wrapped and has left behind
    _legacy_batched, _batched = torch._C._functorch.is_legacy_batchedtensor, torch._C._functorch.is_batchedtensor
    LEGIBLE = hasattr(forward_ad, "_current_level")
except AttributeError:
    LEGIBLE = False


def traced() -> bool:
    """True where Python sees no values (torch.compile, functorch, fake tensors, make_fx and other dispatch
    modes, which must see every operation) or tangents must flow (forward AD)."""
    return (
        torch.compiler.is_compiling()
        or not LEGIBLE
        or _in_functorch()
        or _dispatch_modes() > 0
        or forward_ad._current_level >= 0
    )


def is_batched(tensor: Tensor) -> bool:
    """True under vmap; `is_grads_batched` runs a legacy one, which functorch's own check does not see."""
    return _legacy_batched(tensor) or _batched(tensor)
