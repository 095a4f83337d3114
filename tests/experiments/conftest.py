import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread():
    """One thread: on small matrices more threads only wait for each other, and their sums differ in the last digits."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
