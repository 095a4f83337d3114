"""Fixtures for the package's tests: one interface to both libraries, and reproducible runs."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import hypothesis
import numpy as np
import pytest
import torch

import subnorm.numpy
import subnorm.torch

# The same examples on every run, and no deadline: a slow machine must not fail a right program.
hypothesis.settings.register_profile("course", max_examples=50, deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("course")


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def on_arrays(function: Callable[..., torch.Tensor]) -> Callable[..., np.ndarray]:
    """A function on tensors, called with NumPy arrays."""

    def call(*args: Any) -> np.ndarray:
        return function(*(torch.from_numpy(a) if isinstance(a, np.ndarray) else a for a in args)).numpy()

    return call


NORMS = ("layer_norm", "rms_norm", "batch_norm")


@pytest.fixture(scope="session", params=["numpy", "torch"])
def norms(request: pytest.FixtureRequest) -> SimpleNamespace:
    """layer_norm, rms_norm and batch_norm of either library, on NumPy arrays."""
    if request.param == "numpy":
        return SimpleNamespace(**{name: getattr(subnorm.numpy, name) for name in NORMS})
    return SimpleNamespace(**{name: on_arrays(getattr(subnorm.torch, name)) for name in NORMS})
