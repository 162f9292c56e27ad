import os
import sys
from pathlib import Path

# oneDNN would otherwise pick AMX for bfloat16 on processors that advertise it and cannot run it.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE")
# As many workers as cores run side by side: threads of their own would only wait for one another.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
import torch
from hypothesis import HealthCheck, settings

torch.set_num_threads(1)

settings.register_profile("focalcal", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("focalcal")


@pytest.fixture(autouse=True)
def _apart():
    """The same random numbers for every test, and nothing compiled left over from another."""
    torch.manual_seed(0)
    yield
    if "torch._dynamo" in sys.modules:
        torch.compiler.reset()


@pytest.fixture
def data_folder() -> Path:
    """The folder of real data sets that FOCALCAL_DATA names."""
    folder = os.environ.get("FOCALCAL_DATA")
    if not folder or not Path(folder).is_dir():
        message = f"needs real data: set FOCALCAL_DATA to a folder that holds it (now {folder!r})"
        if os.environ.get("FOCALCAL_REQUIRE_DATA"):
            pytest.fail(message)
        pytest.skip(message)
    return Path(folder)
