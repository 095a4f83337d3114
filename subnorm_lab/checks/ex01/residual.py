import numpy as np

from subnorm import numpy as sn
from subnorm_lab.checks.ex01 import random_sublayer
from subnorm_lab.checks.shared import Sublayer, case, drawn, exercise, of_shapes


def inputs(rng, shape, kind="tanh", zeros=False):
    x, d = rng.normal(0, 1, shape), shape[-1]
    return x, Sublayer("linear", np.zeros((d, d))) if zeros else random_sublayer(rng, d, kind)


@exercise(
    number=1, level=1, minutes=8, chapter="02-residual-connections",
    objective="write a residual connection, and say what its branch has to learn",
    cases=drawn(inputs,
        *of_shapes((3, 4), (2, 5, 8)),
        case("one token, (6,), and a linear sublayer", (6,), "linear"),
        case("a sublayer that outputs zeros", (3, 4), zeros=True),
        case("a batch of one token, (1, 4)", (1, 4), edge=True),
        case("a sublayer that returns its input itself, not a copy", (3, 4), "same", edge=True),
    ),
    facts=[
        ("the result has the shape of x", lambda y, x, sublayer: y.shape == x.shape),
        ("a sublayer of zeros changes nothing", lambda y, x, sublayer: sublayer(x).any() or np.allclose(y, x)),
    ],
    mistakes=[
        ("no_skip", "x + ->", "the result is the branch alone, F(x); a residual connection adds x to it.",
         "znxlwm/UGATIT-pytorch/issues/32"),
        ("branch_twice", "x + -> 2 *", "the branch is added to itself, F(x) + F(x); the other term is x.",
         "kyegomez/BitNet/issues/32"),
        ("skip_twice", "x + -> x + x +", "x is added twice, x + x + F(x); the skip path adds it once.",
         "yakhyo/darknet-pytorch/issues/2"),
        ("branch_lost", "sublayer(x) -> x",
         "x is added to itself, x + x: the branch is lost; the other term is F(x).", "theislab/CellFlow/pull/296"),
        ("overwritten", lambda x, sublayer: (h := sublayer(x)) + sublayer(h),
         "x was replaced by F(x) before the sum, which gives F(x) + F(F(x)); keep x for the skip path."),
        ("skip_normed", lambda x, sublayer: (h := sn.layer_norm(x)) + sublayer(h),
         "x is normalised before it goes to the branch and the skip path, which then carries norm(x); it must carry x.",
         "lbcb-sci/RiNALMo/issues/9"),
        ("branch_normed", lambda x, sublayer: sn.pre_ln(x, sublayer, sn.layer_norm),
         "the branch reads norm(x), which is Pre-LN; this residual connection has no norm."),
        ("sum_normed", lambda x, sublayer: sn.post_ln(x, sublayer, sn.layer_norm),
         "the sum is normalised, which is Post-LN; this residual connection has no norm."),
        ("skip_relu", "x + -> np.maximum(x, 0) +",
         "the skip path carries relu(x), as it does after an in-place ReLU; it must carry x itself.",
         "rosinality/vq-vae-2-pytorch/issues/60"),
        ("sum_relu", "x + sublayer(x) -> np.maximum(x + sublayer(x), 0)",
         "a ReLU follows the sum, as in the first ResNet; y = x + F(x) has nothing after the plus sign.",
         "vanhuyz/CycleGAN-TensorFlow/issues/56"),
        ("branch_relu", "sublayer(x) -> np.maximum(sublayer(x), 0)",
         "the branch goes through a ReLU before the sum, so it can only raise x; y = x + F(x) adds F(x) as it is.",
         "kuangliu/pytorch-cifar/issues/4"),
        ("subtracted", "x + sublayer(x) -> sublayer(x) - x",
         "x is subtracted, F(x) - x; the branch learns y - x, so add x back.", "mlpack/mlpack/pull/1594"),
        ("concatenated", "x + sublayer(x) -> np.concatenate([x, sublayer(x)], -1)",
         "x and F(x) are concatenated; a residual connection adds them, and keeps the shape."),
    ],
)
def residual(x, sublayer):
    return x + sublayer(x)
