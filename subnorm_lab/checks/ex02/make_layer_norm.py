import numpy as np

from subnorm_lab.checks.collect import as_module, plain, shapes
from subnorm_lab.checks.shared import case, drawn, exercise


def inputs(rng, shape, eps):
    d = shape[-1]
    state = {"weight": rng.normal(1, 0.3, d).astype("float32"), "bias": rng.normal(0, 0.5, d).astype("float32")}
    x, dy = (rng.normal(0, 1, shape).astype("float32") for _ in range(2))
    return d, eps, state, x, dy


def has_its_state(found, d, eps, state, *args):
    return found["the state_dict"] == shapes(state)


def starts_right(found, *args):
    gain, shift = (found[f"{name} at the start"] for name in ("weight", "bias"))
    return None if gain is None or shift is None else np.all(gain == 1) and np.all(shift == 0)


def is_right(*names):
    """A test whether these entries of the result are right; None if the module was not run."""

    def test(found, *args):
        if found["y"] is None:
            return None
        wanted = as_module(make_layer_norm.reference, *args)
        return all(np.allclose(found[name], plain(wanted[name]), 1e-3, 1e-3) for name in names)

    return test


def wrapped(d, eps):
    import torch

    outer = torch.nn.Sequential()
    outer.norm = make_layer_norm.reference(d, eps)
    return outer


@exercise(
    number=5, level=2, minutes=15, chapter="03-layer-normalization",
    objective="write LayerNorm as a module, and check it against PyTorch's to the last digits",
    way="module",
    cases=drawn(inputs,
        case("d = 8 and eps = 0.5, a (3, 8) batch", (3, 8), 0.5),
        case("d = 6 and eps = 1e-5, a square batch", (6, 6), 1e-5),
        case("d = 8 and eps = 1e-5, a (2, 5, 8) batch of sequences", (2, 5, 8), 1e-5),
        case("d = 6 and eps = 1e-5, one token, (6,)", (6,), 1e-5, edge=True),
        case("d = 8 and eps = 1e-5, a batch of one token, (1, 8)", (1, 8), 1e-5, edge=True),
    ),
    facts=[
        ("the parameters have the names and shapes of torch.nn.LayerNorm", has_its_state),
        ("the gain starts at 1 and the shift at 0", starts_right),
        ("the output is right", is_right("y")),
        ("the gradient at x is right", is_right("dx")),
        ("the gradients of weight and bias are right", is_right("the gradient of weight", "the gradient of bias")),
    ],
    mistakes=[
        ("names", ("self.weight = -> self.gamma =", "self.bias = -> self.beta =",
                   "self.weight * xhat + self.bias -> self.gamma * xhat + self.beta"),
         "your parameters are called gamma and beta; torch.nn.LayerNorm saves weight and bias.",
         "huggingface/candle/pull/1888"),
        ("plain_tensors", ("torch.nn.Parameter(torch.ones(d)) -> torch.ones(d)",
                           "torch.nn.Parameter(torch.zeros(d)) -> torch.zeros(d)"),
         "your module has no parameters: a plain tensor is not registered; wrap it in torch.nn.Parameter.",
         "SimonThomine/RememberingNormality/issues/7"),
        ("no_gradient", ("ones(d)) -> ones(d), requires_grad=False)", "zeros(d)) -> zeros(d), requires_grad=False)"),
         "weight and bias get no gradient, so they would never be trained; make both a torch.nn.Parameter.",
         "harvard-edge/cs249r_book/pull/1504"),
        ("wrapped", wrapped,
         "your parameters belong to a module inside your module, and are saved under its name, as norm.weight."),
        ("one_row", ("ones(d) -> ones(1, d)", "zeros(d) -> zeros(1, d)"),
         "your parameters have shape (1, d); those of torch.nn.LayerNorm have shape (d,)."),
        ("bias_missing", ("self.bias = torch.nn.Parameter(torch.zeros(d)) ->", "+ self.bias ->"),
         "your module has no bias, the shift beta."),
        ("starts_at_zero", "torch.ones -> torch.zeros",
         "the gain starts at 0, so all outputs are 0 at first; it must start at 1."),
        ("unbiased", "unbiased=False -> unbiased=True",
         "x.var() and x.std() divide by d - 1 unless told otherwise; LayerNorm divides by d: unbiased=False.",
         "harvardnlp/annotated-transformer/pull/119"),
        ("eps_outside", "torch.sqrt(var + eps) -> (torch.sqrt(var) + eps)",
         "eps is added outside the root; the definition is sqrt(var + eps).", "hyunwoongko/transformer/issues/7"),
        ("eps_ignored", "var + eps -> var + 1e-5",
         "your module does not use the eps that it is given: it always adds 1e-5, or nothing.",
         "NVIDIA-NeMo/Megatron-Bridge/pull/5712"),
        ("all_axes_unbiased", ("mean(-1, keepdim=True) -> mean()", "var(-1, unbiased=False, keepdim=True) -> var()"),
         "x.mean() and x.var() are those of the whole input, and divide by its size - 1; each token has its own, over "
         "dim=-1, with unbiased=False."),
        ("axis0", ("mean(-1 -> mean(0", "var(-1 -> var(0"),
         "the statistics are taken over axis 0, the batch; LayerNorm takes them over the features, dim=-1."),
        ("no_mean", "(x - mean) -> x", "the mean is not subtracted from x."),
        ("variance_detached", "x.var( -> x.detach().var(",
         "no gradient flows through the variance: it depends on x, so leave out detach(), .data and no_grad().",
         "abhiskk/ladder/issues/2"),
        ("detached", ("x.mean( -> x.detach().mean(", "x.var( -> x.detach().var("),
         "no gradient flows through mean and variance: they depend on x, so leave out detach() and no_grad()."),
    ],
)
def make_layer_norm(d, eps):
    import torch

    class LayerNorm(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(d))
            self.bias = torch.nn.Parameter(torch.zeros(d))

        def forward(self, x):
            mean = x.mean(-1, keepdim=True)
            var = x.var(-1, unbiased=False, keepdim=True)
            xhat = (x - mean) / torch.sqrt(var + eps)
            return self.weight * xhat + self.bias

    return LayerNorm()
