"""Differences between batches and between runs are found where they are, and only there."""

import itertools

import pytest
import torch

from subnorm_lab.experiments import same_answer

X = torch.randn(8, 5, generator=torch.Generator().manual_seed(0))


def test_a_function_of_rows_does_not_depend_on_the_batch():
    assert same_answer.dependence(torch.exp, X, (1, 3, 8)) == [0, 0, 0]


def test_a_mean_over_the_batch_is_found():
    alone, three = same_answer.dependence(lambda x: x + x.mean(dim=0), X, (1, 3))
    assert alone == 0
    assert three > 0.01


@pytest.mark.parametrize(("period", "found"), [(1, 1), (2, 2), (9, 5)])
def test_different_results_of_one_call_are_counted(period, found):
    counter = itertools.count()
    assert same_answer.count_answers(lambda: X + next(counter) % period, runs=5) == found


def test_everything_is_measured_on_a_cpu():
    torch.manual_seed(0)
    found = same_answer.measure("cpu", batches=(1, 4), d=16, runs=2, rows=6)
    assert list(found) == ["float32", "bfloat16"]
    for tables in found.values():
        assert all(differences[0] == 0 for differences in tables["batch"].values())
        assert set(tables["runs"].values()) <= {1, 2}
