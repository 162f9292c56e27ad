"""Who states each setting of the paper's recipes. Lite recipes are our judgement throughout and have no row here.

paper      Liang et al., "Focal Calibration Loss", states it
code       the paper does not, and it is in the published code of a reference that the paper says it follows
           (Mukhoti et al. 2020 and what came after it; for X-rays a public CheXNet)
judgement  nobody states it, or the sources differ, and the choice is ours; docs/guide/recipes.md gives the reasons

A setting is a field of `Recipe`, a part of one such as "optimizer.lr", which overrides its field, or "gamma" or "lam"
of Focal Calibration Loss (`training.operating_points`). Fields that are left at None or False can have a source too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

Sources = dict[str, str]


def _sources(
    otherwise: Mapping[str, str] | None = None,
    *,
    paper: Iterable[str] = (),
    code: Iterable[str] = (),
    judgement: Iterable[str] = (),
) -> Sources:
    """The source by setting; those that are not named here are as in `otherwise`."""
    named = {"paper": paper, "code": code, "judgement": judgement}
    return dict(otherwise or {}) | {setting: source for source, settings in named.items() for setting in settings}


_POINT = ("gamma", "lam")
_STATISTICS = ("mean", "std")

_IMAGES = _sources(
    paper=("data_set", "classes", "model", "initial_weights", "optimizer.name", "optimizer.momentum", "schedule.kind"),
    code=("optimizer", "schedule", "epochs", "batch_size", "augmentation", *_STATISTICS),
    judgement=("data_options", "optimizer.nesterov", "gradient_clip", *_POINT),
)
_RESNET110 = _sources(_IMAGES, judgement=("model",))  # which of two networks of that name
_TINY_IMAGENET = _sources(_IMAGES, judgement=("model", "batch_size"))
_COMMON_SPLIT = ("data_options",)  # 45,000 / 5,000 / 10,000

_TEXTS = _sources(
    paper=("data_set", "classes", "model", "optimizer.name"),
    code=("data_options", "model_options", "word_vectors", "optimizer", "epochs", "batch_size", "drop_last"),
    judgement=("optimizer.weight_decay", "schedule", "gradient_clip", *_POINT),
)
_SHORT_TEXTS = _sources(_TEXTS, judgement=("data_options", "epochs"))

_FINE_TUNED = _sources(
    paper=(
        *("data_set", "classes", "model", "initial_weights", "optimizer.name", "schedule.kind"),
        *("image_size", *_POINT),  # the native resolution
    ),
    code=_STATISTICS,
    judgement=(
        *("data_options", "model_options", "optimizer", "schedule", "epochs", "batch_size", "mixed_precision"),
        *("gradient_clip", "augmentation", "evaluation"),
    ),
)
_FROM_SCRATCH = _sources(
    _FINE_TUNED,
    paper=("schedule", "epochs"),
    judgement=("after_normalisation", "image_size", *_STATISTICS, *_POINT),
)

_CHEXNET = _sources(
    paper=("data_set", "classes", "model", "evaluation", "lam"),
    code=(
        *("initial_weights", "optimizer", "schedule", "epochs", "batch_size", "augmentation", *_STATISTICS),
        "image_size",
    ),
    judgement=("data_options", "gradient_clip", "gamma"),
)

SOURCES: dict[str, Sources] = {
    "cifar10_resnet50": _sources(_IMAGES, paper=_POINT),
    "cifar10_resnet110": _RESNET110,
    "cifar10_wide_resnet26_10": _IMAGES,
    "cifar10_densenet121": _IMAGES,
    "cifar100_resnet50": _IMAGES,
    "cifar100_resnet110": _sources(_RESNET110, paper=_POINT),
    "cifar100_wide_resnet26_10": _IMAGES,
    "cifar100_densenet121": _IMAGES,
    "tiny_imagenet_resnet50": _TINY_IMAGENET,
    "cifar10_resnet50_45k": _sources(_IMAGES, paper=(*_POINT, *_COMMON_SPLIT)),
    "cifar100_resnet50_45k": _sources(_IMAGES, paper=_COMMON_SPLIT),
    "cifar100_resnet110_45k": _sources(_RESNET110, paper=(*_POINT, *_COMMON_SPLIT)),
    "newsgroups_gp_cnn": _TEXTS,
    "ag_news_gp_cnn": _SHORT_TEXTS,
    "finsen_gp_cnn": _SHORT_TEXTS,
    "cifar100_deit_small": _FINE_TUNED,
    "cifar100_vit_small": _FINE_TUNED,
    "cifar100_swin_tiny": _FINE_TUNED,
    "cifar100_deit_small_scratch": _FROM_SCRATCH,
    "cifar100_vit_small_scratch": _FROM_SCRATCH,
    "cifar100_swin_tiny_scratch": _FROM_SCRATCH,
    "chestxray14_chexnet": _CHEXNET,
}
