"""Keys of the shipped recipes' runs do not change: a run that somebody has stored is found again."""

import pytest
from support.older_store import older_key, older_spec

from focalcal.experiments.spec_builder import spec_of
from focalcal.models import MODEL_INFO
from focalcal.results.keys import current_key
from focalcal.training import recipe

# The first 12 digits of the keys under which version 0.1 stored them, key schema 1,
# for seed 0 with cross-entropy and with Focal Calibration Loss at the recipe's gamma and lam.
KEYS = {
    "cifar10_resnet50": ("1eebd8dabb83", "24575852af77"),
    "cifar10_resnet110": ("8d8ca67e17ee", "d98a99ac43a7"),
    "cifar10_wide_resnet26_10": ("e8ffc375366d", "772469119d2b"),
    "cifar10_densenet121": ("d1ce736e2569", "9e5f6b6bba8c"),
    "cifar100_resnet50": ("5a480ac0486e", "cf8736409022"),
    "cifar100_resnet110": ("cdd5b59ac6a8", "d0b88c1b8347"),
    "cifar100_wide_resnet26_10": ("d42c9400ff50", "9b46de8d65aa"),
    "cifar100_densenet121": ("41d27cc60865", "405fb0878572"),
    "tiny_imagenet_resnet50": ("f109e8b747bf", "26ca7ea27645"),
    "cifar10_resnet50_45k": ("876ddfc3655e", "a6aa016e3e0a"),
    "cifar100_resnet50_45k": ("fd652e1ca2ae", "dc2e5e023186"),
    "cifar100_resnet110_45k": ("e903d3b70b8c", "a29e31667422"),
    "newsgroups_gp_cnn": ("c6fb5291a91a", "182942064c7c"),
    "ag_news_gp_cnn": ("b7dab6e72185", "03cabd71c5cc"),
    "finsen_gp_cnn": ("d8aee7117df9", "2d10c55019b5"),
    "cifar100_deit_small": ("490bb742c085", "7b914a78f605"),
    "cifar100_vit_small": ("cc8fe1187b85", "f81438bcc629"),
    "cifar100_swin_tiny": ("ccfb7cd9d72f", "5815a984a9ca"),
    "cifar100_deit_small_scratch": ("3b1b38ad6ea0", "7ebe9cf45598"),
    "cifar100_vit_small_scratch": ("56ada43546fb", "b288d1c028da"),
    "cifar100_swin_tiny_scratch": ("e9b7ebedb513", "67034fd497c9"),
    "chestxray14_chexnet": ("0cf65485216c", "a2624f909d67"),
    "cifar10_resnet8_lite": ("2a3c91dc6ec7", "caaef7c84368"),
    "cifar10_resnet20_lite": ("43631d2f4960", "15f413c0587d"),
    "newsgroups_gp_cnn_lite": ("11d545ba3b46", "21f464a24b01"),
    "ag_news_gp_cnn_lite": ("3cabbe090376", "5a570796bd24"),
    "finsen_gp_cnn_lite": ("5aca79525b4a", "e2faa843c2d5"),
    "digits_mlp_lite": ("522e1d541012", "03fe0d1cc7b8"),
    "digits_small_cnn_lite": ("7f9c88a6fdbd", "588e9ea0a3f2"),
    "fashion_mnist_small_cnn_lite": ("e34b489c3930", "c33e4777bee7"),
    "discrete_mlp_lite": ("0adb464c2d8d", "a554ea0d57fd"),
    "gaussian_mixture_mlp_lite": ("8503b3968273", "4ebe2a268236"),
    "teacher_mlp_lite": ("5a424f3d554c", "f331665d4ecc"),
}


@pytest.mark.parametrize("name", KEYS)
def test_a_recipe_keeps_the_keys_of_its_runs(name):
    chosen = recipe(name)
    objectives = ("multilabel_bce", "multilabel_fcl") if MODEL_INFO[chosen.model].multilabel else ("ce", "fcl")
    specs = [spec_of(chosen, objective, seed=0) for objective in objectives]
    assert tuple(older_key(older_spec(spec))[:12] for spec in specs) == KEYS[name]
    assert [current_key(older_spec(spec)) for spec in specs] == [spec.key for spec in specs]
