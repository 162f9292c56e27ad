"""Handwritten digits (UCI; Alpaydin and Kaynak 1998) that scikit-learn carries: 1,797 images uint8 (N, 1, 8, 8).

The grey values 0 .. 16 are scaled to 0 .. 255. Needs no file and no network, hence the default.
"""

from __future__ import annotations

import numpy as np

from focalcal.lab.data.examples import DataSet, Examples, numbered_ids
from focalcal.lab.data.splits import stratified


def load_digits(*, seed: int = 1) -> DataSet:
    """60 / 20 / 20 per cent, every digit divided alike, by `seed`."""
    import sklearn
    from sklearn.datasets import load_digits as bundled

    images, labels = bundled(return_X_y=True)
    pixels = np.rint(images * (255 / 16)).astype(np.uint8).reshape(-1, 1, 8, 8)
    whole = Examples(pixels, labels.astype(np.int64), numbered_ids("digit", len(pixels)))
    rest, test = stratified(whole, 0.2, seed=seed)
    train, val = stratified(rest, 0.25, seed=seed)
    provenance = {
        "files": [],
        "source": f"scikit-learn {sklearn.__version__}",
        "split": f"stratified 60 / 20 / 20, seed {seed}",
        "partial": False,
    }
    return DataSet("digits", tuple("0123456789"), train, val, test, provenance=provenance)
