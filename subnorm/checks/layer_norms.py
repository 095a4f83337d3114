"""The exercises on LayerNorm."""

from functools import partial
from typing import Any

import numpy as np

from subnorm import numpy as sn
from subnorm.checks.collect import Case
from subnorm.checks.exercise import Exercise, Mistake

Array = np.ndarray[Any, Any]


def _cases(rng: np.random.Generator) -> list[Case]:
    """Inputs on which each mistake shows in its own way. The rows are short, so that d and d - 1 are far apart."""

    def case(name: str, shape: tuple[int, ...], scale: float = 1, mean: float = 0, edge: bool = False) -> Case:
        d = shape[-1]
        gamma, beta = rng.normal(1, 0.3, d), rng.normal(0, 0.5, d)
        return Case(name, (rng.normal(mean, scale, shape), gamma, beta, 1e-5), edge)

    def in_dtype(case: Case, dtype: str) -> Case:
        return Case(case.name, (*(a.astype(dtype) for a in case.args[:3]), case.args[3]), case.edge)

    return [
        case("a (3, 8) batch", (3, 8)),
        case("a square batch, (6, 6)", (6, 6)),
        case("a (2, 5, 8) batch of sequences", (2, 5, 8)),
        case("rows of deviation 2e-3, where eps matters", (3, 8), scale=2e-3),
        case("one token, (8,)", (8,)),
        in_dtype(case("a float16 batch with entries near 400", (3, 8), scale=400, edge=True), "float16"),
        in_dtype(case("float32 rows of mean 4000 and deviation 1", (3, 8), mean=4000, edge=True), "float32"),
    ]


def _wrong(
    x: Array, gamma: Array, beta: Array, eps: float,
    axis: Any = -1, ddof: int = 0, keepdims: bool = True, wide: bool = True, mean: bool = True,
    root: str = "inside", gain: bool = True, shift: bool = True, one_pass: bool = False,
) -> Array:  # fmt: skip
    """LayerNorm with one thing changed: the defaults are right."""
    dtype, x = x.dtype, x.astype(np.float32) if wide and x.dtype == np.float16 else x
    mu = x.mean(axis, keepdims=keepdims)
    var = (x * x).mean(axis, keepdims=keepdims) - mu * mu if one_pass else x.var(axis, ddof=ddof, keepdims=keepdims)
    divisor = {
        "inside": lambda: np.sqrt(var + eps),
        "outside": lambda: np.sqrt(var) + eps,
        "none": lambda: np.sqrt(var),
        "variance": lambda: var + eps,
    }[root]()
    xhat = (x - mu if mean else x) / divisor
    return ((gamma if gain else 1) * xhat + (beta if shift else 0)).astype(dtype)


layer_norm = Exercise(
    name="layer_norm",
    level=1,
    minutes=15,
    chapter="03-layer-normalization",
    objective="write LayerNorm from its formula, in NumPy",
    reference=sn.layer_norm,
    cases=_cases,
    mistakes=[
        Mistake(
            "ddof1",
            "your variance is unbiased (divided by d - 1); LayerNorm divides by d.",
            partial(_wrong, ddof=1),
        ),
        Mistake(
            "axis0",
            "the statistics are taken over the batch; LayerNorm takes them over the features of each token, axis -1.",
            partial(_wrong, axis=0),
        ),
        Mistake(
            "all_axes",
            "one mean and one variance are taken of the whole array; each token has its own, over axis -1.",
            partial(_wrong, axis=None),
        ),
        Mistake(
            "keepdims",
            "without keepdims=True the mean loses its last axis, and is subtracted along the wrong one.",
            partial(_wrong, keepdims=False),
        ),
        Mistake(
            "eps_outside",
            "eps is added outside the root, sqrt(var) + eps; the definition is sqrt(var + eps).",
            partial(_wrong, root="outside"),
        ),
        Mistake("no_eps", "eps is not used; the definition divides by sqrt(var + eps).", partial(_wrong, root="none")),
        Mistake(
            "no_root",
            "you divide by var + eps; the definition divides by its root.",
            partial(_wrong, root="variance"),
        ),
        Mistake("no_mean", "the mean is not subtracted: that is a step of LayerNorm.", partial(_wrong, mean=False)),
        Mistake("no_gamma", "gamma is not used: it multiplies each feature.", partial(_wrong, gain=False)),
        Mistake("no_beta", "beta is not used: it is added to each feature.", partial(_wrong, shift=False)),
        Mistake(
            "float16",
            "float16 overflows in the squares; take the statistics in float32, and give the result the dtype of x.",
            partial(_wrong, wide=False),
        ),
        Mistake(
            "one_pass",
            "mean(x²) − mean(x)² loses its digits when the mean is large; subtract the mean first, then square.",
            partial(_wrong, one_pass=True),
        ),
    ],
    facts=[
        (
            "rows have mean beta",
            lambda y, x, gamma, beta, eps: np.allclose(((y - beta) / gamma).mean(-1), 0, atol=1e-6),
        ),
        (
            "a shift of x changes nothing",
            lambda y, x, gamma, beta, eps: np.allclose(((y - beta) / gamma).sum(-1), 0, atol=1e-6),
        ),
    ],
)

EXERCISES = [layer_norm]
