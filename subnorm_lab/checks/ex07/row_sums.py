import numpy as np

from subnorm_lab.checks.shared import case, drawn, exercise


def inputs(rng, rows, d, width):
    """Rows of float32 with large entries that cancel: what is added to one of them is rounded, so the order shows."""
    x = rng.normal(0, 300, (rows, d)).astype(np.float32)
    for row in x:
        places = rng.permutation(d)[: 2 * max(1, d // 6)]
        large = rng.uniform(1, 9, len(places) // 2) * 2.0**29
        row[places[::2]], row[places[1::2]] = large, -large
    return x, width


def has_the_bits(y, x, width, *, order=1):
    return np.array_equal(y, row_sums.reference(x, width, order=order))


def longer_in_a_batch(x, width, *, order=1):
    return row_sums.reference(x, width * len(x), order=order)


def cut_from_the_start(x, width, *, order=1):
    found = []
    for k, row in enumerate(x):
        first = -k * len(row) % width or width  # the next cut of the whole batch
        cuts = [row[:first], *(row[at : at + width] for at in range(first, len(row), width))]
        found.append(sum([sum(piece) for piece in cuts][::order]))
    return np.array(found)


def in_pairs(x, width, *, order=1):
    sums = [sum(x[:, at : at + width].T) for at in range(0, x.shape[1], width)][::order]
    while len(sums) > 1:
        sums = [sum(sums[at : at + 2]) for at in range(0, len(sums), 2)]
    return sums[0]


@exercise(
    number=3, level=2, minutes=15, chapter="10-norms-at-work",
    objective="add up each row in an order that neither the batch nor the row's place in it can change",
    cases=drawn(inputs,
        case("3 rows of 12 features, in pieces of 4", 3, 12, 4),
        case("4 rows of 10 features, in pieces of 4, the last of 2", 4, 10, 4),
        case("2 rows of 24 features, in pieces of 3", 2, 24, 3),
        case("5 rows of 20 features, in pieces of 8, the last of 4", 5, 20, 8),
        case("3 rows of 16 features, in pieces of 2", 3, 16, 2),
        case("6 rows of 32 features, in pieces of 12, the last of 8", 6, 32, 12),
        case("a batch of one row", 1, 14, 4, edge=True),
        case("rows shorter than a piece", 3, 6, 8, edge=True),
    ),
    facts=[
        ("there is one sum for each row", lambda y, x, width: np.shape(y) == (len(x),)),
        ("the bits are those of the order in the task", has_the_bits),
    ],
    parameter="order", variants=[
        ("the first piece first", 1),
        ("the last piece first", -1, "from the first to the last -> from the last to the first",
         "[3.0, 21.0] -> [0.0, 21.0]", "sum(sums) -> sum(sums[::-1])"),
    ],
    mistakes=[
        ("longer_in_a_batch", longer_in_a_batch,
         "the pieces grow with the number of rows, so a row's bits depend on its batch; a piece has width features.",
         "vllm-project/vllm/pull/48391"),
        ("cut_from_the_start", cut_from_the_start,
         "the pieces are counted from the start of the batch, so a row's bits depend on its place; begin anew in "
         "each row."),
        ("width_for_count", "[x[:, at : at + width] for at in range(0, x.shape[1], width)] -> "
                            "np.array_split(x, width, axis=1)",
         "width is taken for the number of pieces; it is the number of features in each.",
         "Dao-AILab/flash-attention/pull/2604"),
        ("one_piece", "[x[:, at : at + width] for at in range(0, x.shape[1], width)] -> [x]",
         "each row is added in one go; add up pieces of width features first, then the pieces."),
        ("library", "[sum(piece.T) for piece in pieces] -> [x.sum(-1)]",
         "the library adds up the row, in an order of its own; add in the order of the task."),
        ("library_in_pieces", "sum(piece.T) for -> piece.sum(-1) for",
         "the library adds up each piece, and for 8 features and more it chooses the order; add from left to right."),
        ("interleaved", "x[:, at : at + width] for at in range(0, x.shape[1], width) -> "
                        "x[:, at :: -(-x.shape[1] // width)] for at in range(-(-x.shape[1] // width))",
         "each piece takes every n-th feature, as the threads of a kernel do; a piece must have neighbouring "
         "features."),
        ("rest_lost", "range(0, x.shape[1], width) -> range(0, x.shape[1] - width + 1, width)",
         "the features that fill no whole piece are lost; the last piece may be shorter."),
        ("other_end", "sums[::order] -> sums[::-order]", "the pieces are added from the other end; here {order}."),
        ("right_to_left", "sum(piece.T) for -> sum(piece.T[::-1]) for",
         "each piece is added from right to left; add from left to right."),
        ("in_pairs", in_pairs, "the pieces are added in pairs, and those sums in pairs; add one after the other."),
        ("wide", "x[:, at : -> x.astype(np.float64)[:, at :",
         "the sum is taken in float64, which is more exact and has other bits; add in the dtype of x."),
        ("sorted", "x[:, at : -> np.sort(x)[:, at :",
         "the entries are sorted first, so the order depends on the numbers; it may depend on their places alone."),
        ("squares", "sum(piece.T) for -> sum((piece * piece).T) for", "the squares are added; add the entries."),
        ("means", "sum(piece.T) for -> sum(piece.T) / piece.shape[1] for",
         "each piece gives its mean; add up sums."),
        ("columns", "[sum(piece.T) for piece in pieces] -> [sum(x)]",
         "the rows are added to each other; add up the features of each row."),
    ],
)
def row_sums(x, width, *, order=1):
    pieces = [x[:, at : at + width] for at in range(0, x.shape[1], width)]
    sums = [sum(piece.T) for piece in pieces]  # from left to right
    return sum(sums[::order])
