import numpy as np

from subnorm_lab.checks.ex03 import EPS_OUTSIDE, NO_EPS, norm_cases
from subnorm_lab.checks.shared import exercise


def is_close(one, other):
    return np.shape(one) == np.shape(other) and np.allclose(one, other, 1e-4, 1e-5)


def has_the_norm(y, *args, order=1):
    return is_close(y[::order][0], add_rms_norm.reference(*args)[0])


@exercise(
    number=3, level=2, minutes=10, chapter="04-rmsnorm",
    objective="add a branch and normalise the sum in one step, as fused kernels do, and keep both results",
    cases=norm_cases(arrays=2),
    facts=[
        ("the stream is x + branch", lambda y, x, branch, *rest, order=1: is_close(y[::order][1], x + branch)),
        ("y is the norm of x + branch", has_the_norm),
    ],
    parameter="order", variants=[
        ("the order (y, stream)", 1),
        ("the order (stream, y)", -1, "Return the pair `(y, stream)` -> Return the pair `(stream, y)`",
         "(array([0.2, 1.4]), array([1., 7.])) -> (array([1., 7.]), array([0.2, 1.4]))",
         "RMSNorm of x + branch, and x + branch itself. -> x + branch, and its RMSNorm."),
    ],
    mistakes=[
        ("old_stream", "y, stream -> y, x", "the stream is returned without the branch; it is x + branch.",
         "UbiquitousLearning/mllm/pull/670"),
        ("normed_stream", "y, stream -> y, y",
         "the stream is returned normalised; return x + branch as it is before the norm, for the next addition.",
         "GeeeekExplorer/nano-vllm/issues/170"),
        ("overwritten_stream", "y, stream -> y, xhat",
         "the stream was divided in place on the way to y; keep x + branch, and write xhat to a new array."),
        ("norm_of_x", "stream.astype -> x.astype", "y is the norm of x alone; normalise the sum."),
        ("norm_of_branch", "stream.astype -> branch.astype", "y is the norm of the branch alone; normalise the sum."),
        ("added_twice", "stream.astype -> (stream + branch).astype",
         "the branch is added twice before the norm; y is the norm of x + branch."),
        ("norm_first", ("stream.astype -> branch.astype", "y, stream -> y, x + y"),
         "the branch is normalised, then added: that is another block. Add first, then normalise the sum."),
        ("swapped", "y, stream -> stream, y", "the two results are right, but swapped: return them in {order}."),
        ("no_gamma", "gamma * ->", "gamma is not used: it multiplies each feature of y."),
        EPS_OUTSIDE, NO_EPS,
        ("writes_to_input", "stream = x + -> stream = x; stream +=",
         "an input itself is changed (an operator such as += writes into it), also for other code that uses it: make a "
         "new array."),
        ("float16", "stream.astype(np.promote_types(x.dtype, np.float32)) -> stream",
         "float16 overflows in the squares: square in float32. Both results have the dtype of x."),
    ],
)
def add_rms_norm(x, branch, gamma, eps, *, order=1):
    stream = x + branch
    wide = stream.astype(np.promote_types(x.dtype, np.float32))
    mean = (wide * wide).mean(-1, keepdims=True)
    xhat = wide / np.sqrt(mean + eps)
    y = (gamma * xhat).astype(x.dtype)
    return (y, stream)[::order]
