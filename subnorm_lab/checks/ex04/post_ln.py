from subnorm_lab.checks.ex04 import peaks_at_one, sublayer_cases
from subnorm_lab.checks.shared import exercise


@exercise(
    number=2, level=1, minutes=7, chapter="05-pre-ln-or-post-ln",
    objective="write the Post-LN formula from memory, and say what the skip path carries in it",
    cases=sublayer_cases,
    facts=[("the rows of the result are normalised", peaks_at_one)],
    mistakes=[
        ("pre_ln", lambda x, f, norm: x + f(norm(x)),
         "this is Pre-LN, x + F(norm(x)); Post-LN normalises the sum, norm(x + F(x)).",
         "harvardnlp/annotated-transformer/issues/1"),
        ("norm_before_sum", lambda x, f, norm: x + norm(f(x)),
         "the norm acts on the branch, before the sum: x + norm(F(x)). In Post-LN it acts on the sum.",
         "mashrurmorshed/Torch-KWT/issues/13"),
        ("no_residual", lambda x, f, norm: norm(f(x)),
         "x is not added: this is norm(F(x)), and Post-LN is norm(x + F(x))."),
        ("doubled_branch", lambda x, f, norm: norm((h := f(x)) + h),
         "the sublayer's output is added to itself: x was overwritten before the sum. Keep the original x.",
         "kyegomez/BitNet/issues/32"),
        ("branch_lost", lambda x, f, norm: norm(x + x),
         "x is added to itself, norm(x + x): the branch is lost; here it is norm(x + F(x)).",
         "theislab/CellFlow/pull/296"),
        ("no_norm", lambda x, f, norm: x + f(x),
         "the sum is not normalised: this is x + F(x), and Post-LN is norm(x + F(x))."),
        ("normed_input", lambda x, f, norm: (h := norm(x)) + f(h),
         "the norm comes before the fork, norm(x) + F(norm(x)); in Post-LN it comes after the sum."),
        ("norm_on_both", lambda x, f, norm: norm(x + f(norm(x))),
         "there are two norms, one before the sublayer and one on the sum; Post-LN has only the second."),
        ("each_alone", lambda x, f, norm: norm(x) + norm(f(x)),
         "x and F(x) are normalised separately and then added; Post-LN adds first, and normalises the sum."),
    ],
)
def post_ln(x, sublayer, norm):
    return norm(x + sublayer(x))
