"""Augmentation of whole batches of images, by keys that make it repeat: see `augmentation`."""

from focalcal.lab.data.augment.augmentation import Augmentation, Compose
from focalcal.lab.data.augment.counter_rng import example_keys
from focalcal.lab.data.augment.pad_crop_flip import PadCropFlip, RandomFlip
from focalcal.lab.data.augment.rand_augment import RandAugment
from focalcal.lab.data.augment.rectangles import RandomErasing, RandomResizedCrop

__all__ = [
    "Augmentation",
    "Compose",
    "PadCropFlip",
    "RandAugment",
    "RandomErasing",
    "RandomFlip",
    "RandomResizedCrop",
    "example_keys",
]
