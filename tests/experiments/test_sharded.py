"""Two processes compute what one does, and whatever goes wrong in them ends in a sentence, and in time."""

import os
import subprocess
import sys

import pytest
import torch

from subnorm_lab.experiments.sharded import Pair, pair

X = torch.randn(5, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def mean_square(all_reduce, x, width):
    return all_reduce((x * x).sum(-1)) / width


def own_mean_square(all_reduce, x, width):
    return (x * x).mean(-1)


def gradient(all_reduce, x):
    x.requires_grad_()
    total = all_reduce(x.sum())
    (total * x.detach().sum()).backward()  # each process has a loss of its own, and both use the total
    return x.grad


def names(all_reduce):
    return torch.distributed.get_rank(), os.getpid()


def waits_alone(all_reduce, rank):
    if rank == 0:
        all_reduce(torch.ones(3))


def ends(all_reduce, rank):
    import os

    os._exit(rank + 3)


def parts(x, *more):
    return (x[:, :2], *more), (x[:, 2:], *more)


@pytest.fixture
def impatient():
    made = Pair(patience=2.0)
    yield made
    made.close()


def test_both_processes_get_the_sum_over_both():
    expected = (X * X).mean(-1)
    first, second = pair().run(mean_square, *parts(X, 6))
    torch.testing.assert_close(first, expected)
    assert torch.equal(first, second)
    assert pair().sent == [5]
    one, other = pair().run(own_mean_square, *parts(X, 6))
    assert pair().sent == []
    assert (one - expected).abs().max() > 0.1 < (other - expected).abs().max()


def test_the_gradient_of_a_sum_comes_from_every_process():
    total, share = X.sum(), X[:, :2].sum()
    for found, size in zip(pair().run(gradient, *parts(X)), (2, 4), strict=True):
        torch.testing.assert_close(found, torch.full((5, size), float(share + (total - share)), dtype=torch.float64))
    assert pair().sent == [1, 1]


def test_the_second_run_needs_no_second_start():
    ids = [process.pid for process in pair()._processes]
    pair().run(own_mean_square, *parts(X, 6))
    assert [process.pid for process in pair()._processes] == ids


def test_a_name_from_around_the_function_is_missed_and_the_next_run_works(impatient):
    with pytest.raises(RuntimeError, match=r"`names` failed in process [01]:\nNameError: name 'os'"):
        impatient.run(names, (), ())
    assert len(impatient.run(own_mean_square, *parts(X, 6))) == 2


def test_a_process_that_waits_for_nobody_is_named_in_time(impatient):
    impatient.run(own_mean_square, *parts(X, 6))
    with pytest.raises(TimeoutError, match=r"`waits_alone` must end within 2 s .* process 0 has not"):
        impatient.run(waits_alone, (0,), (1,))
    assert impatient._processes == []


def test_a_process_that_dies_is_named_with_its_code(impatient):
    with pytest.raises(RuntimeError, match=r"process [01] died in `ends`, with exit code [34]"):
        impatient.run(ends, (0,), (1,))


@pytest.mark.parametrize(("function", "error"), [(lambda all_reduce: 1, TypeError), (print, TypeError)])
def test_a_function_without_a_text_of_its_own_is_refused(function, error):
    with pytest.raises(error, match="defined with `def`"):
        pair().run(function, (), ())


def test_every_process_needs_its_part():
    with pytest.raises(ValueError, match="got 1 parts"):
        pair().run(own_mean_square, (X, 6))


def test_no_process_outlives_a_kernel_that_is_killed():
    text = "from subnorm_lab.experiments.sharded import pair\nprint(len(pair()._processes), flush=True)"
    kernel = subprocess.Popen([sys.executable, "-i", "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert kernel.stdout
    assert kernel.stdout.readline() == b"2\n"
    kernel.kill()
    kernel.communicate(timeout=120)  # to the end of its output, which both processes hold open
