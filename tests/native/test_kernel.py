"""What the kernel owes its surroundings: threads, forks, flags, layouts without a copy."""

import os
import subprocess
import sys
import textwrap

import pytest
import torch

from focalcal import _native
from focalcal.losses import FocalCalibrationLoss
from focalcal.losses.native_engine import fused_loss

needs_kernel = pytest.mark.skipif(not _native.available(), reason="the native kernel was not built here")


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_kernel_is_built_where_there_is_a_compiler():
    import shutil

    turned_off = os.environ.get("FOCALCAL_NATIVE") == "0"
    if (shutil.which("cc") or shutil.which("gcc")) and not turned_off:
        assert _native.available()
        assert _native.instruction_sets()[0] == "baseline"


@needs_kernel
@pytest.mark.parametrize("shape", [(2000, 100), (3, 21, 64, 64), (40, 50000)])
def test_the_number_of_threads_does_not_change_the_gradient(shape):
    logits = torch.randn(shape)
    labels = torch.randint(0, shape[1], (shape[0], *shape[2:]))
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 7):
            torch.set_num_threads(threads)
            results.append(fused_loss(logits, labels, gamma=3.0, lam=1.0))
        again = [fused_loss(logits.double(), labels, gradient=False)[0] for _ in range(20)]
        assert len({loss.item() for loss in again}) == 1  # as many threads, the same bits
    finally:
        torch.set_num_threads(before)
    for loss, grad, _ in results[1:]:
        torch.testing.assert_close(loss, results[0][0])
        torch.testing.assert_close(grad, results[0][1])


@needs_kernel
def test_denormal_arithmetic_is_restored():
    tiny = torch.tensor([1e-40, 1e-40])
    fused_loss(50 * torch.randn(500, 100), torch.zeros(500, dtype=torch.long), gamma=3.0, lam=1.0)
    assert (tiny + tiny)[0].item() > 0
    assert float("1e-300") * float("1e-10") > 0  # in Python, which cannot fold this


@needs_kernel
@pytest.mark.parametrize(
    ("views", "labels_of"),
    [
        (lambda rows: rows.mT.contiguous().mT, lambda labels: labels),
        (lambda rows: torch._neg_view(-rows), lambda labels: labels),
        (lambda rows: rows, lambda labels: labels.repeat_interleave(2)[::2]),
    ],
    ids=["transposed", "negated", "labels apart"],
)
@pytest.mark.parametrize("ignore_index", [-100, 3])
def test_rows_that_are_read_as_they_are_give_what_views_of_them_give(views, labels_of, ignore_index):
    rows, labels = torch.randn(30, 7), torch.randint(0, 7, (30,))
    loss = FocalCalibrationLoss(ignore_index=ignore_index)
    bare, view = rows.clone().requires_grad_(), views(rows).detach().requires_grad_()
    torch.testing.assert_close(loss(view, labels_of(labels)), loss(bare, labels))
    loss(bare, labels).backward()
    loss(view, labels_of(labels)).backward()
    torch.testing.assert_close(view.grad, bare.grad)


@needs_kernel
def test_channels_last_gradients_keep_their_format():
    logits = torch.randn(2, 5, 6, 7).contiguous(memory_format=torch.channels_last)
    _, grad, _ = fused_loss(logits, torch.zeros(2, 6, 7, dtype=torch.long))
    assert grad.is_contiguous(memory_format=torch.channels_last)


@needs_kernel
@pytest.mark.parametrize("shape", [(128, 32000), (3, 50, 40, 40)])
def test_the_array_is_not_copied(shape):
    """Peak allocation is the gradient alone, measured by torch's profiler."""
    logits, labels = torch.randn(shape), torch.zeros((shape[0], *shape[2:]), dtype=torch.long)
    with torch.profiler.profile(profile_memory=True) as profile:
        fused_loss(logits, labels, gamma=3.0, lam=1.0)
    allocated = sum(max(event.self_device_memory_usage, event.self_cpu_memory_usage, 0) for event in profile.events())
    assert allocated < 1.1 * logits.nbytes


def test_without_the_kernel_everything_works_with_one_notice():
    script = """
        import sys, warnings
        sys.modules["focalcal._native._kernel"] = None  # as if it had not been built
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            import torch
            from focalcal import FocalCalibrationLoss
            from focalcal._native import NativeKernelWarning
            assert not [w for w in caught if w.category is NativeKernelWarning], "importing must be silent"
            z = torch.randn(8, 5, requires_grad=True)
            for _ in range(3):
                FocalCalibrationLoss(0, 0)(z, torch.zeros(8, dtype=torch.long)).backward()
        notices = [w for w in caught if w.category is NativeKernelWarning]
        assert len(notices) == 1, len(notices)
        assert "Install a C compiler" in str(notices[0].message)
        torch.testing.assert_close(z.grad, 3 * (z.softmax(1) - torch.eye(5)[0]).detach() / 8)
        print("fine")
    """
    done = run_python(script, FOCALCAL_NATIVE="1")
    assert done.stdout.strip() == "fine", done.stderr


def test_the_kernel_can_be_turned_off():
    done = run_python(
        "from focalcal import _native; print(_native.available(), _native.instruction_sets())", FOCALCAL_NATIVE="0"
    )
    assert done.stdout.strip() == "False ()", done.stderr


@needs_kernel
def test_the_kernel_can_be_held_to_an_instruction_set():
    code = "from focalcal import _native; print(*_native.kernel().instruction_sets())"
    every = run_python(code, FOCALCAL_INSTRUCTION_SET="").stdout.split()
    for count, name in enumerate(every, 1):
        assert run_python(code, FOCALCAL_INSTRUCTION_SET=name).stdout.split() == every[:count]
    message = "ValueError: FOCALCAL_INSTRUCTION_SET must be baseline, avx2 or avx512, got sse"
    assert message in run_python(code, FOCALCAL_INSTRUCTION_SET="sse").stderr
