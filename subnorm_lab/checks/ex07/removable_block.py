import numpy as np

from subnorm_lab.checks.shared import case, drawn, exercise


def inputs(rng, blocks, tokens, d, smallest=None):
    """A stream that grows by branches of several sizes, the largest of which turns a token round.

    Tokens differ in size, too. `smallest` is the block with the smallest branch; None for any.
    """
    streams = [rng.normal(0, 1, (tokens, d)) * np.geomspace(0.3, 4, tokens)[:, None]]
    sizes = rng.permutation(np.geomspace(0.3, 1.5, blocks))
    if smallest is not None:
        least = sizes.argmin()
        sizes[least], sizes[smallest] = sizes[smallest], 0.1
    for size in sizes:
        scale = np.linalg.norm(streams[-1], axis=-1, keepdims=True) / np.sqrt(d)
        branch = size * rng.uniform(0.4, 1, (tokens, 1)) * scale * rng.normal(0.2, 1, (tokens, d))
        if size == max(sizes):
            branch[0] = rng.uniform(-1.9, -1.5) * streams[-1][0] + branch[0] / 4
        streams.append(streams[-1] + branch)
    return (np.array(streams),)


def expected(streams):
    return removable_block.reference(streams)


@exercise(
    number=6, level=2, minutes=15, chapter="10c-cut-and-looped",
    objective="find the block that changes the stream least, from the stream alone",
    cases=drawn(inputs,
        case("4 blocks, 3 tokens of 8 features", 4, 3, 8, smallest=0),
        case("6 blocks, 5 tokens of 6 features", 6, 5, 6, smallest=-1),
        case("3 blocks, 3 tokens of 3 features", 3, 3, 3),
        case("5 blocks, 2 tokens of 12 features", 5, 2, 12),
        case("5 blocks, one token of 7 features", 5, 1, 7, edge=True),
    ),
    facts=[
        ("there is one influence for each block", lambda r, streams: len(r[0]) == len(streams) - 1),
        ("the influences are right", lambda r, streams: np.allclose(r[0], expected(streams)[0], 1e-3)),
        ("the block is right", lambda r, streams: r[1] == expected(streams)[1]),
    ],
    mistakes=[
        ("largest", "np.argmin -> np.argmax",
         "you take the block that turns the stream most; take the smallest influence."),
        ("counted_from_one", "argmin(influence) -> argmin(influence) + 1",
         "the number of the block is too large by 1; block 0 leads from streams[0] to streams[1].",
         "arcee-ai/PruneMe/issues/4"),
        ("flattened", ("streams[:-1], streams[1:] -> streams[:-1].reshape(len(streams) - 1, 1, -1), "
                       "streams[1:].reshape(len(streams) - 1, 1, -1)"),
         "all tokens are put into one vector, in which large tokens count most; take a cosine for each token.",
         "peremartra/optipfair/issues/38"),
        ("mean_token", "streams[:-1], streams[1:] -> streams[:-1].mean(1, keepdims=True), "
                       "streams[1:].mean(1, keepdims=True)",
         "the tokens are averaged first; take a cosine for each token, and average those."),
        ("similarity", ("(1 - cosine) -> cosine", "np.argmin -> np.argmax"),
         "the cosine itself is returned; the influence is 1 minus it."),
        ("least_similar", "(1 - cosine) -> cosine",
         "the cosine is returned, and its smallest taken: that block turns the stream most; use 1 minus it."),
        ("not_normalised", " / (np.linalg.norm(x, axis=-1) * np.linalg.norm(y, axis=-1)) ->",
         "this is a dot product, which grows with the stream; divide it by both lengths."),
        ("one_length", "* np.linalg.norm(y, axis=-1) -> * np.linalg.norm(x, axis=-1)",
         "the dot product is divided by the input's length twice; divide by the lengths of input and output."),
        ("branch", "streams[1:] -> streams[1:] - streams[:-1]",
         "input and branch are compared; compare the block's input with its output, branch included."),
        ("from_the_start", "streams[:-1], -> streams[:1],",
         "every output is compared with the first stream; compare it with the input of its own block."),
        ("distance", "1 - cosine -> np.linalg.norm(y - x, axis=-1)",
         "this is the length of the branch, which grows with the stream; take 1 minus the cosine."),
        ("angle", "1 - cosine -> np.arccos(cosine) / np.pi",
         "this is the angle as a share of pi, another measure; here the influence is 1 minus the cosine."),
        ("summed", "(1 - cosine).mean(-1) -> (1 - cosine).sum(-1)",
         "the tokens are added up, so a longer text has more influence; take their mean."),
        ("last_token", "(1 - cosine).mean(-1) -> (1 - cosine)[..., -1]",
         "only the last token counts; take the mean over all tokens."),
    ],
)
def removable_block(streams):
    x, y = streams[:-1], streams[1:]  # (blocks, tokens, d)
    cosine = (x * y).sum(-1) / (np.linalg.norm(x, axis=-1) * np.linalg.norm(y, axis=-1))
    influence = (1 - cosine).mean(-1)
    return influence, np.argmin(influence)
