import pytest
import torch


@pytest.fixture(autouse=True)
def _one_thread():
    """A second thread fights the other test worker for its core: ResNet-20 on 10,000 images took 61 s, not 27."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
