"""The network of airbench94."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

from focalcal.lab.models import Airbench94
from focalcal.lab.models.airbench import whitening_filters


def network(images, **options):
    torch.manual_seed(0)
    return Airbench94(3, whitening=images, **{"widths": (32, 40, 40), **options})


def test_the_first_layer_whitens_the_images_it_was_made_from():
    correlated = F.avg_pool2d(torch.randn(400, 3, 9, 9, generator=torch.Generator().manual_seed(0)), 2, 1)
    filters = whitening_filters(correlated)
    assert torch.equal(filters[12:], -filters[:12])
    maps = F.conv2d(correlated, filters[:12]).permute(1, 0, 2, 3).flatten(1)
    # 5e-4 is added to every eigenvalue, beside which the smallest one here is .02
    torch.testing.assert_close(torch.cov(maps), torch.eye(12), atol=0.03, rtol=0)


def test_a_training_batch_is_seen_in_groups_and_a_test_image_with_its_mirror_image():
    images = torch.randn(6, 3, 32, 32)
    model = network(images, group=3).train()
    halves = [copy.deepcopy(model)(part) for part in images.split(3)]
    torch.testing.assert_close(model(images), torch.cat(halves))
    model.eval()
    logits = model(images)
    torch.testing.assert_close(model(images.flip(3)), logits)
    torch.testing.assert_close(model(images[2:3]), logits[2:3])


def test_early_layers_are_trained_only_as_said():
    images = torch.randn(4, 3, 32, 32)
    model = network(images, bias_batches=1).train()
    for trained in (True, False):
        model.zero_grad()
        model(images).sum().backward()
        assert (model.bias.grad is not None) is trained
    again = network(torch.randn(4, 3, 32, 32), bias_batches=1)
    again.load_state_dict(model.state_dict())  # with the count of batches, so that a resumed run goes on alike
    again.train()(images).sum().backward()
    assert again.bias.grad is None


def test_a_step_moves_a_bias_sixty_four_times_as_far():
    images = torch.randn(4, 3, 32, 32)
    model = network(images)
    norm = model.features[0][2]
    plain = nn.BatchNorm2d(32, eps=norm.eps, affine=True)
    maps, weights = torch.randn(4, 32, 5, 5), torch.randn(4, 32, 5, 5)
    moved = []
    for layer, scale in ((norm, 8.0), (plain, 1.0)):
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01)
        for _ in range(2):
            optimizer.zero_grad()
            (layer(maps) * weights).sum().backward()
            optimizer.step()
            if layer is plain:
                optimizer.param_groups[0]["lr"] = 0.1
        moved.append(scale * layer.bias.detach())
    # weight decay, 1e-3 of a bias, is what the two do not share
    torch.testing.assert_close(moved[0], 64 * moved[1], rtol=0.01, atol=0)


def test_logits_begin_small_and_convolutions_as_the_identity():
    model = network(torch.randn(8, 3, 32, 32)).eval()
    first = model.features[0][0]
    maps = torch.rand(2, 24, 8, 8)
    torch.testing.assert_close(first(maps)[:, :24], maps)
    assert model(torch.randn(8, 3, 32, 32)).abs().max() < 1
