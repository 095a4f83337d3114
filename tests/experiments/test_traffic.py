"""The bytes of each operation of a call, counted by hand."""

import pytest
import torch
import torch.nn.functional as F

from subnorm_lab.experiments.traffic import Operation, operations

X = torch.ones(6, 8)
ONE = X.nbytes
ROW = X[:1].nbytes


@pytest.mark.parametrize(
    ("run", "name", "moved"),
    [
        (lambda: X + 2 * ROW, "add", 2 * ONE),
        (lambda: X * X, "mul", 2 * ONE),  # one operand, read once
        (lambda: X * X[0], "mul", 2 * ONE + ROW),
        (lambda: X + X[:1].expand(6, 8), "add", 2 * ONE + ROW),  # repeated, stored once
        (lambda: X.clone().add_(X), "add_", 3 * ONE),  # into an operand: read as well
        (lambda: X.double(), "_to_copy", 3 * ONE),
        (lambda: X[1:3].sum(0), "sum", 3 * ROW),
        (lambda: torch.stack([X, X + 1]), "stack", 4 * ONE),  # in a list
    ],
)
def test_an_operation_moves_its_operands_and_its_result(run, name, moved):
    assert operations(run)[-1] == Operation(name, moved)


def test_views_and_empty_arrays_move_nothing():
    assert operations(lambda: torch.empty_like(X.T.reshape(8, 6)[2:].unsqueeze(0))) == []


def test_a_kernel_is_one_operation_in_each_direction():
    x, gamma, beta = X.clone().requires_grad_(), X[0].clone().requires_grad_(), X[0].clone().requires_grad_()
    statistics = 2 * 6 * X.itemsize  # mean and rstd of each row
    with torch.no_grad():
        forward = operations(lambda: F.layer_norm(x, (8,), gamma, beta))
    assert forward == [Operation("native_layer_norm", 2 * ONE + 2 * ROW + statistics)]
    y = F.layer_norm(x, (8,), gamma, beta)
    (backward,) = operations(lambda: torch.autograd.grad(y, (x, gamma, beta), X))
    # dy and x in, dx out; gamma and beta in, their gradients out
    assert backward == Operation("native_layer_norm_backward", 3 * ONE + 4 * ROW + statistics)


def test_a_composite_function_is_taken_apart():
    names = [operation.name for operation in operations(lambda: F.rms_norm(X, (8,), X[0], 1e-5))]
    assert len(names) > 3
    assert "rsqrt" in names
