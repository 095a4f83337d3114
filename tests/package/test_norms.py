"""The norms, NumPy against PyTorch against torch.nn: results and all gradients, float64 to 1e-12."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import subnorm.numpy as sn
import subnorm.torch as st

close = partial(np.testing.assert_allclose, rtol=1e-12, atol=1e-12, strict=True)

LEADS = [(), (1,), (3,), (2, 3), (2, 1, 5)]
WIDTHS = [1, 2, 31, 32, 33]
EPS = [0.0, 1e-5, 0.1]


def builtin_batch_norm(x: Tensor, gamma: Tensor, beta: Tensor, eps: float) -> Tensor:
    rows = x.reshape(-1, x.shape[-1])
    if eps == 0:  # torch's BatchNorm refuses it; its LayerNorm of the columns is the same function
        return F.layer_norm(rows.T, (len(rows),), eps=0).T.reshape(x.shape) * gamma + beta
    return F.batch_norm(rows, None, None, gamma, beta, training=True, eps=eps).reshape(x.shape)


def builtin_layer_norm(x: Tensor, gamma: Tensor, beta: Tensor, eps: float) -> Tensor:
    return F.layer_norm(x, (x.shape[-1],), gamma, beta, eps)


def builtin_rms_norm(x: Tensor, gamma: Tensor, eps: float) -> Tensor:
    return F.rms_norm(x, (x.shape[-1],), gamma, eps)


BUILTIN: dict[str, Callable[..., Tensor]] = {
    "layer_norm": builtin_layer_norm,
    "rms_norm": builtin_rms_norm,
    "batch_norm": builtin_batch_norm,
}


def averages_one_entry(name: str, lead: tuple[int, ...], d: int) -> bool:
    """The variance of one number is 0: with eps = 0 there is no answer, and torch refuses it for BatchNorm."""
    return (name == "layer_norm" and d == 1) or (name == "batch_norm" and np.prod(lead) == 1)


CASES = [
    pytest.param(name, lead, d, eps, id=f"{name}-{lead}-{d}-{eps}")
    for name in BUILTIN
    for lead in LEADS
    for d in WIDTHS
    for eps in EPS
    if not (averages_one_entry(name, lead, d) and (eps == 0 or name == "batch_norm"))
]


def gradients(f: Callable[..., Tensor], *inputs: np.ndarray, dy: np.ndarray, eps: float) -> list[np.ndarray]:
    """y = f(*inputs, eps), then the gradient of sum(dy * y) for every input."""
    tensors = [torch.tensor(a, requires_grad=True) for a in inputs]
    y = f(*tensors, eps)
    return [y.detach().numpy(), *(g.numpy() for g in torch.autograd.grad(y, tensors, torch.from_numpy(dy)))]


@pytest.mark.parametrize(("name", "lead", "d", "eps"), CASES)
def test_numpy_torch_and_builtin_agree(
    name: str, lead: tuple[int, ...], d: int, eps: float, rng: np.random.Generator
) -> None:
    x, dy = rng.normal(1, 2, (*lead, d)), rng.normal(size=(*lead, d))
    gamma, beta = rng.normal(1, 0.5, d), rng.normal(size=d)
    parameters = (gamma,) if name == "rms_norm" else (gamma, beta)

    expected = gradients(BUILTIN[name], x, *parameters, dy=dy, eps=eps)
    ours = gradients(getattr(st, name), x, *parameters, dy=dy, eps=eps)
    in_numpy = [getattr(sn, name)(x, *parameters, eps), *getattr(sn, f"{name}_backward")(dy, x, gamma, eps)]

    assert len(expected) == len(ours) == len(in_numpy)
    for theirs, from_torch, from_numpy in zip(expected, ours, in_numpy, strict=True):
        close(from_torch, theirs)
        close(from_numpy, theirs)


@pytest.mark.parametrize("name", BUILTIN)
def test_gamma_and_beta_may_be_left_out(name: str, rng: np.random.Generator) -> None:
    x, ones, zeros = rng.normal(1, 2, (4, 6)), np.ones(6), np.zeros(6)
    f, f_torch, backward = getattr(sn, name), getattr(st, name), getattr(sn, f"{name}_backward")
    parameters = (ones,) if name == "rms_norm" else (ones, zeros)
    close(f(x), f(x, *parameters))
    close(f_torch(torch.from_numpy(x)).numpy(), f(x))
    dy = rng.normal(size=x.shape)
    for without, with_ones in zip(backward(dy, x), backward(dy, x, ones), strict=True):
        close(without, with_ones)
    if name != "rms_norm":
        beta = rng.normal(size=6)
        close(f(x, beta=beta), f(x) + beta)
        close(f_torch(torch.from_numpy(x), beta=torch.from_numpy(beta)).numpy(), f(x) + beta)


@pytest.mark.parametrize("name", BUILTIN)
def test_default_eps_is_1e_5(name: str, rng: np.random.Generator) -> None:
    x = rng.normal(0, 1e-3, (4, 6))  # variance 1e-6: here eps decides
    f, f_torch, backward = getattr(sn, name), getattr(st, name), getattr(sn, f"{name}_backward")
    close(f(x), f(x, eps=1e-5))
    close(f_torch(torch.from_numpy(x)).numpy(), f(x, eps=1e-5))
    for default, given in zip(backward(x, x), backward(x, x, eps=1e-5), strict=True):
        close(default, given)


@pytest.mark.parametrize("shape", [(5,), (1, 5), (1, 1, 5)])
def test_batch_norm_of_a_single_row_is_beta(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    x, gamma, beta, dy = rng.normal(size=shape), rng.normal(size=5), rng.normal(size=5), rng.normal(size=shape)
    expected = np.broadcast_to(beta, shape)
    close(sn.batch_norm(x, gamma, beta), expected)
    close(st.batch_norm(*map(torch.from_numpy, (x, gamma, beta))).numpy(), expected)
    dx, dgamma, dbeta = sn.batch_norm_backward(dy, x, gamma)
    close(dx, np.zeros(shape))
    close(dgamma, np.zeros(5))
    close(dbeta, dy.reshape(5))


# Four numbers on paper: mean 4, deviations -3 -1 1 3, variance 20 / 4, mean square 84 / 4
FOUR = [1.0, 3.0, 5.0, 7.0]


def test_four_numbers_on_paper() -> None:
    close(sn.layer_norm(FOUR, eps=0), np.array([-3, -1, 1, 3]) / np.sqrt(5))
    close(sn.layer_norm(FOUR, eps=0.2), np.array([-3, -1, 1, 3]) / np.sqrt(5.2))
    close(sn.rms_norm(FOUR, eps=0), np.array([1, 3, 5, 7]) / np.sqrt(21))
    close(
        sn.layer_norm(FOUR, [1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 1.0, 0.0], 0), np.array([-3, -2, 3 + 5**0.5, 12]) / 5**0.5
    )
    # The column of FOUR under BatchNorm is the row of FOUR under LayerNorm.
    close(sn.batch_norm([[v] for v in FOUR], eps=0)[:, 0], np.array([-3, -1, 1, 3]) / np.sqrt(5))


MODULES = [
    pytest.param(st.LayerNorm, nn.LayerNorm, sn.LayerNorm, id="layer"),
    pytest.param(st.RMSNorm, nn.RMSNorm, sn.RMSNorm, id="rms"),
]


@pytest.mark.parametrize(("ours", "theirs", "in_numpy"), MODULES)
def test_modules_load_the_state_dict_of_torch_nn(ours, theirs, in_numpy, rng: np.random.Generator) -> None:
    builtin = theirs(7, eps=1e-3).double()
    for parameter in builtin.parameters():
        nn.init.normal_(parameter)
    module, layer = ours(7, eps=1e-3).double(), in_numpy(7, eps=1e-3)
    module.load_state_dict(builtin.state_dict())  # strict: the same names, no more and no fewer
    layer.gamma = builtin.weight.detach().numpy()
    if in_numpy is sn.LayerNorm:
        layer.beta = builtin.bias.detach().numpy()

    x = rng.normal(1, 2, (2, 3, 7))
    dy = torch.from_numpy(rng.normal(size=x.shape))
    results = []
    for m in (module, builtin):
        x_in = torch.tensor(x, requires_grad=True)
        y = m(x_in)
        results.append([y.detach(), *torch.autograd.grad(y, [x_in, *m.parameters()], dy)])
    for a, b in zip(*results, strict=True):
        close(a.numpy(), b.numpy())
    close(layer(x), results[1][0].numpy())


@pytest.mark.parametrize(("ours", "theirs", "in_numpy"), MODULES)
def test_modules_start_as_the_plain_norm(ours, theirs, in_numpy, rng: np.random.Generator) -> None:
    plain = sn.layer_norm if in_numpy is sn.LayerNorm else sn.rms_norm
    x = rng.normal(0, 1e-3, (4, 7))  # variance 1e-6: a default eps other than 1e-5 would show
    close(in_numpy(7)(x), plain(x, eps=1e-5))
    close(ours(7).double()(torch.from_numpy(x)).detach().numpy(), plain(x, eps=1e-5))
    assert {name: p.shape for name, p in ours(7).named_parameters()} == {
        name: p.shape for name, p in theirs(7).named_parameters()
    }


def test_modules_print_their_size_and_eps() -> None:
    assert repr(st.LayerNorm(7, 0.1)) == "LayerNorm(7, eps=0.1)"
    assert repr(st.RMSNorm(7)) == "RMSNorm(7, eps=1e-05)"


# Edges


@pytest.mark.parametrize("shape", [(0, 4), (2, 0, 4)])
def test_an_empty_batch_stays_empty(shape: tuple[int, ...]) -> None:
    x, gamma, beta = np.empty(shape), np.ones(4), np.ones(4)
    close(sn.layer_norm(x, gamma, beta), x)
    close(sn.rms_norm(x, gamma), x)
    close(st.layer_norm(*map(torch.from_numpy, (x, gamma, beta))).numpy(), x)
    close(st.rms_norm(*map(torch.from_numpy, (x, gamma))).numpy(), x)
    for result, expected in zip(sn.layer_norm_backward(x, x, gamma), (x, np.zeros(4), np.zeros(4)), strict=True):
        close(result, expected)
    for result, expected in zip(sn.rms_norm_backward(x, x, gamma), (x, np.zeros(4)), strict=True):
        close(result, expected)


def test_a_constant_row_becomes_zero(norms) -> None:
    x = np.full((3, 5), 7.5)
    assert np.array_equal(norms.layer_norm(x), np.zeros((3, 5)))
    assert np.array_equal(norms.batch_norm(x), np.zeros((3, 5)))
    assert np.array_equal(norms.rms_norm(np.zeros((3, 5))), np.zeros((3, 5)))


def test_without_eps_a_constant_row_has_no_answer() -> None:
    with np.errstate(all="ignore"):
        assert np.isnan(sn.layer_norm(np.full((2, 3), 7.5), eps=0)).all()
        assert np.isnan(sn.rms_norm(np.zeros((2, 3)), eps=0)).all()
    assert st.layer_norm(torch.full((2, 3), 7.5), eps=0).isnan().all()
    assert st.rms_norm(torch.zeros(2, 3), eps=0).isnan().all()


@pytest.mark.parametrize("name", BUILTIN)
def test_strided_input_is_read_right(name: str, norms, rng: np.random.Generator) -> None:
    x = rng.normal(size=(6, 10, 4)).transpose(1, 2, 0)[::2]  # (5, 4, 6), neither contiguous nor ordered
    assert not x.flags.c_contiguous
    close(getattr(norms, name)(x), getattr(norms, name)(np.ascontiguousarray(x)))


@pytest.mark.parametrize("name", BUILTIN)
def test_inputs_are_left_as_they_came(name: str, norms, rng: np.random.Generator) -> None:
    x, gamma, beta, dy = rng.normal(size=(4, 6)), rng.normal(size=6), rng.normal(size=6), rng.normal(size=(4, 6))
    before = [a.copy() for a in (x, gamma, beta, dy)]
    getattr(norms, name)(x, gamma, *([] if name == "rms_norm" else [beta]))
    getattr(sn, f"{name}_backward")(dy, x, gamma)
    for was, now in zip(before, (x, gamma, beta, dy), strict=True):
        assert np.array_equal(was, now)


@pytest.mark.parametrize("name", BUILTIN)
def test_numpy_takes_lists(name: str) -> None:
    x, gamma = [[1.0, 2.0, 4.0], [8.0, 5.0, 0.0]], [1.0, 2.0, 3.0]
    f, backward = getattr(sn, name), getattr(sn, f"{name}_backward")
    close(f(x, gamma), f(np.array(x), np.array(gamma)))
    for a, b in zip(backward(x, x, gamma), backward(np.array(x), np.array(x), np.array(gamma)), strict=True):
        close(a, b)
    if name != "rms_norm":
        close(f(x, gamma, gamma), f(np.array(x), np.array(gamma), np.array(gamma)))
