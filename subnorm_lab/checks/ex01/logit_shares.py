import numpy as np

from subnorm_lab.checks.ex01 import READS_FIRST, random_sublayer
from subnorm_lab.checks.shared import case, drawn, exercise


def inputs(rng, shape, many, eps=1e-5, kinds=("relu", "tanh", "linear")):
    d = shape[-1]
    # Each part has a mean far from 0, to make centring visible
    sublayers = [random_sublayer(rng, d, kind) for kind in kinds[:many]]
    return rng.normal(0.5, 1, shape), sublayers, rng.normal(0, 1, (d, 7)), eps


def add_up(shares, *args):
    return np.allclose(sum(shares), sum(logit_shares.reference(*args)))


OWN_RSTD = "* rstd -> / np.sqrt(edit.var(-1, keepdims=True) + eps)"
LENS = (OWN_RSTD, "in edits -> in np.cumsum(edits, 0)")


@exercise(
    number=7, level=4, minutes=25, chapter="02-residual-connections",
    objective="take the stream apart, through the final norm, into what each sublayer wrote",
    cases=drawn(inputs,
        case("two sublayers, a (3, 4) batch", (3, 4), 2),
        case("three sublayers, a (2, 3, 8) batch of sequences", (2, 3, 8), 3),
        case("two sublayers, one token, (6,), and eps = 0.5", (6,), 2, eps=0.5),
        case("one sublayer, a batch of one token, (1, 4)", (1, 4), 1, edge=True),
        case("a sublayer that returns its input itself, not a copy", (3, 4), 2, kinds=("same", "tanh"), edge=True),
    ),
    facts=[
        ("the shares add up to the logits", add_up),
        ("there is one share for x and one for each sublayer",
         lambda shares, x, sublayers, *rest: len(shares) == len(sublayers) + 1),
    ],
    mistakes=[
        ("own_rstd", OWN_RSTD,
         "each edit is divided by its own deviation, so that all count alike; there is only one rstd, that of the sum.",
         "TransformerLensOrg/TransformerLens/issues/696"),
        ("no_norm", ("- edit.mean(-1, keepdims=True) ->", "* rstd ->"),
         "the final norm is missing; centre each edit, and multiply it by the rstd of the sum.",
         "TransformerLensOrg/TransformerLens/issues/179"),
        ("no_rstd", "* rstd ->",
         "the edits are centred, but not scaled; the final norm multiplies by the rstd of the sum."),
        ("no_centre", "- edit.mean(-1, keepdims=True) ->",
         "the edits are scaled, but not centred; the final norm subtracts the mean, so subtract its own mean "
         "from each edit."),
        ("mean_of_sum", "edit.mean -> end.mean",
         "the mean of the whole stream is subtracted from every edit, so it is counted too often; subtract "
         "each edit's own mean."),
        ("mean_split_evenly", "edit.mean -> 1 / len(edits) * end.mean",
         "the mean of the whole stream is split evenly; the shares add up, but each edit has its own mean."),
        ("rstd_of_input", "end.var -> x.var",
         "the rstd is that of x, before the sublayers; the final norm reads the end of the stream."),
        ("rms", "end.var -> (end**2).mean",
         "you divide by the root mean square, as RMSNorm does; LayerNorm divides by the deviation from the mean."),
        ("no_eps", "+ eps ->", "eps is not used; rstd is one over the root of var + eps."),
        ("ddof1", "end.var(-1, -> end.var(-1, ddof=1,", "your variance is divided by d - 1; LayerNorm divides by d."),
        ("no_input_share", "in edits -> in edits[1:]",
         "the share of x is missing: the stream starts with it, and it is the first entry."),
        ("reads_first", "sublayer(end) -> sublayer(x)", READS_FIRST),
        ("lens", LENS, "these are the logits after each sublayer (the logit lens); a share is what one sublayer adds."),
        ("lens_steps", (*LENS, "np.stack(shares) -> np.diff(shares, axis=0, prepend=0)"),
         "these are the steps of the logits from sublayer to sublayer, each with its own rstd; "
         "they add up, but a step also contains the change of rstd."),
    ],
)
def logit_shares(x, sublayers, readout, eps):
    edits, end = [x], x
    for sublayer in sublayers:
        edits.append(sublayer(end))
        end = end + edits[-1]
    rstd = 1 / np.sqrt(end.var(-1, keepdims=True) + eps)
    shares = [(edit - edit.mean(-1, keepdims=True)) * rstd @ readout for edit in edits]
    return np.stack(shares)
