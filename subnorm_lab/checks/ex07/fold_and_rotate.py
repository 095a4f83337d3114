import numpy as np

from subnorm_lab.checks.shared import case, drawn, exercise


def inputs(rng, width, d, out):
    """A writer and a reader of the stream, the stored gain between them, and a rotation of the stream."""
    rotation = np.linalg.qr(rng.normal(0, 1, (d, d)))[0]
    return rng.normal(0.3, 1, (d, width)), rng.normal(0.3, 0.4, d), rng.normal(0, 1, (out, d)), rotation


def is_right(k):
    def test(r, *case, offset=1):
        return np.allclose(r[k], fold_and_rotate.reference(*case, offset=offset)[k], rtol=1e-3)

    return test


@exercise(
    number=4, level=3, minutes=20, chapter="10a-outliers-and-rotations",
    objective="move a gain into the next matrix, and rotate the stream around the norm",
    cases=drawn(inputs,
        case("a stream of 4 features, written from 3, read by 5", 3, 4, 5),
        case("a stream of 5 features, all matrices square", 5, 5, 5),
        case("a stream of 6 features, written from 2, read by 3", 2, 6, 3),
        case("a stream of 3 features, written from 7, read by 4", 7, 3, 4),
        case("a stream of 2 features, written from 1, read by 1", 1, 2, 1, edge=True),
    ),
    facts=[
        ("the writer is right", is_right(0)),
        ("the gain is right", is_right(1)),
        ("the reader is right", is_right(2)),
        ("the writer keeps its size",
         lambda r, writer, *rest: np.isclose(np.square(r[0]).sum(), np.square(writer).sum())),
    ],
    parameter="offset", variants=[
        ("a gain of 1 + gamma", 1),
        ("a gain of gamma", 0, r"(1 + \gamma) \odot -> \gamma \odot",
         r"The gain is zero-centred, as in Gemma: the stored number is $\gamma$, the gain $1 + \gamma$. It -> "
         r"The stored number $\gamma$ is the gain itself, as in LLaMA. It", "[0.0, 9.0] -> [1.0, 10.0]",
         "[0.0, 0.0] -> [1.0, 1.0]", "reader * (1 + gamma)  # -> reader * gamma  #",
         "np.zeros_like -> np.ones_like"),
    ],
    mistakes=[
        ("gain_alone", "(offset + gamma) -> (1 - offset + gamma)",
         "the fold takes the other kind of gain, gamma for 1 + gamma or the reverse; here you have {offset}."),
        ("ones_stored", "np.full_like(gamma, 1 - offset) -> np.full_like(gamma, offset)",
         "the new gamma does not give a gain of 1; here you have {offset}: which gamma makes it 1?"),
        ("gain_twice", "np.full_like(gamma, 1 - offset) -> gamma * 1",
         "the gain is folded and still stored, so it acts twice; the gain that is left must be 1."),
        ("gain_left", ("reader * (offset + gamma) @ -> reader @", "np.full_like(gamma, 1 - offset) -> gamma * 1"),
         "the gain stays in the norm, where it multiplies rotated features; it does not commute with the "
         "rotation, so fold it first.",
         "BrotherHappy/OSTQuant/issues/9"),
        ("gain_lost", "reader * (offset + gamma) @ -> reader @",
         "the gain is lost; multiply the reader's columns by it."),
        ("gain_after", "reader * (offset + gamma) @ rotation -> (reader @ rotation) * (offset + gamma)",
         "the gain multiplies rotated columns; it belongs to the old features, so fold first, then rotate."),
        ("gain_divided", "reader * (offset -> reader / (offset",
         "the reader is divided by the gain; it has to apply it: multiply."),
        ("gain_in_writer", ("rotation.T @ writer -> rotation.T @ ((offset + gamma)[:, None] * writer)",
                            "reader * (offset + gamma) @ -> reader @"),
         "the gain is folded into the writer, so the norm divides by another size; fold it into the reader, "
         "after the norm."),
        ("writer_transposed", "rotation.T @ writer -> rotation @ writer",
         "the writer is rotated by the transpose, the wrong way round; the new stream is x @ rotation."),
        ("reader_transposed", "gamma) @ rotation -> gamma) @ rotation.T",
         "the reader is rotated the wrong way round; together with the writer it must undo the rotation."),
        ("other_way", ("rotation.T @ writer -> rotation @ writer", "gamma) @ rotation -> gamma) @ rotation.T"),
         "the stream is x @ rotation.T: the model is the same, but its stream is rotated backwards; use x @ rotation."),
        ("writer_unrotated", "rotation.T @ writer -> 1 * writer",
         "the writer still writes the old stream; rotate it, too."),
        ("reader_unrotated", "gamma) @ rotation -> gamma)", "the reader still reads the old stream; rotate it, too."),
        ("centred", "rotation.T @ writer -> rotation.T @ (writer - writer.mean(0))",
         "the mean over features is taken from the writer, which only a LayerNorm allows; RMSNorm sees the mean.",
         "facebookresearch/SpinQuant/issues/14"),
    ],
)
def fold_and_rotate(writer, gamma, reader, rotation, *, offset=1):
    return rotation.T @ writer, np.full_like(gamma, 1 - offset), reader * (offset + gamma) @ rotation
