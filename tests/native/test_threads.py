"""How many threads the kernel is allowed, with torch and without; that it works in each of them and after a fork."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from focalcal import _native
from focalcal._native.softmax import affine_loss, moment_sums

WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
from focalcal import _native
print(_native.threads())
"""


def test_torch_is_asked_where_it_is_loaded():
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        assert _native.threads() == 3
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(("setting", "expected"), [("5", "5"), ("7,2", "7"), ("0", None), ("many", None), ("", None)])
def test_without_torch_the_environment_or_the_processors_count(setting, expected):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH],
        env={**os.environ, "OMP_NUM_THREADS": setting},
        capture_output=True,
        text=True,
        check=True,
    )
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert done.stdout.strip() == (expected or str(processors))


def test_a_limit_holds_in_its_block_and_thread_alone():
    usual, elsewhere = _native.threads(), []
    with _native.limit_threads(1):
        assert _native.threads() == 1
        with _native.limit_threads(10_000):
            assert _native.threads() == usual  # a bound, no wish
        assert _native.threads() == 1
        other = threading.Thread(target=lambda: elsewhere.append(_native.threads()))
        other.start()
        other.join()
    assert elsewhere == [usual]
    assert _native.threads() == usual


FORKED = """
import multiprocessing, numpy as np, torch
from focalcal._native import scores, softmax
from focalcal.losses import FocalCalibrationLoss

torch.set_num_threads(2)

logits, labels = np.random.default_rng(0).standard_normal((40_000, 20)), np.zeros(40_000, np.int64)

def work(queue):
    affine = softmax.affine_loss(logits, labels, np.ones(len(logits)), np.ones(20), np.zeros(20))[0]
    passed = scores.score_pass(logits, labels, np.arange(16) / 15, 1e-3, 0.0, logits=True, nll=True)
    z = torch.from_numpy(logits).requires_grad_()
    loss = FocalCalibrationLoss()(z, torch.from_numpy(labels))
    loss.backward()
    sums = softmax.moment_sums(logits, labels, None, 1.0)
    queue.put([sums.log_partition, affine, passed.totals[3], loss.item(), z.grad.norm().item()])

context = multiprocessing.get_context("fork")
queue = context.SimpleQueue()
work(queue)
here = queue.get()
child = context.Process(target=work, args=(queue,))
child.start()
child.join(60)
assert child.exitcode == 0, child.exitcode
np.testing.assert_allclose(queue.get(), here, rtol=1e-12)
print("fine")
"""


@pytest.mark.skipif(not (_native.available() and hasattr(os, "fork")), reason="no native kernel, or no fork here")
def test_a_forked_process_works_after_threads_were_used():
    """OpenMP's team does not survive a fork: a parallel region in the child could wait for ever."""
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", FORKED], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.strip() == "fine", done.stderr


def test_several_threads_at_once_get_what_one_gets():
    generator = np.random.default_rng(1)
    logits, labels = generator.standard_normal((3000, 30)), generator.integers(30, size=3000)

    def work(_):
        return moment_sums(logits, labels, None, 1.0), affine_loss(logits, labels, np.ones(3000), np.eye(30), logits[0])

    with ThreadPoolExecutor(4) as pool:
        every = list(pool.map(work, range(12)))
    for moments, (value, d_weight, _) in every[1:]:
        np.testing.assert_allclose(moments, every[0][0], rtol=1e-12)
        assert value == pytest.approx(every[0][1][0], rel=1e-12)
        np.testing.assert_allclose(d_weight, every[0][1][1], rtol=1e-9, atol=1e-12)
