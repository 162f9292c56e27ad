"""Learning rates, against torch's own schedulers."""

import math
import random

import pytest
import torch
from training_runs import small_recipe

from focalcal.training import Schedule
from focalcal.training.schedule import Plateau, rate_share

STEPS = 7


def an_optimizer():
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)


def torch_rates(scheduler, steps):
    rates = []
    for _ in range(steps):
        rates.append(scheduler.optimizer.param_groups[0]["lr"])
        scheduler.optimizer.step()
        scheduler.step()
    return rates


def our_rates(epochs, **schedule):
    recipe = small_recipe(epochs=epochs, schedule=Schedule(**schedule))
    return [rate_share(recipe, step, STEPS) for step in range(epochs * STEPS)]


def test_constant():
    assert our_rates(3, kind="constant") == [1.0] * 3 * STEPS


def test_milestones_change_at_the_end_of_these_epochs():
    scheduler = torch.optim.lr_scheduler.MultiStepLR(an_optimizer(), [2, 5], gamma=0.1)
    expected = [rate for rate in torch_rates(scheduler, 8) for _ in range(STEPS)]
    assert our_rates(8, kind="milestones", milestones=(2, 5), factor=0.1) == pytest.approx(expected, rel=1e-12)


def test_cosine_falls_in_every_step_and_would_end_at_zero():
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(an_optimizer(), T_max=4 * STEPS)
    rates = our_rates(4, kind="cosine")
    assert rates == pytest.approx(torch_rates(scheduler, 4 * STEPS), abs=1e-12)
    assert rates == sorted(rates, reverse=True)


@pytest.mark.parametrize("kind", ["constant", "cosine"])
def test_warm_up_is_linear_and_reaches_the_full_rate_in_its_last_step(kind):
    warm = 2 * STEPS
    optimizer = an_optimizer()
    up = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=1 / warm, total_iters=warm - 1)
    rates = our_rates(5, kind=kind, warmup=2)
    assert rates[:warm] == pytest.approx(torch_rates(up, warm), rel=1e-12)
    assert rates[warm - 1] == rates[warm] == 1.0
    if kind == "cosine":
        down = torch.optim.lr_scheduler.CosineAnnealingLR(an_optimizer(), T_max=3 * STEPS)
        assert rates[warm:] == pytest.approx(torch_rates(down, 3 * STEPS), abs=1e-12)


@pytest.mark.parametrize("patience", [0, 1, 3])
def test_plateau_lowers_when_torch_does(patience):
    draw = random.Random(patience)
    losses = [1 / (1 + epoch / 5) + draw.uniform(-0.15, 0.15) for epoch in range(60)] + [0.3] * 5
    losses[10] = losses[9] * (1 - 5e-5)  # a fall too small to count
    optimizer = an_optimizer()
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=patience, eps=0)
    plateau = Plateau()
    for loss in losses:
        scheduler.step(loss)
        plateau.see(loss, patience)
        assert 0.5**plateau.lowered == optimizer.param_groups[0]["lr"]
    assert plateau.lowered > 2
    again = Plateau()
    again.restore(plateau.state())
    assert again == plateau
    assert not math.isinf(again.best)
