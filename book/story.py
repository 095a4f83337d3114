"""A language model that tells a story: RMSNorm, attention, SwiGLU.

    python story.py                    tells a story
    python story.py "One day, a dog"   tells how it goes on

It reads stories260K.bin and tok512.bin beside it: the weights and the
tokens of karpathy/tinyllamas (MIT licence), 260,032 numbers in all.
"""

import struct
import sys
from pathlib import Path

import numpy as np

BOS = 1  # the token that begins a story

# The model: one token at a time goes through it, as 64 numbers


def rms_norm(x, gain):
    return gain * x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)


def rotate(x, position):
    """Turn pairs of features by angles that grow with the position."""
    angle = position * 10000 ** (-np.arange(0, 8, 2) / 8)
    pair = (x[..., ::2] + 1j * x[..., 1::2]) * np.exp(1j * angle)
    return np.stack([pair.real, pair.imag], -1).reshape(x.shape)


def attention(h, w, past):
    """Eight heads read all tokens so far; two share keys and values."""
    q = rotate((w["q"] @ h).reshape(4, 2, 8), len(past))
    k = rotate((w["k"] @ h).reshape(4, 1, 8), len(past))
    v = (w["v"] @ h).reshape(4, 1, 8)
    past.append((k, v))
    keys, values = (np.concatenate(a, axis=1) for a in zip(*past))
    scores = q @ keys.swapaxes(1, 2) / np.sqrt(8)  # (4, 2, tokens)
    share = np.exp(scores - scores.max(-1, keepdims=True))
    share = share / share.sum(-1, keepdims=True)
    return w["o"] @ (share @ values).reshape(64)


def swiglu(h, w):
    gate = w["gate"] @ h
    return w["down"] @ (gate / (1 + np.exp(-gate)) * (w["up"] @ h))


def block(x, w, past):
    x = x + attention(rms_norm(x, w["gain1"]), w, past)
    return x + swiglu(rms_norm(x, w["gain2"]), w)


def next_token(token, model, pasts):
    embedding, blocks, final_gain = model
    x = embedding[token]
    for w, past in zip(blocks, pasts):
        x = block(x, w, past)
    return int(np.argmax(embedding @ rms_norm(x, final_gain)))


def tell(model, tokens, count=256):
    pasts = [[] for _ in model[1]]  # keys and values, block by block
    for token in tokens:
        new = next_token(token, model, pasts)
    for _ in range(count):
        if new == BOS:
            return
        yield new
        new = next_token(new, model, pasts)


# Its two files


def read_model(path):
    shapes = {
        "embedding": (512, 64), "gain1": (5, 64), "q": (5, 64, 64),
        "k": (5, 32, 64), "v": (5, 32, 64), "o": (5, 64, 64),
        "gain2": (5, 64), "gate": (5, 172, 64), "down": (5, 64, 172),
        "up": (5, 172, 64), "final gain": (64,),
    }  # matrices are (outputs, inputs), one of each for each block
    numbers = np.fromfile(path, "<f4", offset=28).astype(float)
    ends = np.cumsum([np.prod(shape) for shape in shapes.values()])
    parts = zip(shapes, np.split(numbers, ends))
    w = {name: part.reshape(shapes[name]) for name, part in parts}
    embedding, final_gain = w.pop("embedding"), w.pop("final gain")
    blocks = [{name: w[name][layer] for name in w} for layer in range(5)]
    return embedding, blocks, final_gain


def read_pieces(path):
    """The bytes of each token, and which pairs of tokens merge first."""
    data, at, pieces, scores = path.read_bytes(), 4, [], []
    while at < len(data):
        score, length = struct.unpack_from("<fi", data, at)
        at += 8 + length
        pieces.append(data[at - length : at])
        scores.append(score)
    single = [bytes([byte]) for byte in range(256)]
    return [b"", b"", b"", *single, *pieces[259:]], scores


def encode(text, pieces, scores):
    """Begin with characters; merge neighbours, the best pair first."""
    number = {piece: token for token, piece in enumerate(pieces)}
    tokens = []
    for letter in " " + text if text else "":
        data = letter.encode()
        spelled = [byte + 3 for byte in data]
        tokens += [number[data]] if data in number else spelled
    while True:
        pairs = zip(tokens, tokens[1:])
        merged = [number.get(pieces[a] + pieces[b]) for a, b in pairs]
        if not any(merged):
            return [BOS, *tokens]
        best = max(filter(None, merged), key=lambda token: scores[token])
        k = merged.index(best)
        tokens[k : k + 2] = [best]


if __name__ == "__main__":
    here = Path(__file__).parent
    if not (here / "tok512.bin").exists():
        here = here.parent / "subnorm_lab/stories/data"
    model = read_model(here / "stories260K.bin")
    pieces, scores = read_pieces(here / "tok512.bin")
    text = " ".join(sys.argv[1:])
    story = tell(model, encode(text, pieces, scores))
    words = (pieces[token].decode(errors="replace") for token in story)
    print(text or next(words, "").lstrip(), end="")
    for word in words:
        print(word, end="", flush=True)
    print()
