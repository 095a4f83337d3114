"""How small must a branch start in a stack of a given depth? The published factors that depend only on depth.

All are closed forms; each docstring names the weights that the factor multiplies and the paper's measure of depth.
DeepNorm for an encoder or a decoder on its own is in :mod:`subnorm.experiments.deepnorm`.
"""

from subnorm import _rules


def gpt2(num_blocks: int) -> float:
    """GPT-2: the initial factor of the weights that write to the stream.

    ``1 / sqrt(N)`` with N residual layers; a block has two, so ``1 / sqrt(2 L)`` for L blocks.

    Raises:
        ValueError: a depth that is not a positive whole number.

    Source: Radford et al. 2019, section 2.3. N = 2 L is the reading of implementations; the paper does not state it.
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

    Each multiplies the value, output and feed-forward matrices of its side once, after Xavier's init; the decoder's
    factor also multiplies the embeddings. The model has no LayerNorm.

    Raises:
        ValueError: a depth that is not a positive whole number.

    Source: Huang, Perez, Ba, Volkovs 2020, section 3.
    """
    _rules.size("num_blocks", num_blocks)
    return 0.67 * num_blocks**-0.25, (9 * num_blocks) ** -0.25


def fixup(num_branches: int, layers: int = 2) -> float:
    """Fixup: the factor of the weight layers inside a branch, except the last, which starts at zero.

    ``L^(-1 / (2 m - 2))`` with L residual branches of m layers each.

    Raises:
        ValueError: a number that is not positive and whole, or a branch of one layer, which has only a last layer.

    Source: Zhang, Dauphin, Ma 2019, arXiv:1901.09321.

    Known mistake: losing the sign of the exponent.
    """
    _rules.size("num_branches", num_branches)
    _rules.size("layers", layers)
    if layers == 1:
        raise ValueError(
            "Fixup scales the layers of a branch except the last one, so there must be at least two; got 1. "
            "Start a single layer at zero: Fixup does nothing else to it."
        )
    return float(num_branches ** (-1 / (2 * layers - 2)))


def layer_scale(num_blocks: int) -> float:
    """LayerScale: the initial value of the learned factors, one for each feature of a branch's output.

    0.1 up to 18 blocks, 1e-5 up to 24, 1e-6 beyond. The paper names 18, 24 and "deeper"; between 18 and 24, public
    code uses 1e-5, as we do.

    Raises:
        ValueError: a depth that is not a positive whole number.

    Source: Touvron et al. 2021, arXiv:2103.17239.
    """
    _rules.size("num_blocks", num_blocks)
    if num_blocks <= 18:
        return 0.1
    return 1e-5 if num_blocks <= 24 else 1e-6
