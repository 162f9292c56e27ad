"""In which precision a recipe's products are computed, by its device."""

from __future__ import annotations

import os

import torch

from focalcal.lab.training.recipe import Recipe


def mixed_precision(recipe: Recipe, device: torch.device) -> tuple[torch.autocast, torch.amp.GradScaler]:
    """What a training step's forward pass runs in, and what scales the gradients of half precision.

    `bfloat16` is refused on a CPU without instructions for it, where it is emulated at a quarter of float32's speed.
    """
    on_gpu = device.type == "cuda"
    if recipe.bfloat16 and not on_gpu and not has_bfloat16():
        raise ValueError(
            "bfloat16 must be False on a processor without avx512_bf16 or amx_bf16, got True; leave it out"
        )
    mixed = recipe.bfloat16 or (recipe.mixed_precision and on_gpu)
    half = torch.float16 if mixed and on_gpu and not torch.cuda.is_bf16_supported() else torch.bfloat16
    scaled = mixed and half == torch.float16
    return torch.autocast(device.type, dtype=half, enabled=mixed), torch.amp.GradScaler(device.type, enabled=scaled)


def evaluation_precision(recipe: Recipe, device: torch.device) -> torch.autocast:
    """What predictions are computed in: float32, or bfloat16 of a recipe that says so where the processor has it."""
    half = recipe.bfloat16 and (has_bfloat16() if device.type == "cpu" else torch.cuda.is_bf16_supported())
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=half)


def has_bfloat16() -> bool:
    """Whether this processor multiplies bfloat16, and oneDNN may; unknown, and so False, before torch 2.11."""
    known: dict[str, bool] = getattr(torch.cpu, "get_capabilities", dict)()
    limit = os.environ.get("ONEDNN_MAX_CPU_ISA", "DEFAULT").upper()
    allowed = limit in ("DEFAULT", "ALL") or any(name in limit for name in ("BF16", "FP16", "AMX", "AVX10"))
    return allowed and bool(known.get("avx512_bf16") or known.get("amx_bf16"))
