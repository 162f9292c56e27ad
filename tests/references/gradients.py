"""A loss of the focal family and its gradient, on a chosen engine."""

import torch

from focalcal.losses.engines import focal_family


def value_and_gradient(logits, target, terms, engine, **keywords):
    leaf = logits.detach().clone().requires_grad_()
    value = focal_family(leaf, target, terms, engine=engine, **keywords)
    return value.detach(), torch.autograd.grad(value.sum(), leaf)[0]
