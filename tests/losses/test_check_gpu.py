import pytest
import torch
from support.engines import INTERPRETED

from focalcal.losses import check_gpu, triton_launch


@pytest.mark.skipif(INTERPRETED or torch.cuda.is_available(), reason="there is something to run the kernels on")
def test_without_a_gpu_it_says_so(capsys):
    assert check_gpu.main() == 2
    assert "torch sees none here" in capsys.readouterr().err


def test_it_looks_at_every_loss_that_the_kernels_serve():
    assert {"ce", "focal", "brier", "ls", "flsd53", "dual_focal", "adafocal", "fcl"} <= check_gpu.losses().keys()


@pytest.mark.skipif(not INTERPRETED, reason="needs TRITON_INTERPRET=1; `make test-triton` sets it")
def test_the_kernels_agree_with_torch_and_a_wrong_one_would_not(capsys, monkeypatch):
    shapes, dtypes = [(6, 4)], [torch.float32, torch.float16]
    assert check_gpu.check("cpu", shapes, dtypes)
    rows = len(check_gpu.losses()) * len(dtypes)
    assert f"{rows} of {rows} agree with torch." in capsys.readouterr().out
    monkeypatch.setattr(triton_launch, "_kind", lambda kernel, terms: kernel.BRIER)
    assert not check_gpu.check("cpu", shapes, dtypes)
    assert "WRONG" in capsys.readouterr().out
