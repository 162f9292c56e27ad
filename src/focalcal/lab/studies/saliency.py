"""Where a network looks: Grad-CAM maps of test images, stored with a run so that reports only draw them.

Selvaraju et al. (2017), "Grad-CAM: visual explanations from deep networks via gradient-based localization".
"""

from __future__ import annotations

import io
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from focalcal.lab.data import DataSet, Examples
from focalcal.lab.models import model_info
from focalcal.lab.training import Recipe
from focalcal.lab.training.inputs import TrainingInputs

_AT_ONCE = 64


@dataclass(frozen=True, eq=False)
class Saliency:
    """maps float32 (N, h, w), >= 0, of the class that was predicted; predicted int64 (N,)."""

    maps: NDArray[Any]
    predicted: NDArray[Any]


def grad_cam(network: nn.Module, inputs: Tensor, *, layer: str, layout: str) -> Saliency:
    """relu(sum_c alpha_c A_c), alpha_c the mean over positions of d logit_yhat / d A_c.

    `inputs` (N, C, H, W) as the network takes them; A (N, C', h, w) is what `layer` returns, read as `layout` says
    (`ModelInfo`); yhat is the class with the highest logit. The network is left as it was, gradients included.
    """
    was_training = network.training
    network.eval()
    try:
        starts = range(0, len(inputs), _AT_ONCE)
        parts = [_part(network, inputs[start : start + _AT_ONCE], layer, layout) for start in starts]
    finally:
        network.train(was_training)
    maps, predicted = (torch.cat(tensors).cpu().numpy() for tensors in zip(*parts, strict=True))
    return Saliency(maps, predicted)


def _part(network: nn.Module, inputs: Tensor, layer: str, layout: str) -> tuple[Tensor, Tensor]:
    held: list[Tensor] = []

    def cut_here(module: nn.Module, arguments: Any, output: Tensor) -> Tensor:
        held.append(output.detach().requires_grad_())  # no graph below it is needed
        return held[0].clone()  # what follows may work in place

    with torch.enable_grad():
        hook = network.get_submodule(layer).register_forward_hook(cut_here)
        try:
            logits = network(inputs)
        finally:
            hook.remove()
        predicted = logits.argmax(1)
        chosen = logits.gather(1, predicted[:, None]).sum()  # a row's logits depend on that row's maps alone
        (slopes,) = torch.autograd.grad(chosen, held)
    features, slopes = _as_maps(held[0].detach(), layout), _as_maps(slopes, layout)
    weights = slopes.float().mean((2, 3), keepdim=True)
    return (weights * features.float()).sum(1).relu(), predicted


def _as_maps(features: Tensor, layout: str) -> Tensor:
    """(N, C, h, w), from (N, h w, C) or from (N, 1 + h w, C) with a class token first; h = w there."""
    if layout == "maps":
        return features
    patches = features[:, 1:] if layout == "class_and_patches" else features
    side = math.isqrt(patches.shape[1])
    if side * side != patches.shape[1]:
        raise ValueError(f"patches must form a square to be drawn, got {patches.shape[1]}; use square images")
    return patches.transpose(1, 2).reshape(len(patches), -1, side, side)


def saliency_of_test_images(
    network: nn.Module, recipe: Recipe, data: DataSet, *, count: int, device: torch.device
) -> bytes:
    """The file of maps of the first `count` test images, as an epoch's test shows them: of ten crops the centre."""
    info = model_info(recipe.model)
    assert info.feature_layer is not None  # which check_evaluations has seen to
    assert info.feature_layout is not None
    shown = data.test.take(np.arange(min(count, len(data.test))))
    batch = TrainingInputs(shown, recipe, device).evaluation_batch(slice(0, len(shown)))
    return saliency_file(grad_cam(network, batch, layer=info.feature_layer, layout=info.feature_layout), shown)


def saliency_file(saliency: Saliency, examples: Examples) -> bytes:
    """A .npz of maps, predicted, labels, ids and the images uint8 (N, C, H, W) to draw them on."""
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        maps=saliency.maps,
        predicted=saliency.predicted,
        labels=examples.labels,
        ids=examples.ids,
        images=examples.inputs,
    )
    return buffer.getvalue()
