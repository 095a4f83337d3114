"""How small must a branch start, for a stack of a given depth? The published factors that depend on depth alone.

All are closed forms; each function says what the factor multiplies and what its paper counts as depth. DeepNorm for a
stack that is an encoder alone or a decoder alone is in :mod:`subnorm.experiments.deepnorm`.
"""

from subnorm import _rules


def gpt2(num_blocks: int) -> float:
    """GPT-2: the factor on the weights that write to the stream, at the start.

    ``1 / sqrt(N)`` with N residual layers; a block has two, so ``1 / sqrt(2 L)`` for L blocks.

    Raises:
        ValueError: a depth that is not a positive whole number.

    Source: Radford et al. 2019, section 2.3. That N = 2 L is how implementations read it; the paper does not say it.
    """
    _rules.size("num_blocks", num_blocks)
    return (2 * num_blocks) ** -0.5


def deep_norm_encoder_decoder(
    encoder_blocks: int, decoder_blocks: int
) -> tuple[tuple[float, float], tuple[float, float]]:
    """DeepNorm for an encoder with a decoder: (alpha, beta) of the encoder, then (alpha, beta) of the decoder.

    With N blocks in the encoder and M in the decoder, ``0.81 (N^4 M)^(1/16)`` and ``0.87 (N^4 M)^(-1/16)``, then
    ``(3 M)^(1/4)`` and ``(12 M)^(-1/4)``. In ``norm(alpha x + F(x))``, beta is the gain of the init of the
    feed-forward, value and output matrices.

    Raises:
        ValueError: a depth that is not a positive whole number.

    Source: Wang et al. 2022, arXiv:2203.00555.
    """
    _rules.size("encoder_blocks", encoder_blocks)
    _rules.size("decoder_blocks", decoder_blocks)
    both = (encoder_blocks**4 * decoder_blocks) ** (1 / 16)
    return (0.81 * both, 0.87 / both), ((3 * decoder_blocks) ** 0.25, (12 * decoder_blocks) ** -0.25)


def t_fixup(num_blocks: int) -> tuple[float, float]:
    """T-Fixup: the factors for an encoder and a decoder of N blocks each, ``0.67 N^(-1/4)`` and ``(9 N)^(-1/4)``.

    Each multiplies the value, output and feed-forward matrices of its side after Xavier's init, once; that of the
    decoder the embeddings too. The model has no LayerNorm.

    Raises:
        ValueError: a depth that is not a positive whole number.

    Source: Huang, Perez, Ba, Volkovs 2020, section 3.
    """
    _rules.size("num_blocks", num_blocks)
    return 0.67 * num_blocks**-0.25, (9 * num_blocks) ** -0.25


def fixup(num_branches: int, layers: int = 2) -> float:
    """Fixup: the factor on the weight layers inside a branch, but for its last one, which starts at zero.

    ``L^(-1 / (2 m - 2))`` with L residual branches of m layers each.

    Raises:
        ValueError: a number that is not positive and whole; a branch of one layer, which has none but its last.

    Source: Zhang, Dauphin, Ma 2019, arXiv:1901.09321. Known mistake: the sign of the exponent gets lost in copies.
    """
    _rules.size("num_branches", num_branches)
    _rules.size("layers", layers)
    if layers == 1:
        raise ValueError(
            "Fixup scales the layers of a branch but for its last one, so there must be at least two; got 1. "
            "The last layer starts at zero: with a single layer that is all of Fixup."
        )
    return float(num_branches ** (-1 / (2 * layers - 2)))


def layer_scale(num_blocks: int) -> float:
    """LayerScale: the start of the learned factors, one for each feature of a branch's output.

    0.1 up to 18 blocks, 1e-5 up to 24, 1e-6 beyond. The paper names 18, 24 and "deeper"; public code fills the gap
    between 18 and 24 with 1e-5, as here.

    Raises:
        ValueError: a depth that is not a positive whole number.

    Source: Touvron et al. 2021, arXiv:2103.17239.
    """
    _rules.size("num_blocks", num_blocks)
    if num_blocks <= 18:
        return 0.1
    return 1e-5 if num_blocks <= 24 else 1e-6
