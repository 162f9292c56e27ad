"""How many threads the kernel is allowed, where torch is loaded and where it is not."""

import os
import subprocess
import sys
import threading

import pytest
import torch

from focalcal import _native

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
