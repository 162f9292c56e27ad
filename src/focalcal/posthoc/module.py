"""Fitted calibrators as `nn.Module`s: the one file of calibration that needs torch, imported when it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from focalcal.core.arrays import as_array, is_tensor
from focalcal.core.chunks import row_chunks
from focalcal.posthoc.calibrator_inputs import flat_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Float

    from focalcal.posthoc.calibrator import Calibrator


class CalibratorModule(nn.Module):
    """A fitted calibrator's map from logits (N, K, ...) to probabilities, what it learnt in float64 buffers.

    Computed in float64; the result has the logits' dtype, float32 at least. It can be exported by `torch.export` and to
    ONNX. `state_dict` holds what was learnt; the calibrator's arguments are part of the module. Nothing is checked:
    check once, with `predict_proba`.
    """

    def __init__(self, calibrator: Calibrator) -> None:
        super().__init__()
        self._calibrator = calibrator
        for name, array in calibrator._arrays().items():
            self.register_buffer(name, torch.tensor(np.asarray(array), dtype=torch.float64))

    def forward(self, logits: Float[Tensor, "n k *d"]) -> Float[Tensor, "n k *d"]:
        """Calibrated probabilities."""
        learnt = {name: buffer.double() for name, buffer in self.named_buffers(recurse=False)}
        probs: Tensor = self._calibrator._map(flat_rows(logits).double(), **learnt)
        if logits.dim() > 2:
            probs = probs.view(logits.shape[0], *logits.shape[2:], logits.shape[1]).movedim(-1, 1)
        return probs.to(torch.promote_types(logits.dtype, torch.float32))

    def extra_repr(self) -> str:
        """The calibrator."""
        return repr(self._calibrator)


class MultilabelModule(nn.Module):
    """The maps of a `MultilabelCalibration`, from logits (N, L) to probabilities of yes (N, L)."""

    def __init__(self, maps: Sequence[nn.Module]) -> None:
        super().__init__()
        self.maps = nn.ModuleList(maps)

    def forward(self, logits: Float[Tensor, "n l"]) -> Float[Tensor, "n l"]:
        """Calibrated probabilities."""
        columns = [logits.flatten()] if len(self.maps) == 1 else logits.unbind(1)
        each = [
            two_class_map(torch.stack([torch.zeros_like(column), column], 1))[:, 1]
            for two_class_map, column in zip(self.maps, columns, strict=True)
        ]
        return each[0].view(logits.shape) if len(self.maps) == 1 else torch.stack(each, 1)


def network_logits(network: nn.Module, X: Any) -> Any:
    """In evaluation mode and without gradients, in pieces; NumPy unless X is a tensor."""
    rows = X if is_tensor(X) else torch.from_numpy(np.ascontiguousarray(as_array("X", X)))
    like = next(network.parameters(), torch.empty(0))
    rows = rows.detach().to(like.device, like.dtype if rows.is_floating_point() else rows.dtype)
    modes = [(part, part.training) for part in network.modules()]
    network.eval()
    try:
        with torch.no_grad():
            logits = torch.cat([network(piece) for _, piece in row_chunks(rows)])
    finally:
        for part, training in modes:
            part.training = training
    return logits if is_tensor(X) else logits.cpu().numpy()
