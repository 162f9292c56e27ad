import warnings

import numpy as np
import pytest
import torch

from focalcal.lab.training.tensors import as_tensor


def test_examples_stay_where_they_are(tmp_path):
    np.save(tmp_path / "images.npy", np.arange(12.0).reshape(3, 4))
    mapped = np.load(tmp_path / "images.npy", mmap_mode="r")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert as_tensor("inputs", mapped).data_ptr() == mapped.ctypes.data
    tracked = torch.ones(3, requires_grad=True)
    assert as_tensor("inputs", tracked).data_ptr() == tracked.data_ptr()
    assert not as_tensor("inputs", tracked).requires_grad


def test_what_torch_cannot_see_in_place_is_copied_and_what_holds_no_numbers_refused():
    assert as_tensor("inputs", np.arange(3)[::-1]).tolist() == [2, 1, 0]
    with pytest.raises(ValueError, match="inputs must hold numbers, got a tensor on the device meta"):
        as_tensor("inputs", torch.ones(2, device="meta"))
    with pytest.raises(TypeError, match="inputs must be a dense tensor"):
        as_tensor("inputs", torch.eye(2).to_sparse())
