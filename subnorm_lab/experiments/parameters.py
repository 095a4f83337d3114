"""How many parameters a transformer has, and in which parts: closed forms for three published families."""

from dataclasses import dataclass

PARTS = ("embeddings", "attention", "feed-forward", "norms", "pooler")


@dataclass(frozen=True)
class Sizes:
    """The sizes that determine how many parameters a transformer has.

    Attributes:
        layers: number of blocks, L.
        d_model: features of a token, d.
        d_ff: width of the feed-forward's hidden layer.
        vocabulary: number of different tokens, V.
        positions: learned position embeddings; 0 if positions are not learned.
        d_kv: features of all keys, or values, of a token; None for d_model.
    """

    layers: int
    d_model: int
    d_ff: int
    vocabulary: int
    positions: int = 0
    d_kv: int | None = None


def attention(d_model: int, d_kv: int | None = None, bias: bool = True) -> int:
    """Queries and output are d x d, keys and values d x d_kv: ``2 d (d + d_kv)``, and ``2 (d + d_kv)`` with biases.

    The number of heads does not appear: they split the features among themselves. With fewer key and value heads
    than query heads (grouped-query attention), d_kv is smaller than d.
    """
    d_kv = d_model if d_kv is None else d_kv
    return 2 * (d_model + d_kv) * (d_model + bias)


def feed_forward(d_model: int, d_ff: int, gated: bool = False) -> int:
    """Two layers with biases: ``2 d d_ff + d_ff + d``. Gated: three matrices without biases, ``3 d d_ff``."""
    return 3 * d_model * d_ff if gated else 2 * d_model * d_ff + d_ff + d_model


def gated_width(d_model: int, multiple_of: int = 256, multiplier: float = 1.0) -> int:
    """The width of LLaMA's gated feed-forward: two thirds of 4 d, times the multiplier, rounded up to a multiple.

    Three matrices of two thirds of the width have as many parameters as two of the full width.

    Source: FeedForward in llama/model.py, https://github.com/meta-llama/llama3.
    """
    width = int(multiplier * int(2 * 4 * d_model / 3))
    return -(-width // multiple_of) * multiple_of


def gpt2(sizes: Sizes) -> dict[str, int]:
    """GPT-2: Pre-LN, biases everywhere, learned positions, one final norm; the output layer is the token embedding.

    Returns:
        the number of parameters in each of PARTS.
    """
    return _parts(sizes, bias=True, norm=2 * sizes.d_model)


def bert(sizes: Sizes) -> dict[str, int]:
    """BERT without its pre-training heads: Post-LN, a norm on the embeddings, two segment embeddings, and a pooler.

    Post-LN needs no final norm, but the norm on the embeddings brings the count to 2 L + 1 again.

    Returns:
        the number of parameters in each of PARTS.
    """
    d = sizes.d_model
    parts = _parts(sizes, bias=True, norm=2 * d)
    parts["embeddings"] += 2 * d
    parts["pooler"] = d * d + d
    return parts


def llama(sizes: Sizes) -> dict[str, int]:
    """LLaMA and its relatives: RMSNorm before each sublayer and at the end, no biases, a gated feed-forward,
    rotary positions, which have no parameters, and a separate output layer.

    Returns:
        the number of parameters in each of PARTS.
    """
    parts = _parts(sizes, bias=False, norm=sizes.d_model)
    parts["embeddings"] += sizes.vocabulary * sizes.d_model
    return parts


def _parts(sizes: Sizes, bias: bool, norm: int) -> dict[str, int]:
    """The parts that all families share; without biases the feed-forward is gated."""
    d = sizes.d_model
    return {
        "embeddings": (sizes.vocabulary + sizes.positions) * d,
        "attention": sizes.layers * attention(d, sizes.d_kv, bias),
        "feed-forward": sizes.layers * feed_forward(d, sizes.d_ff, gated=not bias),
        "norms": (2 * sizes.layers + 1) * norm,
        "pooler": 0,
    }
