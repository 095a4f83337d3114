from subnorm_lab.checks.ex04 import silent_is_identity, sublayer_cases
from subnorm_lab.checks.shared import exercise


@exercise(
    number=1, level=1, minutes=8, chapter="05-pre-ln-or-post-ln",
    objective="write the Pre-LN formula from memory, and say what the skip path carries in it",
    cases=sublayer_cases,
    facts=[("if the sublayer outputs zeros, x comes out", silent_is_identity)],
    mistakes=[
        ("post_ln", lambda x, f, norm: norm(x + f(x)),
         "this is Post-LN, norm(x + F(x)); Pre-LN normalises only the sublayer's input, x + F(norm(x)).",
         "harvardnlp/annotated-transformer/issues/13"),
        ("normed_skip", lambda x, f, norm: (h := norm(x)) + f(h),
         "the skip path carries norm(x); in Pre-LN it carries x itself, and only the sublayer reads norm(x).",
         "pytorch/pytorch/issues/61165"),
        ("norm_after_branch", lambda x, f, norm: x + norm(f(x)),
         "the norm acts on the sublayer's output, x + norm(F(x)); in Pre-LN it acts on the sublayer's input.",
         "harvardnlp/annotated-transformer/issues/110"),
        ("no_residual", lambda x, f, norm: f(norm(x)),
         "x is not added: this is F(norm(x)), and Pre-LN is x + F(norm(x))."),
        ("doubled_branch", lambda x, f, norm: (h := f(norm(x))) + h,
         "the sublayer's output is added to itself: x was overwritten before the sum. Keep the original x.",
         "facebookresearch/multimodal/pull/305"),
        ("branch_lost", lambda x, f, norm: x + x,
         "x is added to itself, x + x: the branch is lost; here it is x + F(norm(x)).", "theislab/CellFlow/pull/296"),
        ("no_norm", lambda x, f, norm: x + f(x),
         "the norm is not used: this is x + F(x), and in Pre-LN the sublayer reads norm(x).",
         "agentdr1/LA_MIL/issues/3"),
        ("norm_on_both", lambda x, f, norm: norm(x + f(norm(x))),
         "there are two norms, one before the sublayer and one on the sum; Pre-LN has only the first."),
        ("sandwich", lambda x, f, norm: x + norm(f(norm(x))),
         "the branch has one norm before the sublayer and one after it; Pre-LN has only the first."),
    ],
)
def pre_ln(x, sublayer, norm):
    return x + sublayer(norm(x))
