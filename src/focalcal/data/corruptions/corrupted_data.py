"""A data set's test images, corrupted: a shift study without the published files."""

from __future__ import annotations

from dataclasses import replace

from focalcal.data.corruptions.corrupt import corrupt
from focalcal.data.examples import DataSet


def corrupted(data: DataSet, name: str, severity: int = 5, *, seed: int) -> DataSet:
    """`data`'s test split under one of the `CORRUPTIONS`; its other splits are empty, there is nothing to train on.

    Labels and ids stay. Chance follows the ids, so that a part of the test split is corrupted as in the whole. The
    provenance says which corruption this is, and that it was made here.
    """
    test = data.test
    images = corrupt(test.inputs, name, severity, seed=seed, ids=test.ids)
    options = {"corruption": name, "severity": int(severity), "seed": int(seed)}
    provenance = {**data.provenance, "corrupted_from": data.name, "corrupted": {**options, "regenerated": True}}
    return replace(
        data,
        name=f"{data.name}_{name}_{severity}",
        train=data.train.none(),
        val=data.val.none(),
        test=replace(test, inputs=images),
        provenance=provenance,
    )
