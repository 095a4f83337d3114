import numpy as np

from subnorm_lab.checks.shared import case, drawn, exercise


def inputs(rng, shape, many):
    d = shape[-1]
    weights = [rng.normal(0, 1 / np.sqrt(d), (d, d)) for _ in range(many)]
    return rng.normal(0, 1, shape), weights


def add_up(terms, *args):
    return np.allclose(sum(terms), sum(paths.reference(*args)))


@exercise(
    number=6, level=3, minutes=15, chapter="02-residual-connections",
    objective="read a residual stack as 2^L paths",
    cases=drawn(inputs,
        case("three blocks, one token, (4,)", (4,), 3),
        case("two blocks, a (3, 4) batch", (3, 4), 2),
        case("four blocks, a (2, 3, 5) batch of sequences", (2, 3, 5), 4),
        case("one block, a batch of one token, (1, 4)", (1, 4), 1, edge=True),
    ),
    facts=[
        ("path 0 is x", lambda terms, x, weights: np.allclose(terms[0], x)),
        ("there are 2^L paths", lambda terms, x, weights: len(terms) == 2 ** len(weights)),
        ("the paths add up to the output of the stack", add_up),
    ],
    mistakes=[
        ("bits_reversed", "index >> k -> index >> (many - 1 - k)",
         "the first block is the highest bit, as in itertools.product; here block 0 is the lowest bit, "
         "so path 1 goes through block 0 alone."),
        ("by_length", "in choices: -> in sorted(choices, key=lambda choice: (len(choice), choice)):",
         "the paths are sorted by their length; sort them as binary numbers."),
        ("complement", "if index -> if not index", "a 1 bit sends the path past the branch; it must send it through."),
        ("last_block_first", "for k in choice: -> for k in choice[::-1]:",
         "the weights of a path are multiplied from the last block to the first; x goes through block 0 first."),
        ("no_straight_path", "np.stack(terms) -> np.stack(terms[1:])",
         "the path past every branch is missing: it is path 0, and carries x."),
        ("single_branches", "in choices: -> in [choice for choice in choices if len(choice) < 2]:",
         "these are x and one path for each block; a path may go through any number of branches."),
        ("nested", "in choices: -> in [range(k) for k in range(many + 1)]:",
         "these are the paths through the first 0, 1, 2, … blocks; every choice of blocks is a path."),
        ("edits", "np.stack(terms) -> np.add.reduceat(terms, [0, *(2**k for k in range(many))])",
         "these are x and the edits, what each branch adds to the stream; each edit is a sum of paths."),
        ("summed", "np.stack(terms) -> sum(terms)",
         "this is the sum of all paths, the output of the stack; return them separately."),
        ("whole_block", "term @ -> term + term @",
         "a path is multiplied by I + weight where it goes through a branch; that also counts the way past it."),
        ("transposed", "weights[k] -> weights[k].T", "the branch of a block is x @ weight; you multiply by weight.T."),
    ],
)
def paths(x, weights):
    many, terms = len(weights), []
    choices = [[k for k in range(many) if index >> k & 1] for index in range(2**many)]
    for choice in choices:
        term = x
        for k in choice:
            term = term @ weights[k]
        terms.append(term)
    return np.stack(terms)
