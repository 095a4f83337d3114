import hashlib
import math

import pytest
import torch

from subnorm_lab.experiments import text

HASHES = {
    "us-constitution.txt": "e398fe77f26f1ba6ea7ccc6e6f0b0c91c6de08ec7f1e5efa6be60dd39ccce4e6",
    "us-declaration.txt": "5901585a2ff579de7ba4b8fb15ba46e96f5523fb667546042055e8aea3a2d48e",
}


@pytest.mark.parametrize("file", text.FILES)
def test_the_text_is_frozen(file: str) -> None:
    assert hashlib.sha256((text.DATA / file).read_bytes()).hexdigest() == HASHES[file]


def test_characters_become_tokens_and_characters_again() -> None:
    loaded = text.load()
    assert loaded.decode(loaded.encode("We the People")) == "We the People"
    assert loaded.decode(loaded.train[:1000]) == text.read(text.FILES[0])[:1000]


def test_the_split_keeps_every_character_once() -> None:
    loaded = text.load()
    both = sum(len(text.read(file)) for file in text.FILES)
    assert len(loaded.train) + len(loaded.validation) == both
    assert len(loaded.validation) == pytest.approx(both / 10, abs=2)
    assert loaded.decode(loaded.validation[-100:]) == text.read(text.FILES[1])[-100:]


def test_a_target_is_the_next_character() -> None:
    tokens = torch.arange(50)
    x, y = text.batch(tokens, 64, 10, torch.Generator().manual_seed(0))
    assert x.shape == y.shape == (64, 10)
    torch.testing.assert_close(y, x + 1)
    assert x.min() == 0  # every start is possible, the first
    assert y.max() == 49  # and the last


def test_the_seed_decides_the_windows() -> None:
    one, same, other = (text.batch(torch.arange(999), 4, 8, torch.Generator().manual_seed(s))[0] for s in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_a_window_longer_than_the_text_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a longer text; got 8 tokens"):
        text.batch(torch.arange(8), 2, 8, torch.Generator())


def test_letters_that_are_equally_frequent_cost_the_logarithm_of_their_number() -> None:
    uniform = text.Text("abcd", torch.arange(4).repeat(5), torch.empty(0))
    assert uniform.unigram_loss() == pytest.approx(math.log(4))
