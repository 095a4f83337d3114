"""The training text of the small language models: encoded by character, split, and cut into batches."""

from dataclasses import dataclass
from importlib import resources

import torch
from torch import Tensor

DATA = resources.files("subnorm_lab.experiments") / "data"
FILES = ("us-constitution.txt", "us-declaration.txt")


def read(file: str) -> str:
    """The content of one of the :data:`FILES`."""
    return (DATA / file).read_text(encoding="ascii")


@dataclass(frozen=True)
class Text:
    """An encoded text.

    Attributes:
        characters: the vocabulary, sorted; token k encodes ``characters[k]``.
        train: training tokens, shape (N,).
        validation: held-out tokens, shape (M,).
    """

    characters: str
    train: Tensor
    validation: Tensor

    def encode(self, text: str) -> Tensor:
        """Characters to tokens, shape (len(text),)."""
        return encode(self.characters, text)

    def decode(self, tokens: Tensor) -> str:
        """Tokens to characters."""
        return "".join(self.characters[k] for k in tokens.tolist())

    def unigram_loss(self) -> float:
        """Mean loss, in nats, on the training text of a model that predicts only its character frequencies."""
        share = self.frequencies()
        share = share[share > 0]
        return float(-(share * share.log()).sum())

    def frequencies(self) -> Tensor:
        """The share of each character of the vocabulary in the training text, shape (len(characters),)."""
        count = torch.bincount(self.train, minlength=len(self.characters)).double()
        return count / count.sum()


def load() -> Text:
    """Both files: the last tenth of each is held out for validation."""
    documents = [read(file) for file in FILES]
    characters = "".join(sorted(set("".join(documents))))
    cuts = [len(document) * 9 // 10 for document in documents]
    train = "".join(document[:cut] for document, cut in zip(documents, cuts, strict=True))
    validation = "".join(document[cut:] for document, cut in zip(documents, cuts, strict=True))
    return Text(characters, encode(characters, train), encode(characters, validation))


def encode(characters: str, text: str) -> Tensor:
    """The vocabulary index of each character, shape (len(text),)."""
    number = {character: k for k, character in enumerate(characters)}
    return torch.tensor([number[character] for character in text])


def batch(tokens: Tensor, batch_size: int, length: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Random windows, and the same windows one character later.

    Args:
        tokens: the text, shape (N,), N greater than length.
        batch_size: number of windows, B.
        length: tokens in a window, T.
        generator: draws the starts of the windows.

    Returns:
        x and y, each of shape (B, T), with ``y[:, t]`` the token that follows ``x[:, t]``.

    Raises:
        ValueError: the text is too short for a window and its next character.
    """
    if len(tokens) <= length:
        raise ValueError(
            f"a window of length {length} needs a longer text; got {len(tokens)} tokens. Shorten the window."
        )
    start = torch.randint(len(tokens) - length, (batch_size, 1), generator=generator)
    window = tokens[start + torch.arange(length + 1)]  # (B, T + 1)
    return window[:, :-1], window[:, 1:]
