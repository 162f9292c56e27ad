"""Small recipes, for a machine without a GPU: every setting is our judgement."""

from __future__ import annotations

from typing import Any

from focalcal.lab.training.recipe import Optimizer, Recipe, Schedule, Step
from focalcal.lab.training.recipes.paper import CIFAR_MEAN, CIFAR_STD


def _lite(
    data_set: str, classes: int, model: str, epochs: int, lr: float, decay: float = 5e-4, **others: Any
) -> Recipe:
    """SGD and half a cosine, unless `others` say otherwise."""
    usual: dict[str, Any] = {
        "batch_size": 128,
        "optimizer": Optimizer(name="sgd", lr=lr, momentum=0.9, nesterov=True, weight_decay=decay),
        "schedule": Schedule(kind="cosine"),
    }
    return Recipe(data_set=data_set, classes=classes, model=model, epochs=epochs, **{**usual, **others})


def _lite_text(data_set: str, classes: int, epochs: int, **data_options: Any) -> Recipe:
    """128 tokens and word vectors learnt with the rest, so that no file of vectors is needed."""
    return _lite(
        data_set,
        classes,
        "gp_cnn",
        epochs,
        lr=1e-3,
        data_options={"length": 128, "num_words": 20_000, **data_options},
        model_options={"vocabulary": 20_000, "dimension": 50, "dropout": 0.3},
        optimizer=Optimizer(name="adam", lr=1e-3, betas=(0.9, 0.999)),
        schedule=Schedule(kind="constant"),
        drop_last=True,
    )


def _cifar10(model: str, epochs: int) -> Recipe:
    return _lite(
        "cifar10",
        10,
        model,
        epochs,
        lr=0.1,
        data_options={"validation": 5000},
        augmentation=(Step(name="PadCropFlip", options={"pad": 4, "flip": 0.5}),),
        mean=CIFAR_MEAN,
        std=CIFAR_STD,
    )


_DIGITS: dict[str, Any] = {"batch_size": 64, "mean": (0.3053,), "std": (0.3761,)}
_FIXED_SPLIT = {"seed": 0}

LITE: dict[str, Recipe] = {
    "cifar10_resnet8_lite": _cifar10("resnet8", epochs=10),
    "cifar10_resnet20_lite": _cifar10("resnet20", epochs=10),
    "newsgroups_gp_cnn_lite": _lite_text("newsgroups_19997", 20, epochs=10, cut_header=True),
    "ag_news_gp_cnn_lite": _lite_text("ag_news", 4, epochs=3, validation=0),
    "finsen_gp_cnn_lite": _lite_text("finsen", 12, epochs=10, strip_tags=False, validation=0),
    "digits_mlp_lite": _lite(
        "digits",
        10,
        "mlp",
        epochs=100,
        lr=0.1,
        data_options=_FIXED_SPLIT,
        model_options={"features": 64, "hidden": (512, 512), "dropout": 0.5},
        **_DIGITS,
    ),
    "digits_small_cnn_lite": _lite(
        "digits",
        10,
        "small_cnn",
        epochs=15,
        lr=0.05,
        data_options=_FIXED_SPLIT,
        model_options={"channels": 1, "width": 16},
        **_DIGITS,
    ),
    "fashion_mnist_small_cnn_lite": _lite(
        "fashion_mnist",
        10,
        "small_cnn",
        epochs=5,
        lr=0.05,
        data_options={"validation": 5000},
        model_options={"channels": 1, "width": 16},
        augmentation=(Step(name="PadCropFlip", options={"pad": 2, "flip": 0.5}),),
        mean=(0.2860,),
        std=(0.3530,),
    ),
    # One free row of logits per state: training can reach the minimiser of the sample's conditional risk.
    "discrete_mlp_lite": _lite(
        "discrete",
        5,
        "mlp",
        epochs=10,
        lr=0.5,
        decay=0,
        data_options={"seed": 0},
        model_options={"features": 40, "hidden": ()},
    ),
    "gaussian_mixture_mlp_lite": _lite(
        "gaussian_mixture",
        5,
        "mlp",
        epochs=10,
        lr=0.05,
        data_options={"seed": 0, "sizes": (40_000, 4_000, 10_000)},
        model_options={"features": 10, "hidden": (64,)},
    ),
    # 1,077 images with drawn labels: without a strong decay the network learns the draws by heart.
    "teacher_mlp_lite": _lite(
        "teacher",
        10,
        "mlp",
        epochs=30,
        lr=0.05,
        decay=0.02,
        data_options={"seed": 0, "temperature": 2},
        model_options={"features": 64, "hidden": (128,)},
        **_DIGITS,
    ),
    "teacher_overfit_mlp_lite": _lite(
        "teacher",
        10,
        "mlp",
        epochs=30,
        lr=0.1,
        decay=0.0,
        data_options={"seed": 0, "temperature": 2, "test_draws": 10},
        model_options={"features": 64, "hidden": (128,)},
        **_DIGITS,
    ),
}
