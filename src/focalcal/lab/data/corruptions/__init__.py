"""The corruptions of CIFAR-10-C: noise, blur, weather and digital damage, at five severities.

A regeneration of Hendrycks and Dietterich (2019), "Benchmarking neural network robustness to common corruptions and
perturbations", from its recipe at CIFAR strengths, not the published files: the random numbers are others, "frost" uses
drawn textures instead of photographs, "zoom_blur" ends where its severities say. Numbers measured on it are comparable
with each other, and only roughly with those on the published files.
"""

from focalcal.lab.data.corruptions.corrupt import CORRUPTIONS, SEVERITIES, Corruption, corrupt, corrupted

__all__ = ["CORRUPTIONS", "SEVERITIES", "Corruption", "corrupt", "corrupted"]
