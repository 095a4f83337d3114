"""Each placement of a stack against its formula, written out again, and against what its paper claims of it."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from subnorm import torch as st
from subnorm.torch import placements

D, N, HEADS = 8, 4, 2
L = 2 * N


def made(name, num_blocks=N, **kwargs):
    return st.STACK_PLACEMENTS[name](D, num_blocks, **kwargs).double()


WITH_HEADS = {"qk_norm", "olmo2"}  # built for four


def shaken(module):
    """The module with all of its parameters moved away from their start."""
    generator = torch.Generator().manual_seed(7)
    for parameter in module.parameters():
        parameter.data.add_(0.3 * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype))
    return module


@pytest.fixture
def x():
    return torch.randn(3, 5, D, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.fixture
def fs():
    generator = torch.Generator().manual_seed(1)
    weights = torch.randn(L, D, D, generator=generator, dtype=torch.float64)
    return [lambda h, w=w: torch.tanh(h @ w) + 0.1 * h for w in weights]


@pytest.fixture
def stack(request):
    torch.manual_seed(2)
    return st.Stack(made(request.param), HEADS).double()


def ln(h, norm):
    centred = h - h.mean(-1, keepdim=True)
    return centred / torch.sqrt(centred.square().mean(-1, keepdim=True) + 1e-5) * norm.weight + norm.bias


def rms(h, norm):
    return h / torch.sqrt(h.square().mean(-1, keepdim=True) + 1e-5) * norm.weight


# Each formula again: a step from sublayer to sublayer, with the last norm, or a loop of its own where it carries more.


def steps(step, end=lambda p, x: ln(x, p.final_norm)):
    def again(p, x, fs):
        for k, f in enumerate(fs):
            x = step(p, x, f, k)
        return end(p, x)

    return again


without_end = partial(steps, end=lambda p, x: x)
pre = steps(lambda p, x, f, k: x + f(ln(x, p.norms[k])))
after_branch = steps(lambda p, x, f, k: x + ln(f(x), p.norms[k]))


def mix_ln(p, x, fs):
    for k in (0, 1):  # one block of four, or of seven
        x = ln(x + fs[k](x), p.norms[k])
    for k in range(2, len(fs)):
        x = x + fs[k](ln(x, p.norms[k]))
    return ln(x, p.final_norm)


def b2t(p, x, fs):
    for n in range(N):
        a = ln(x + fs[2 * n](x), p.norms[2 * n])
        x = ln(x + a + fs[2 * n + 1](a), p.norms[2 * n + 1])
    return x


def parallel(p, x, fs):
    for n in range(N):
        h = ln(x, p.norms[n])
        x = x + fs[2 * n](h) + fs[2 * n + 1](h)
    return ln(x, p.final_norm)


def adaln_zero(p, x, fs):
    """With the condition 0, W silu(c) is the bias of W."""
    plain = nn.LayerNorm(D, eps=1e-6, elementwise_affine=False)
    for n in range(N):
        s1, c1, g1, s2, c2, g2 = p.modulation[n].bias.view(6, D)
        x = x + g1 * fs[2 * n](plain(x) * (1 + c1) + s1)
        x = x + g2 * fs[2 * n + 1](plain(x) * (1 + c2) + s2)
    shift, scale = p.final_modulation.bias.view(2, D)
    return plain(x) * (1 + scale) + shift


def resi_dual(p, x, fs):
    total = x
    for k, f in enumerate(fs):
        total = total + f(x)
        x = ln(x + f(x), p.norms[k])
    return x + ln(total, p.final_norm)


def hyper_connections(p, x, fs, connections=lambda p, k: (p.mix[k], p.read[k], p.write[k])):
    streams = [x] * 4
    for k, f in enumerate(fs):
        mix, read, write = connections(p, k)
        added = f(ln(sum(read[i] * streams[i] for i in range(4)), p.norms[k]))
        streams = [sum(mix[j, i] * streams[i] for i in range(4)) + write[j] * added for j in range(4)]
    return ln(sum(streams), p.final_norm)


def mhc(p, x, fs):
    def connections(p, k):
        mix = torch.exp(p.mix[k])
        for _ in range(20):
            mix = mix / mix.sum(0)
            mix = (mix.T / mix.sum(1)).T
        return mix, 1 / (1 + torch.exp(-p.read[k])), 2 / (1 + torch.exp(-p.write[k]))

    return hyper_connections(p, x, fs, connections)


def attention_residuals(p, x, fs):
    found = [x]

    def mean():
        keys = [torch.exp((rms(v, p.key_norm) * p.queries[len(found) - 1]).sum(-1, keepdim=True)) for v in found]
        return sum(w * v for w, v in zip(keys, found, strict=True)) / sum(keys)

    for k, f in enumerate(fs):
        found.append(f(ln(mean(), p.norms[k])))
    return ln(mean(), p.final_norm)


def to_unit_length(h):
    return h / h.square().sum(-1, keepdim=True).sqrt()


def ngpt(p, x, fs):
    x = to_unit_length(x)
    for k, f in enumerate(fs):
        x = to_unit_length(x + (p.alpha[k] * D**0.5 * 0.05).abs() * (to_unit_length(f(x)) - x))
    return x


def with_norm(norm):
    return steps(lambda p, x, f, k: x + f(norm(x, p.norms[k])), lambda p, x: norm(x, p.final_norm))


FORMULAS = {
    "pre": pre,
    "post": without_end(lambda p, x, f, k: ln(x + f(x), p.norms[k])),
    "sandwich": steps(lambda p, x, f, k: x + ln(f(ln(x, p.norms[k])), p.outer_norms[k])),
    "after_branch": after_branch,
    "olmo2": steps(lambda p, x, f, k: x + rms(f(x), p.norms[k]), lambda p, x: rms(x, p.final_norm)),
    "swin_v2": after_branch,
    "mix_ln": mix_ln,
    "b2t": b2t,
    "parallel": parallel,
    "deepnorm": without_end(lambda p, x, f, k: ln(8**0.25 * x + f(x), p.norms[k])),
    "layernorm_scaling": steps(lambda p, x, f, k: x + f(ln(x, p.norms[k]) * (k // 2 + 1) ** -0.5)),
    "admin": without_end(lambda p, x, f, k: ln(x * p.omega[k] + f(x), p.norms[k])),
    "t_fixup": without_end(lambda p, x, f, k: x + f(x)),
    "fixup": without_end(lambda p, x, f, k: x + p.scale[k] * f(x - p.shift[k])),
    "rezero": without_end(lambda p, x, f, k: x + p.alpha[k // 2] * f(x)),
    "skip_init": without_end(lambda p, x, f, k: x + p.alpha[k] * f(x)),
    "layer_scale": steps(lambda p, x, f, k: x + f(ln(x, p.norms[k])) @ torch.diag(p.gates[k])),
    "adaln_zero": adaln_zero,
    "resi_dual": resi_dual,
    "hyper_connections": hyper_connections,
    "mhc": mhc,
    "attention_residuals": attention_residuals,
    "qk_norm": pre,  # these two differ inside attention
    "value_residual": pre,
    "ngpt": ngpt,
    "scale_norm": with_norm(lambda h, n: n.g * to_unit_length(h)),
    "dyt": with_norm(lambda h, n: torch.tanh(n.alpha * h) * n.weight + n.bias),
    "derf": with_norm(lambda h, n: torch.erf(n.alpha * h + n.shift) * n.weight + n.bias),
    "drop_path": pre,  # in evaluation
}


def test_every_placement_has_its_formula():
    assert list(st.STACK_PLACEMENTS.keys() ^ FORMULAS.keys()) == []


@pytest.mark.parametrize("name", st.STACK_PLACEMENTS)
def test_the_formula(name, x, fs):
    placement = shaken(made(name)).eval()
    torch.testing.assert_close(placement(x, fs), FORMULAS[name](placement, x, fs), atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("name", st.STACK_PLACEMENTS)
def test_the_stream_of_every_state_has_the_shape_of_x(name, x, fs):
    placement = made(name)
    states = placement.states(x, fs)
    assert [tuple(placement.stream(state).shape) for state in states] == [tuple(x.shape)] * (L + 1)


@pytest.mark.parametrize("name", st.STACK_PLACEMENTS)
def test_tokens_may_have_any_axes_before_them(name, x, fs):
    placement = shaken(made(name)).eval()
    expected = placement(x, fs)
    for other, same in ((x[0], expected[0]), (x[:, None], expected[:, None])):
        torch.testing.assert_close(placement(other, fs), same, atol=1e-12, rtol=1e-12)


UNUSED = {"post", "b2t", "deepnorm", "admin", "parallel"}  # keep norms of Pre-LN that they never call


@pytest.mark.parametrize("name", sorted(st.STACK_PLACEMENTS.keys() - UNUSED))
def test_every_parameter_is_used_in_every_sublayer(name, x):
    torch.manual_seed(4)
    stack = st.Stack(shaken(made(name)), HEADS if name not in WITH_HEADS else 4).double().eval()
    condition = [torch.ones(3, 1, D).double()] if name == "adaln_zero" else []
    stack(x, None, *condition).square().mul(torch.linspace(0.5, 1, D).double()).sum().backward()
    idle = [
        f"{key}[{row}]"
        for key, parameter in stack.placement.named_parameters()
        for row, gradient in enumerate([torch.zeros(1)] if parameter.grad is None else torch.atleast_1d(parameter.grad))
        if not gradient.any()
    ]
    # of one source the mean is this source, whatever the query
    assert idle == (["queries[0]"] if name == "attention_residuals" else [])


def test_mix_ln_rounds_a_quarter_of_the_blocks_down(x, fs):
    placement = shaken(made("mix_ln", 7))
    torch.testing.assert_close(placement(x, fs[:7] * 2), mix_ln(placement, x, fs[:7] * 2))


def test_what_a_placement_starts_with():
    assert st.Stack(made("pre")).attention[0].num_heads == 4
    assert (made("layer_scale").gates - 1e-4).abs().max() < 1e-10
    assert (made("ngpt").alpha * D**0.5 - 1).abs().max() < 1e-6
    assert torch.equal(made("mhc").mix[0], 8 * torch.eye(4).double())
    assert (made("mhc", streams=1).read == 8).all()
    assert (made("mhc", streams=2).connections(0)[1] == 0.5).all()
    assert made("qk_norm").q_norms[0].weight.shape == (D // 4,)
    assert made("olmo2").q_norms[0].weight.shape == (D,)
    assert placements.DynamicTanh(D).alpha == 0.5


def test_the_number_of_branches_is_checked(x, fs):
    for wrong in (fs[:-1], [*fs, fs[0]]):
        with pytest.raises(ValueError, match=f"two sublayers a block, 8 in all; got {len(wrong)}"):
            made("pre")(x, wrong)
    with pytest.raises(TypeError, match="x must hold"):
        made("pre")(x.long(), fs)
    with pytest.raises(ValueError, match="num_blocks must be"):
        made("pre", 0)
    with pytest.raises(ValueError, match="rate must lie"):
        made("drop_path", rate=1.0)
    with pytest.raises(ValueError, match="streams must be"):
        made("mhc", streams=0)


# --- with attention and feed-forward ---


@pytest.mark.parametrize("name", ["pre", "post"])
def test_a_stack_is_one_of_transformer_blocks(name, x):
    torch.manual_seed(3)
    stack = st.Stack(made(name), HEADS).double()
    mask = torch.ones(5, 5, dtype=torch.bool).tril()
    y = x
    for n in range(N):
        block = st.TransformerBlock(D, HEADS, 4 * D, name).double()
        block.self_attn.load_state_dict(stack.attention[n].state_dict())
        block.feed_forward.load_state_dict(stack.feed_forward[n].state_dict())
        y = block(y, mask)
    y = y if name == "post" else st.layer_norm(y)
    torch.testing.assert_close(stack(x, mask), y, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "scaled"),
    [
        ("deepnorm", dict.fromkeys(("value", "out", "up", "down"), 32**-0.25)),
        ("t_fixup", dict.fromkeys(("value", "out", "up", "down"), 36**-0.25)),
        ("fixup", {**dict.fromkeys(("query", "key", "value"), 8 ** (-1 / 6)), "up": 8**-0.5, "out": 0, "down": 0}),
        ("pre", {}),
    ],
)
def test_which_matrices_are_scaled(name, scaled, x):
    stack = st.Stack(made(name), HEADS).double()
    before = [(kind, weight.clone()) for kind, weight in stack.matrices()]
    assert [kind for kind, _ in before] == ["query", "key", "value", "out", "up", "down"] * N
    stack.placement.prepare(stack, x)
    for (kind, old), (_, new) in zip(before, stack.matrices(), strict=True):
        torch.testing.assert_close(new, scaled.get(kind, 1) * old)


def test_admin_profiles_the_stream(x):
    stack = st.Stack(made("admin"), HEADS).double()
    stack.placement.prepare(stack, x)
    variance, expected = 1.0, []
    for branch in stack.branches():
        expected.append(variance**0.5)
        added = branch(x)
        variance = variance * x.var(correction=0).item() + added.var(correction=0).item()
        x = F.layer_norm(expected[-1] * x + added, (D,))
    omega = stack.placement.omega.detach()
    torch.testing.assert_close(omega, torch.tensor(expected).double()[:, None].expand(L, D), atol=1e-6, rtol=1e-6)
    assert (omega[1:] > omega[:-1]).all()


@pytest.mark.parametrize("name", ["rezero", "skip_init", "fixup", "swin_v2", "adaln_zero"])
def test_a_closed_gate_makes_the_stack_the_identity_and_only_the_gate_learns(name, x):
    stack = st.Stack(made(name), HEADS).double()
    for feed_forward in stack.feed_forward:
        nn.init.zeros_(feed_forward.linear2.bias)
    stack.placement.prepare(stack, x)
    state = stack.placement.states(x, stack.branches())[-1]
    assert torch.equal(stack.placement.stream(state), x)
    stack(x).square().mul(torch.linspace(0, 1, D).double()).sum().backward()
    learning = {kind for kind, weight in stack.matrices() if weight_gradient(stack, weight).any()}
    assert learning == ({"out", "down"} if name == "fixup" else set())
    gates = {"rezero": "alpha", "skip_init": "alpha", "swin_v2": "norms.0.weight", "adaln_zero": "modulation.0.weight"}
    if name in gates and name != "adaln_zero":
        assert dict(stack.placement.named_parameters())[gates[name]].grad.any()


def weight_gradient(stack, weight):
    """The gradient of the part of a parameter that a view shows."""
    for parameter in stack.parameters():
        if parameter.data_ptr() <= weight.data_ptr() < parameter.data_ptr() + parameter.nbytes:
            start = (weight.data_ptr() - parameter.data_ptr()) // parameter.element_size()
            return parameter.grad.flatten()[start : start + weight.numel()]
    raise AssertionError("a view of no parameter")


def test_adaln_zero_takes_a_condition(x, fs):
    placement = shaken(made("adaln_zero"))
    condition = torch.randn(3, 1, D, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    at_zero = placement(x, fs)
    with_condition = placement(x, fs, condition)
    assert not torch.allclose(with_condition, at_zero)
    for layer in (*placement.modulation, placement.final_modulation):  # the first sample, with its own constant bias
        layer.bias.data += layer.weight.data @ F.silu(condition[0, 0])
    torch.testing.assert_close(placement(x, fs)[0], with_condition[0])


def test_only_the_gate_rows_of_adaln_zero_learn_first(x, fs):
    placement = made("adaln_zero")
    placement(x, fs, torch.ones(3, 1, D).double()).square().mul(torch.linspace(0, 1, D).double()).sum().backward()
    rows = [bool(part.any()) for part in placement.modulation[0].weight.grad.chunk(6)]
    assert rows == [False, False, True] * 2


# --- what a paper claims ---


def test_two_schemes_start_as_pre_ln(x, fs):
    exact = partial(st.LayerNorm, eps=0)  # eps would act on streams of different size
    expected = made("pre", norm=exact)(x, fs)
    for name in ("hyper_connections", "attention_residuals"):
        torch.testing.assert_close(made(name, norm=exact)(x, fs), expected)


def test_drop_path_is_right_on_average_and_draws_once_a_sample(fs):
    placement = made("drop_path", 2, rate=0.4).train()
    x = torch.randn(1, 2, D, dtype=torch.float64).expand(4000, 2, D)
    torch.manual_seed(5)
    first = placement.states(x, fs[:4])[1]
    torch.testing.assert_close(first, placement.eval().states(x, fs[:4])[1])  # the first block drops nothing
    placement.train()
    before = placement.states(x, fs[:4])[2].detach()
    added = fs[2](placement.norms[2](before))
    share = (placement.step(before, fs[2], 2) - before) / added
    assert share.std(dim=(1, 2)).max() < 1e-9  # one draw a sample
    values = share[:, 0, 0]
    assert set(values.round(decimals=6).tolist()) == {0.0, round(1 / 0.6, 6)}
    assert values.mean().item() == pytest.approx(1, abs=0.06)
    assert values.var().item() == pytest.approx(0.4 / 0.6, abs=0.06)


@pytest.mark.parametrize("full_width", [False, True])
def test_qk_norm(x, full_width):
    torch.manual_seed(6)
    placement = shaken(st.placements.QKNorm(D, 1, num_heads=HEADS, full_width=full_width).double())
    q, k, v = torch.randn(3, 3, HEADS, 5, D // HEADS, dtype=torch.float64)
    new_q, new_k, new_v = placement.heads(q, k, v, 0, {})
    assert new_v is v
    for old, new, norm in ((q, new_q, placement.q_norms[0]), (k, new_k, placement.k_norms[0])):
        for b in range(3):
            for t in range(5):
                flat = old[b, :, t]  # (heads, d_head)
                size = (flat.square().mean() if full_width else flat.square().mean(1, keepdim=True)) + 1e-5
                gain = norm.weight.view(HEADS, -1) if full_width else norm.weight
                torch.testing.assert_close(new[b, :, t], flat / size.sqrt() * gain)
    torch.testing.assert_close(placement.heads(q[0], k[0], v[0], 0, {})[0], new_q[0])
    torch.testing.assert_close(placement.heads(q[:, None], k[:, None], v[:, None], 0, {})[1], new_k[:, None])


def test_the_bound_on_the_logits():
    """Per head at most sqrt(d_head) for unit gains; over the full width the number of heads times as much."""
    for full_width, bound in ((False, 2.0), (True, 4.0)):
        placement = st.placements.QKNorm(D, 1, num_heads=HEADS, full_width=full_width).double()
        q = torch.zeros(1, HEADS, 1, D // HEADS).double()
        q[:, 0] = 1000.0
        q, k, _ = placement.heads(q, q, q, 0, {})
        assert (q @ k.transpose(-1, -2)).max().item() / 2 == pytest.approx(bound)


@pytest.mark.parametrize("stack", ["value_residual"], indirect=True)
def test_value_residual_averages_with_the_first_block(stack, x):
    torch.manual_seed(8)
    values = torch.randn(2, 1, HEADS, 5, D // HEADS, dtype=torch.float64).unbind()
    shared: dict[str, torch.Tensor] = {}
    assert stack.placement.heads(x, x, values[0], 0, shared)[2] is values[0]
    torch.testing.assert_close(stack.placement.heads(x, x, values[1], 1, shared)[2], (values[0] + values[1]) / 2)
    plain = st.Stack(made("pre"), HEADS).double()
    plain.load_state_dict(stack.state_dict())
    assert not torch.allclose(plain(x), stack(x))


@pytest.mark.parametrize("stack", ["ngpt"], indirect=True)
def test_ngpt_keeps_everything_on_the_sphere(stack, x):
    stack.placement.prepare(stack, x)
    for kind, weight in stack.matrices():
        lengths = weight.norm(dim=0 if kind in ("out", "down") else 1)
        torch.testing.assert_close(lengths, torch.ones_like(lengths))
    for state in stack.placement.states(x, stack.branches()):
        torch.testing.assert_close(state.norm(dim=-1), torch.ones(3, 5).double())
    q, k, v = torch.randn(3, 1, HEADS, 5, 4, dtype=torch.float64)
    new_q, new_k, _ = stack.placement.heads(q, k, v, 1, {})
    cosine = F.cosine_similarity(q[0, 1, 2], k[0, 1, 3], dim=0)
    torch.testing.assert_close(new_q[0, 1, 2] @ new_k[0, 1, 3] / 4**0.5, 4**0.5 * cosine)
    q_scale = stack.placement.qk_scale.data[1].view(HEADS, 4)[1]
    q_scale *= 3
    larger = stack.placement.heads(q, k, v, 1, {})
    torch.testing.assert_close(larger[0][0, 1, 2], 3 * new_q[0, 1, 2])
    torch.testing.assert_close(larger[1][0, 1, 3], 3 * new_k[0, 1, 3])


def test_sinkhorn_makes_a_matrix_doubly_stochastic():
    scores = torch.randn(6, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(9))
    matrix = placements.sinkhorn(scores)
    assert (matrix > 0).all()
    ones = torch.ones(6, 4).double()
    torch.testing.assert_close(matrix.sum(-1), ones)
    torch.testing.assert_close(matrix.sum(-2), ones, atol=1e-4, rtol=0)
    assert (torch.linalg.matrix_norm(matrix, ord=2) < 1 + 1e-4).all()
    torch.testing.assert_close(placements.sinkhorn(scores + 3), matrix)
    torch.testing.assert_close(placements.sinkhorn(1000 + scores), matrix)  # exp(1000) would be infinite


def test_hyper_connections_read_the_streams_in_turn():
    read = made("hyper_connections", streams=3).read
    torch.testing.assert_close(read, torch.eye(3).double()[[0, 1, 2, 0, 1, 2, 0, 1]])


def test_mhc_starts_with_a_plain_mean_and_unit_writes(x, fs):
    mix, read, write = made("mhc").connections(0)
    torch.testing.assert_close(read, torch.full((4,), 0.25).double(), atol=1e-6, rtol=0)
    torch.testing.assert_close(write, torch.ones(4).double())
    assert mix.diagonal().min() > 0.99
    _, read, _ = made("mhc", streams=1).connections(0)
    assert read.item() > 0.99


def test_scale_norm_is_rms_norm_with_equal_gains(x):
    for size in (1, 1e-3):
        torch.testing.assert_close(placements.ScaleNorm(D)(size * x), st.rms_norm(x, eps=0), atol=1e-6, rtol=1e-6)
    assert not placements.ScaleNorm(D)(torch.zeros(D)).any()


def test_channels_first(x):
    image = torch.randn(2, D, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(10))
    norm = shaken(placements.ChannelsFirstLayerNorm(D, eps=1e-6).double())
    mean = image.mean(1, keepdim=True)
    std = ((image - mean) ** 2).mean(1, keepdim=True).add(1e-6).sqrt()
    expected = norm.weight[:, None, None] * (image - mean) / std + norm.bias[:, None, None]
    torch.testing.assert_close(norm(image), expected)
    assert not torch.allclose(nn.GroupNorm(1, D, affine=False)(image), (image - mean) / std, atol=0.1)
    convolutions = [nn.Conv2d(D, D, 3, padding=1).double() for _ in range(2)]
    placement = placements.Placement(D, 1, placements.ChannelsFirstLayerNorm).double()
    assert placement(image, convolutions).shape == image.shape
