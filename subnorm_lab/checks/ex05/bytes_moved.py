import numpy as np

from subnorm_lab.checks.shared import Case, exercise


def cases(rng):
    def case(name, itemsize, norm):
        rows, d = (int(n) for n in rng.choice(np.arange(3, 2000), 2, replace=False))
        return Case(f"{name} with {rows} rows of {d}", (rows, d, itemsize, norm))

    return [
        case("LayerNorm in float32", 4, "layer"),
        case("RMSNorm in float32", 4, "rms"),
        case("LayerNorm in float16", 2, "layer"),
        case("RMSNorm in float16", 2, "rms"),
        case("RMSNorm in float64", 8, "rms"),
    ]


@exercise(
    number=3, level=2, minutes=10, chapter="08-how-fast-can-a-norm-be",
    objective="count the bytes that a norm has to move at least",
    cases=cases,
    facts=[
        ("it is what x and y need, and little more",
         lambda r, rows, d, itemsize, norm: 0 <= r - 2 * rows * d * itemsize < 2 * (2 * d + rows) * itemsize),
        ("it is a whole number of items", lambda r, rows, d, itemsize, norm: r % itemsize == 0),
    ],
    parameter="kept", variants=[
        ("a forward pass alone", 0),
        ("a forward pass in training", 1,
         "it keeps nothing for a backward pass. -> it writes the rstd of each row, and LayerNorm also its mean.",
         "168 -> 188", "that a forward pass reads -> that a forward pass in training reads"),
    ],
    mistakes=[
        ("elements", "* itemsize ->", "these are numbers, not bytes: each takes itemsize bytes."),
        ("four_bytes", "* itemsize -> * 4", "each number counts as 4 bytes; use itemsize.", "pytorch/FBGEMM/pull/5622"),
        ("bits", "* itemsize -> * itemsize / 8", "itemsize is in bytes already; do not divide it by 8."),
        ("no_write", "2 * rows -> rows", "only x is counted; y has to be written as well.",
         "flashinfer-ai/flashinfer/pull/3411"),
        ("two_reads", "2 * rows -> 3 * rows",
         "x is read twice, once for the statistics and once to normalise; one read is enough if the row is kept."),
        ("no_parameters", "+ parameters * d ->",
         "x and y are counted, but not gamma and beta, which are read as well."),
        ("every_row", "parameters * d -> parameters * d * rows",
         "gamma and beta are read again for every row; once is enough."),
        ("beta_in_rms", "else 1 -> else 2", "RMSNorm has no beta: it reads only gamma."),
        ("no_beta", "2 if -> 1 if", "only one parameter is counted; LayerNorm has two, gamma and beta."),
        ("statistics", "kept * -> 1 *",
         "the mean and rstd of each row are counted as well; {kept} does not need to write them."),
    ],
)
def bytes_moved(rows, d, itemsize, norm, *, kept=0):
    parameters = 2 if norm == "layer" else 1
    statistics = kept * (1 + (norm == "layer"))
    return (2 * rows * d + parameters * d + statistics * rows) * itemsize
