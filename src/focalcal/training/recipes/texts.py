"""The global-pooling CNN on 20 Newsgroups, AG News and FinSen."""

from __future__ import annotations

from typing import Any

from focalcal.training.recipe import Recipe
from focalcal.training.recipe_parts import Optimizer

_TEXT_SOURCES = {
    "data_set": "paper",
    "data_options": "code",
    "classes": "paper",
    "model": "paper",
    "model_options": "code",
    "word_vectors": "code",
    "optimizer": "code",
    "optimizer.name": "paper",
    "optimizer.weight_decay": "judgement",
    "schedule": "judgement",
    "epochs": "code",
    "batch_size": "code",
    "drop_last": "code",
    "gradient_clip": "judgement",
    "fcl_gamma": "judgement",
    "fcl_lam": "judgement",
}
_CUT_JUDGED = {"data_options": "judgement", "epochs": "judgement"}


def _text_cnn(
    data_set: str, classes: int, data_options: dict[str, Any], epochs: int, sources: dict[str, str] | None = None
) -> Recipe:
    return Recipe(
        data_set=data_set,
        data_options={"num_words": 20_000, **data_options},
        classes=classes,
        model="gp_cnn",
        model_options={"train_embedding": False, "dropout": 0.3},
        word_vectors="glove.6B.100d",
        optimizer=Optimizer(name="adam", lr=1e-3, betas=(0.9, 0.999)),
        epochs=epochs,
        batch_size=128,
        drop_last=True,
        fcl_gamma=3,
        fcl_lam=4,
        sources={**_TEXT_SOURCES, **(sources or {})},
    )


TEXTS: dict[str, Recipe] = {
    "newsgroups_gp_cnn": _text_cnn("newsgroups_19997", 20, {"cut_header": True, "length": 1000}, 50),
    "ag_news_gp_cnn": _text_cnn("ag_news", 4, {"length": 128, "validation": 0}, 20, _CUT_JUDGED),
    "finsen_gp_cnn": _text_cnn("finsen", 12, {"length": 256, "strip_tags": False, "validation": 0}, 20, _CUT_JUDGED),
}
