"""The official CIFAR-10 python batches, read without letting a pickle call anything but what makes an array."""

import pickle
from pathlib import Path

import numpy as np
import torch

_HARMLESS = {
    ("_codecs", "encode"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
}


class _ArraysOnly(pickle.Unpickler):
    def find_class(self, module, name):
        if (module, name) not in _HARMLESS:
            raise pickle.UnpicklingError(f"a CIFAR batch has no use for {module}.{name}")
        return super().find_class(module.replace("numpy.core", "numpy._core"), name)


def cifar10_test_images(folder: Path) -> tuple[torch.Tensor, np.ndarray]:
    """Images (10000, 3, 32, 32), uint8, and labels (10000,)."""
    with (folder / "cifar-10-batches-py" / "test_batch").open("rb") as file:
        batch = _ArraysOnly(file, encoding="bytes").load()
    return torch.from_numpy(np.array(batch[b"data"]).reshape(-1, 3, 32, 32)), np.array(batch[b"labels"])
