"""What the trained model says as it is, and with a norm, a branch or a skip taken away.

    python -m subnorm_lab.experiments.retold

writes ``records/retold.json`` beside this file. The first page of the book shows it; its script ``storyteller.js``
makes the same cuts in the reader's browser.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from subnorm.numpy import layer_norm, post_ln
from subnorm.numpy.norms import Array
from subnorm_lab import stories
from subnorm_lab.experiments import stored
from subnorm_lab.stories import Model, altered

RECORD = stored.file("retold")

TOKENS = 86  # the length of each story; that of the trained model then ends with a sentence
MIDDLE = 4  # the attention of the third block of five


def no_norm(x: Array, gamma: Array) -> Array:
    """In place of a norm: its gain goes too, as in ``nn.Identity()``."""
    return x


def no_division(x: Array, gamma: Array) -> Array:
    """A norm that keeps its gain and no longer divides."""
    return gamma * x


def no_skip(x: Array, sublayer: Callable[[Array], Array], norm: Callable[[Array], Array]) -> Array:
    """A placement that takes the skip away: only the branch is left."""
    return sublayer(norm(x))


def models() -> dict[str, Model]:
    """The trained model, and what is left of it, in the order of the page."""
    model = stories.load()
    return {
        "as trained": model,
        "without one skip": altered(model, place=no_skip, at=[MIDDLE]),
        "without one branch": altered(model, place=stories.leave_out, at=[MIDDLE]),
        "LayerNorm": altered(model, norm=layer_norm),
        "no norms": altered(model, norm=no_norm),
        "no final division": altered(model, norm=no_division, at=[10]),
        "Post-LN": altered(model, place=post_ln),
    }


def take() -> dict[str, Any]:
    """Each model's story, and its mean, least and largest loss over :func:`subnorm_lab.stories.texts`."""
    texts, told = stories.texts(), {}
    for name, model in models().items():
        losses = [stories.loss(model, tokens) for tokens in texts]
        summary = {key: round(float(f(losses)), 2) for key, f in (("mean", np.mean), ("min", np.min), ("max", np.max))}
        told[name] = {"story": stories.generate(model, tokens=TOKENS), "loss": summary}
    return {
        **stored.origin("python -m subnorm_lab.experiments.retold"),
        "texts": len(texts),
        "tokens": TOKENS,
        "told": told,
    }


if __name__ == "__main__":
    stored.write(RECORD, take())
