"""Which precision a recipe trains in on which device."""

import pytest
import torch
from support.model_examples import inputs, small
from support.training_runs import small_digits, small_recipe

from focalcal.lab.training import fit, precision
from focalcal.lab.training.precision import has_bfloat16, mixed_precision
from focalcal.losses import CrossEntropyLoss

CPU = torch.device("cpu")


def test_float32_unless_a_recipe_says_otherwise(monkeypatch):
    for recipe in (small_recipe(), small_recipe(mixed_precision=True)):  # the latter on a GPU alone
        context, scaler = mixed_precision(recipe, CPU)
        with context:
            assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32
        assert not scaler.is_enabled()
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": True}, raising=False)
    with mixed_precision(small_recipe(bfloat16=True), CPU)[0]:
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": False}, raising=False)
    with pytest.raises(ValueError, match="bfloat16 must be False on a processor without avx512_bf16 or amx_bf16"):
        mixed_precision(small_recipe(bfloat16=True), CPU)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"amx_bf16": True}, raising=False)
    for limit, there in (("AVX512_CORE", False), ("avx512_core_bf16", True), ("ALL", True), ("AVX2", False)):
        monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", limit)
        assert has_bfloat16() is there


def test_training_in_bfloat16_ends_near_float32(monkeypatch):
    monkeypatch.setattr(precision, "has_bfloat16", lambda: True)  # others emulate it
    data = small_digits(train=600)
    nll = {}
    for half in (False, True):
        fitted = fit(small_recipe(bfloat16=half, epochs=10), data, CrossEntropyLoss(), seed=0)
        nll[half] = fitted.epochs[-1]["val"]["nll"]
        assert all(weight.dtype == torch.float32 for weight in fitted.model.parameters())
    assert nll[True] != nll[False]
    assert nll[True] == pytest.approx(nll[False], abs=0.02)


@pytest.mark.parametrize("name", ["airbench94", "minilm"])
def test_logits_have_more_digits_than_what_they_are_computed_from(name):
    if name == "minilm":
        pytest.importorskip("transformers")
    network, batch = small(name).eval(), inputs(name, 6)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        half = network(batch)
    assert half.dtype == torch.float32
    assert not torch.equal(half, half.bfloat16().float())
    torch.testing.assert_close(half, network(batch).detach(), atol=0.02, rtol=0.02)
