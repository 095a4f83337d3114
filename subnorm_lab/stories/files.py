"""The published files of the trained model in :mod:`subnorm_lab.stories`: weights, tokenizer, and stories.

`data/README.md` beside this file says where they come from, and how they are laid out.
"""

import hashlib
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from itertools import pairwise

import numpy as np

from subnorm.numpy.norms import Array

DATA = resources.files("subnorm_lab.stories") / "data"
HASHES = {
    "stories260K.bin": "b0a507e7ad0f626624f17112325e66691f9076d622e1d3274d103d00299f2696",
    "tok512.bin": "037cb335abb25d1fa9e8ecae30ed2a3a8ace9302862ebcdc05d51a6bbb10c312",
}
LAYERS = 5
SHAPES = {  # in the order of the file; matrices are (outputs, inputs)
    "embedding": (512, 64),
    "attention gain": (LAYERS, 64),
    "q": (LAYERS, 64, 64),
    "k": (LAYERS, 32, 64),
    "v": (LAYERS, 32, 64),
    "o": (LAYERS, 64, 64),
    "feed-forward gain": (LAYERS, 64),
    "gate": (LAYERS, 172, 64),
    "down": (LAYERS, 64, 172),
    "up": (LAYERS, 172, 64),
    "final gain": (1, 64),
}
BOS = 1  # the token that begins a story
FIRST_BYTE = 3  # token 3 + b is the byte b


def weights() -> dict[str, Array]:
    """The weights by name, float32, with the shapes of :data:`SHAPES`.

    Raises:
        ValueError: the file is not the published one.
    """
    numbers = np.frombuffer(_read("stories260K.bin"), "<f4", offset=28)  # after seven integers
    ends = np.cumsum([np.prod(shape) for shape in SHAPES.values()])
    parts = np.split(numbers, ends)[: len(SHAPES)]  # the rest is a table of sines and cosines
    return {name: part.reshape(SHAPES[name]) for name, part in zip(SHAPES, parts, strict=True)}


def published() -> list[str]:
    """Two stories that the author published with the model, and two by larger models of the same family."""
    return (DATA / "stories.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n---\n")


@dataclass(frozen=True)
class Tokenizer:
    """Byte-pair encoding.

    Attributes:
        pieces: the bytes of each token.
        scores: of each token; of all neighbours that can merge into one token, those with the best merge first.
    """

    pieces: tuple[bytes, ...]
    scores: tuple[float, ...]

    def encode(self, text: str) -> list[int]:
        """BOS, then the characters of the text, of which two neighbours merge until no two can.

        A space is put before the text. A character outside the vocabulary becomes its UTF-8 bytes.
        """
        if not isinstance(text, str):
            raise TypeError(f"the text must be a str; got {type(text).__name__}. Decode bytes first: text.decode().")
        number = {piece: k for k, piece in enumerate(self.pieces)}
        tokens: list[int] = []
        for character in " " + text if text else "":
            data = character.encode("utf-8", "surrogatepass")
            tokens += [number[data]] if data in number else [FIRST_BYTE + byte for byte in data]
        while True:
            merged = [number.get(self.pieces[a] + self.pieces[b]) for a, b in pairwise(tokens)]
            best = max((k for k in merged if k is not None), key=self.scores.__getitem__, default=None)
            if best is None:
                return [BOS, *tokens]
            first = merged.index(best)
            tokens[first : first + 2] = [best]

    def decode(self, tokens: Iterable[int]) -> str:
        """The text of tokens, without the space that follows BOS. Bytes that form no character become U+FFFD."""
        tokens = list(tokens)
        text = b"".join(self.pieces[k] for k in tokens).decode("utf-8", "replace")
        return text.removeprefix(" ") if tokens[:1] == [BOS] else text


def tokenizer() -> Tokenizer:
    """The tokenizer of the model.

    Raises:
        ValueError: the file is not the published one.
    """
    data, at = _read("tok512.bin"), 4  # after the length of the longest piece
    pieces, scores = [], []
    while at < len(data):
        score, length = struct.unpack_from("<fi", data, at)
        pieces.append(data[at + 8 : at + 8 + length])
        scores.append(score)
        at += 8 + length
    pieces[:FIRST_BYTE] = [b""] * FIRST_BYTE  # unknown, begin, end
    pieces[FIRST_BYTE : FIRST_BYTE + 256] = [bytes([byte]) for byte in range(256)]  # spelled <0x00> in the file
    return Tokenizer(tuple(pieces), tuple(scores))


def _read(file: str) -> bytes:
    data = (DATA / file).read_bytes()
    if hashlib.sha256(data).hexdigest() != HASHES[file]:
        raise ValueError(
            f"{file} must be the published file; the one in {DATA} has another hash, so it is damaged. "
            f"Install the package again, or restore the file with git."
        )
    return data
