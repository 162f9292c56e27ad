"""Whatever people have becomes a NumPy array, on the same memory where that can be."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from focalcal.core.arrays import as_array, as_values, is_tensor, like_given, scores_and_labels


def test_memory_is_shared():
    array, tensor = np.ones((2, 3), np.float32), torch.ones(2, 3, dtype=torch.float16, requires_grad=True)
    frozen = np.arange(4.0)
    frozen.flags.writeable = False
    assert as_array("x", array) is array
    assert as_array("x", array[::-1].T).base is array
    assert as_array("x", frozen) is frozen
    found = as_array("x", tensor)
    assert found.dtype == np.float16
    assert found.__array_interface__["data"][0] == tensor.data_ptr()


def test_what_numpy_lacks_is_widened():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    exact = torch.tensor([1.0078125, -3e38])
    for given in (exact.bfloat16(), exact.bfloat16().float().numpy().astype(ml_dtypes.bfloat16)):
        found = as_array("x", given)
        assert found.dtype == np.float32
        assert found.tolist() == exact.bfloat16().tolist()
    assert as_array("x", np.array([1, 2], np.uint32)).dtype == np.int64
    assert as_array("x", np.array([1, 2], ">f4")).dtype.isnative
    assert as_array("x", torch._neg_view(torch.ones(2))).tolist() == [-1, -1]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (torch.eye(2).to_sparse(), "must be a dense tensor, got torch.sparse_coo; use x.to_dense"),
        (torch.nested.as_nested_tensor([torch.ones(2), torch.ones(1)], layout=torch.jagged), "must be a dense tensor"),
        (torch.ones(2, device="meta"), "must hold numbers, got a tensor on the device meta; materialise it"),
        (torch.ones(2, dtype=torch.complex64), "must hold real numbers, got torch.complex64"),
        (torch.ones(2).to(torch.float8_e4m3fn), "got torch.float8_e4m3fn; use x.float"),
        (np.ones(2, complex), "must be an array of numbers or a tensor, got complex128 from ndarray"),
        (["a"], "must be an array of numbers or a tensor, got <U1 from list"),
        ([[1, 2], [3]], "must have rows of one length, got a ragged list"),
        (np.ma.array([1, 2], mask=[0, 1]), "must have no masked entries"),
        (np.array([2**63], np.uint64), "must fit in 64 bits with sign, got 9223372036854775808"),
    ],
)
def test_what_are_no_numbers_is_refused(values, message):
    with pytest.raises((TypeError, ValueError), match=f"^x {message}|^x .*{message}"):
        as_array("x", values)


def test_names_are_values_too():
    assert as_values("x", ["a", "b"]).tolist() == ["a", "b"]


def test_a_tensor_given_is_a_tensor_returned():
    result = np.arange(3.0)
    result.flags.writeable = False
    assert like_given([1], result) is result
    assert torch.equal(like_given(torch.ones(1), result), torch.arange(3.0, dtype=torch.float64))
    assert is_tensor(torch.ones(1))
    assert not is_tensor(result)


def test_scores_and_labels_share_memory_and_agree():
    scores, labels = torch.rand(4, 3), torch.tensor([0, 1, 2, -100])
    found = scores_and_labels("probs", scores, labels, ignore_index=-100)
    assert [array.__array_interface__["data"][0] for array in found] == [scores.data_ptr(), labels.data_ptr()]
    with pytest.raises(ValueError, match=r"labels must be from 0 to 2, got -100 at flat position 3"):
        scores_and_labels("probs", scores, labels)


def test_metrics_wait_for_numpy_and_a_little_of_scipy_alone():
    code = (
        "import sys; import focalcal.metrics as m; from focalcal.core import numerics, rng;"
        "m.summary([[0.5, 0.5]], [1]); m.bootstrap(m.ece, [[0.5, 0.5]] * 3, [1, 0, 1], resamples=9);"
        "wanted = {'torch', 'jaxtyping', 'sklearn', 'pandas', 'pyarrow', 'array_api_compat', 'scipy.optimize'};"
        "assert not wanted & set(sys.modules), wanted & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
