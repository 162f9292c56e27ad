import torch

from focalcal.losses.numerics import against_label, at_least_float32


def test_log_odds_against_the_label():
    z, labels = torch.randn(20, 6, dtype=torch.float64), torch.randint(0, 6, (20,))
    u, shares = against_label(z, labels)
    p = z.softmax(1)
    own = p.gather(1, labels[:, None]).squeeze(1)
    torch.testing.assert_close(u, ((1 - own) / own).log())
    torch.testing.assert_close(shares.sum(1), torch.ones(20, dtype=torch.float64))
    assert not shares.gather(1, labels[:, None]).any()
    torch.testing.assert_close(shares * (1 - own)[:, None] + p * 0, torch.where(shares == 0, 0, p))


def test_exact_where_one_minus_p_vanishes():
    u, _ = against_label(torch.tensor([[60.0, 0.0], [1e4, 1e4 - 0.5]]), torch.tensor([0, 0]))
    assert u.tolist() == [-60.0, -0.5]


def test_no_other_class():
    u, shares = against_label(torch.tensor([[2.0, -torch.inf]]), torch.tensor([0]))
    assert u.item() == -torch.inf
    assert torch.isfinite(shares).all()
    assert against_label(torch.randn(3, 1), torch.zeros(3, dtype=torch.long))[0].tolist() == [-torch.inf] * 3


def test_half_precision_is_raised_and_nothing_else():
    for dtype, expected in ((torch.float16, torch.float32), (torch.bfloat16, torch.float32), (torch.float64,) * 2):
        assert at_least_float32(torch.ones(1, dtype=dtype)).dtype == expected
