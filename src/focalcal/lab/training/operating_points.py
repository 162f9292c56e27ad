"""The gamma and lam of Focal Calibration Loss by data set, or by data set and network where networks differ."""

from __future__ import annotations

from typing import NamedTuple


class Point(NamedTuple):
    """The two hyper-parameters."""

    gamma: float
    lam: float


# The recipes' files say which of them the paper states, docs/guide/recipes.md how the others were chosen.
OPERATING_POINTS: dict[str, Point] = {
    "cifar10": Point(4.0, 1.5),
    "cifar100": Point(4.0, 1.5),
    "cifar100/deit_small": Point(3.0, 1.0),
    "cifar100/vit_small": Point(3.0, 1.0),
    "cifar100/swin_tiny": Point(3.0, 1.0),
    "tiny_imagenet": Point(4.0, 1.5),
    "newsgroups": Point(3.0, 4.0),
    "newsgroups_19997": Point(3.0, 4.0),
    "ag_news": Point(3.0, 4.0),
    "finsen": Point(3.0, 4.0),
    "chestxray14": Point(2.0, 2.0),
    "digits": Point(3.0, 1.0),
    "fashion_mnist": Point(3.0, 1.0),
    "discrete": Point(3.0, 1.0),
    "gaussian_mixture": Point(3.0, 1.0),
    "teacher": Point(3.0, 1.0),
}


def fcl_point(data_set: str, model: str) -> Point | None:
    """The point of this network on this data set; None where the table has none, so that the loss's defaults hold.

    >>> fcl_point("cifar10", "resnet50")
    Point(gamma=4.0, lam=1.5)
    """
    return OPERATING_POINTS.get(f"{data_set}/{model}", OPERATING_POINTS.get(data_set))
