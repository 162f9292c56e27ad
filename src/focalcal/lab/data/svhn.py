"""Street View House Numbers (Netzer et al. 2011): colour images uint8 (N, 3, 32, 32) of cropped digits.

`train_32x32.mat` and `test_32x32.mat` hold X (32, 32, 3, N) and y (N, 1), in which the digit 0 is written 10.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from focalcal.lab.data.errors import problem
from focalcal.lab.data.examples import DataSet, Examples, numbered_ids
from focalcal.lab.data.source_files import SourceFiles

_EXPECTED = {
    "train": (4948, 13861, 10585, 8497, 7458, 6882, 5727, 5595, 5045, 4659),
    "test": (1744, 5099, 4149, 2882, 2523, 2384, 1977, 2019, 1660, 1595),
}


def load_svhn(folder: Path, *, allow_partial: bool = False, test_only: bool = False, validation: int = 0) -> DataSet:
    """The official split; `test_only` leaves the training file alone, for use as shifted data."""
    sources = SourceFiles("svhn", folder, allow_partial=allow_partial)
    expected = {split: counts for split, counts in _EXPECTED.items() if split == "test" or not test_only}
    parts = {split: _read(sources, split) for split in expected}
    return sources.data_set(tuple("0123456789"), parts, expected, validation, test_only=test_only)


def _read(sources: SourceFiles, split: str) -> Examples | None:
    from scipy.io import loadmat

    path = sources.path / f"{split}_32x32.mat"
    if not path.exists():  # in a part of the data set
        return None
    with sources.found(path, "SVHN's .mat file with X and y") as file:
        arrays = loadmat(file, variable_names=("X", "y"))
        pixels, digits = arrays["X"], arrays["y"].ravel().astype(np.int64)
        if pixels.dtype != np.uint8 or pixels.shape != (32, 32, 3, len(digits)):
            rule = f"X must be uint8 (32, 32, 3, {len(digits)})"
            raise problem(path, rule, f"{pixels.dtype} {pixels.shape}", "fetch it again")
        if len(digits) and not (digits.min() >= 1 and digits.max() <= 10):
            wrong = int(digits[(digits < 1) | (digits > 10)][0])
            raise problem(path, "y must be from 1 to 10", wrong, "fetch it again")
        images = np.ascontiguousarray(pixels.transpose(3, 2, 0, 1))
        return Examples(images, digits % 10, numbered_ids(split, len(digits)))
