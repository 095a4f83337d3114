import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread():
    """As in a notebook: with more, small tensors are slower."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
