"""What Triton's compiler makes of the kernels for GPUs that are not here: exactly what a launch would compile."""

import re
import subprocess
from pathlib import Path

import pytest
import torch
from support.engines import INTERPRETED

from focalcal.losses import triton_launch
from focalcal.losses.formula import Terms

triton = pytest.importorskip("triton")
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.once,
    pytest.mark.skipif(
        not triton.__version__.startswith("3.7."), reason="counts what the compiler of constraints.txt makes, 3.7"
    ),
    pytest.mark.skipif(INTERPRETED, reason="the interpreter has taken the compiler's place"),
]

A100, H100, MI300 = GPUTarget("cuda", 80, 32), GPUTarget("cuda", 90, 32), GPUTarget("hip", "gfx942", 64)
TYPES = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16", torch.int64: "i64", torch.int32: "i32"}
STEPS = Terms(edges=torch.linspace(0, 1, 16), gammas=torch.linspace(-2, 5, 15))
ONE_PASS = {  # as many classes as one block holds, adjacent in memory or not, and few
    "fcl": ((4, 16384), torch.float32, Terms(1.0, 3.0, 1.0)),
    "brier": ((4, 16384), torch.bfloat16, Terms(0.0, 0.0, 1.0)),
    "dual focal of images": ((2, 1024, 8, 16), torch.float32, Terms(gamma=5.0, rival=True)),
    "adafocal": ((128, 16), torch.float16, STEPS),
}
TWO_READS = {
    "fcl": ((4, 128256), torch.bfloat16, Terms(1.0, 3.0, 1.0)),
    "label smoothing": ((4, 50272), torch.float32, Terms(focal=0.9, smoothing=0.01)),
}


class Recorder:
    """Stands in for a kernel and keeps what it is launched with."""

    def __getitem__(self, grid):
        return self

    def __call__(self, *arguments, **keywords):
        self.arguments, self.keywords = arguments, keywords


def compiled(shape, dtype, terms, target, monkeypatch):
    """The kernel as it would be launched for such logits, and how many of them each thread handles at a time."""
    kernels = triton_launch.kernels()
    kernel, recorder = kernels.loss_and_gradient, Recorder()
    monkeypatch.setattr(kernels, "count_labels", Recorder())
    monkeypatch.setattr(kernels, "loss_and_gradient", recorder)
    labels = torch.zeros((shape[0], *shape[2:]), dtype=torch.int64)
    triton_launch.fused_loss(torch.zeros(shape, dtype=dtype), labels, None, terms, -100, "mean")
    options = {name: recorder.keywords.pop(name) for name in ("num_warps", "enable_fp_fusion")}
    values = dict(zip(kernel.arg_names, recorder.arguments, strict=False)) | recorder.keywords
    signature, constants, attributes = {}, {}, {}
    for at, parameter in enumerate(kernel.params):
        value = values[parameter.name]
        number = type(value) is int and not parameter.do_not_specialize
        fixed = parameter.is_constexpr or value is None or (number and value == 1)
        if fixed:
            constants[parameter.name] = value
        elif isinstance(value, torch.Tensor) or (number and value % 16 == 0):
            attributes[(at,)] = [["tt.divisibility", 16]]
        kind = "i32" if isinstance(value, int) else "fp64" if isinstance(value, float) else None
        signature[parameter.name] = "constexpr" if fixed else kind or f"*{TYPES[value.dtype]}"
    source = ASTSource(kernel, signature, constants, attributes)
    result = triton.compile(source, target=target, options=options)
    given = [name for name in kernel.arg_names if signature[name] != "constexpr"]
    share = values["ROWS"] * values["BLOCK"] // (options["num_warps"] * target.warp_size)
    return result, share, {name: given.index(name) for name in ("logits", "gradient")}


def assert_no_spills(result, target, folder):
    if target.backend == "hip":  # scalar registers may move to vector registers, which is not memory
        assert re.findall(r"vgpr_spill_count: *(\d+)", result.asm["amdgcn"]) == ["0"]
        assert re.findall(r"private_segment_fixed_size: *(\d+)", result.asm["amdgcn"]) == ["0"]
        return
    assembler = Path(triton.__file__).parent / "backends/nvidia/bin/ptxas"
    (folder / "kernel.ptx").write_text(result.asm["ptx"])
    architecture = f"sm_{target.arch}{'a' if target.arch >= 90 else ''}"
    command = [assembler, "-v", f"--gpu-name={architecture}", folder / "kernel.ptx", "-o", folder / "kernel.cubin"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert re.findall(r"(\d+) bytes spill stores, (\d+) bytes spill loads", said)[-1] == ("0", "0"), said


def elements_moved(ptx, operation, parameter, size):
    """How many elements a thread loads or stores, by instructions whose address comes from the kernel's parameter."""
    addresses, lines = set(), ptx.splitlines()
    for _ in range(3):  # until a loop's registers have come round
        for line in lines:
            registers = re.findall(r"%rd\d+", line)
            begins = re.search(rf"ld\.param\.\w+\s.*_param_{parameter}\]", line)
            if begins or ("global" not in line and not addresses.isdisjoint(registers[1:])):
                addresses.add(registers[0])
    moved = 0
    for line in lines:
        access = re.search(rf"{operation}\.global(?:\.v(\d))?\.b(\d+)", line)
        if access and not addresses.isdisjoint(re.findall(r"%rd\d+", line.partition("[")[2])):
            moved += int(access[1] or 1) * int(access[2]) // (8 * size)
    return moved


@pytest.mark.parametrize("target", [A100, H100, MI300], ids=lambda target: str(target.arch))
@pytest.mark.parametrize(("case", "reads"), [(case, 1) for case in ONE_PASS] + [(case, 2) for case in TWO_READS])
def test_one_write_after_one_read_or_two_of_any_number_of_classes_without_spills(
    case, reads, target, monkeypatch, tmp_path
):
    shape, dtype, terms = (ONE_PASS if reads == 1 else TWO_READS)[case]
    result, share, at = compiled(shape, dtype, terms, target, monkeypatch)
    assert_no_spills(result, target, tmp_path)
    if target.backend == "cuda":
        of_the_label = reads - 1
        assert elements_moved(result.asm["ptx"], "ld", at["logits"], dtype.itemsize) == reads * share + of_the_label
        assert elements_moved(result.asm["ptx"], "st", at["gradient"], dtype.itemsize) == share
