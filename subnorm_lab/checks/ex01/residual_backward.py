import numpy as np

from subnorm_lab.checks.shared import ONE_TOKEN, drawn, exercise, of_shapes


def inputs(rng, shape):
    d = shape[-1]
    return rng.normal(0, 1, shape), rng.normal(0, 1, shape), rng.normal(0, 1 / np.sqrt(d), (d, d))


@exercise(
    number=5, level=2, minutes=15, chapter="02-residual-connections",
    objective="say what the Jacobian I + J does to a gradient, and write it",
    cases=drawn(inputs, *of_shapes((3, 6), (6, 6), (2, 5, 8), (8,)), ONE_TOKEN),
    parameter="scale", variants=[
        ("y = x + relu(x) W", 1),
        ("y = x + 0.5 relu(x) W", 0.5, r"y = x + \mathrm{relu} -> y = x + 0.5\,\mathrm{relu}",
         "`y = x + h @ weight` -> `y = x + 0.5 * h @ weight`", "array([4., 8.]) -> array([2.5, 4.5])",
         "dx of y = x + relu(x) @ weight -> dx of y = x + 0.5 * relu(x) @ weight"),
        ("y = x + 2 relu(x) W", 2, r"y = x + \mathrm{relu} -> y = x + 2\,\mathrm{relu}",
         "`y = x + h @ weight` -> `y = x + 2 * h @ weight`", "array([4., 8.]) -> array([ 7., 15.])",
         "dx of y = x + relu(x) @ weight -> dx of y = x + 2 * relu(x) @ weight"),
    ],
    mistakes=[
        ("no_identity", "dy + branch -> branch", "the gradient of the skip path is missing: add dy itself.",
         "paiml/entrenar/issues/313"),
        ("skip_only", "dy + branch -> dy.copy()",
         "the gradient of the branch is missing: dx is dy plus the gradient through the branch."),
        ("no_transpose", "weight.T -> weight",
         "the weight is not transposed: forward is relu(x) @ weight, so backward is dy @ weight.T.",
         "d2l-ai/d2l-en/issues/2532"),
        ("weight_first", "dy @ weight.T -> weight @ dy",
         "weight @ dy treats the rows of dy as columns; features are on the last axis, so it is dy @ weight.T."),
        ("no_mask", "* mask ->",
         "the ReLU is not in the gradient: keep the gradient through the branch only where x > 0."),
        ("mask_first", "(dy @ weight.T) * mask -> (dy * mask) @ weight.T",
         "the mask is applied before weight.T; in the backward pass the weight comes first, then the ReLU."),
        ("mask_on_skip", "dy + branch -> dy * mask + branch",
         "the mask is on the skip path too; the ReLU is in the branch, and dy passes it unchanged."),
        ("mask_of_gradient", "x > 0 -> dy @ weight.T > 0",
         "the mask comes from the gradient; a ReLU passes the gradient where its input x was above 0.",
         "exacity/deeplearningbook-chinese/issues/127"),
        ("relu_for_mask", "x > 0 -> np.maximum(x, 0)",
         "the gradient is multiplied by relu(x); the slope of a ReLU is 1 where x > 0, and 0 elsewhere."),
        ("mask_for_gradient", "(dy @ weight.T) * mask -> mask",
         "the slope of the ReLU replaces the gradient; multiply them.", "haifengl/smile/issues/528"),
        ("one_for_dy", "dy + branch -> 1 + branch",
         "1 is added where dy belongs: the slope of the skip path is 1, so its gradient is dy times 1."),
        ("adds_x", "dy + branch -> x + branch",
         "x is added, as in the forward pass; the gradient on the skip path is dy."),
    ],
)
def residual_backward(dy, x, weight, *, scale=1):
    mask = x > 0
    branch = scale * (dy @ weight.T) * mask
    return dy + branch
