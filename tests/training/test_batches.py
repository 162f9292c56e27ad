import pytest
import torch
from training_runs import small_recipe

from focalcal.training.batches import epoch_batches, shard, steps_per_epoch


def test_an_epoch_is_a_permutation():
    recipe = small_recipe(batch_size=16)
    batches = list(epoch_batches(recipe, 70, seed=3, epoch=1))
    assert [len(batch) for batch in batches] == [16, 16, 16, 16, 6]
    assert torch.cat(batches).sort().values.tolist() == list(range(70))
    assert steps_per_epoch(recipe, 70) == 5


def test_the_incomplete_batch_can_be_dropped():
    recipe = small_recipe(batch_size=16, drop_last=True)
    assert [len(batch) for batch in epoch_batches(recipe, 70, seed=3, epoch=1)] == [16] * 4
    assert steps_per_epoch(recipe, 70) == 4
    with pytest.raises(
        ValueError, match=r"at least one batch, got 15 training examples for batch_size = 16.*drop_last"
    ):
        steps_per_epoch(recipe, 15)
    with pytest.raises(ValueError, match="data must have training examples, got none"):
        steps_per_epoch(recipe, 0)


def test_order_depends_on_seed_and_epoch_alone():
    def order(seed, epoch):
        return torch.cat(list(epoch_batches(small_recipe(), 230, seed=seed, epoch=epoch))).tolist()

    first = order(0, 1)
    torch.rand(5)  # whatever else is drawn
    assert order(0, 1) == first
    assert len({tuple(order(*which)) for which in ((0, 1), (0, 2), (1, 1))}) == 3


@pytest.mark.parametrize(("count", "processes"), [(64, 2), (53, 2), (53, 4), (3, 4)])
def test_shares_make_up_the_batch(count, processes):
    shares = [list(range(count))[shard(count, rank, processes)] for rank in range(processes)]
    assert [row for one in shares for row in one] == list(range(count))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
