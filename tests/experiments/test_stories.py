"""The trained model: what it tells is what its author published."""

import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from subnorm.numpy import layer_norm, post_ln, rms_norm
from subnorm_lab import stories
from subnorm_lab.stories import Model, altered, generate, load
from subnorm_lab.stories import files as story_files
from subnorm_lab.stories.torch import Stories

LISTING = Path(__file__).parents[2] / "book" / "story.py"


@pytest.fixture(scope="module")
def model() -> Model:
    return load()


@pytest.fixture(scope="module")
def texts() -> list[list[int]]:
    return stories.texts()


# The story


def test_it_tells_the_story_that_its_author_published(model: Model) -> None:
    assert generate(model) == story_files.published()[0]


def test_single_precision_tells_the_same_story() -> None:
    assert generate(load(np.float32)) == story_files.published()[0]


def test_the_listing_tells_the_same_story_from_any_folder(tmp_path: Path) -> None:
    """Beside its two files, as a reader downloads it, and in the repository."""
    for file in (LISTING, *(Path(str(story_files.DATA / name)) for name in story_files.HASHES)):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    for listing in (LISTING, tmp_path / "story.py"):
        told = subprocess.run([sys.executable, "-I", listing], capture_output=True, cwd=tmp_path, check=True)
        assert told.stdout.decode().replace("\r\n", "\n") == story_files.published()[0] + "\n"


def test_the_listing_goes_on_from_a_prompt_as_the_module_does(model: Model) -> None:
    for prompt in ("One day, a dog", "Zoë’s cat ☃"):
        told = subprocess.run([sys.executable, LISTING, *prompt.split(" ")], capture_output=True, check=True)
        assert told.stdout.decode().replace("\r\n", "\n") == generate(model, prompt) + "\n"


def test_the_listing_fits_on_its_page() -> None:
    lines = LISTING.read_text("utf-8").splitlines()
    assert max(map(len, lines)) <= 79
    assert sum(bool(line.strip()) for line in lines) <= 110


def test_a_cache_changes_nothing(model: Model, texts: list[list[int]]) -> None:
    for tokens in texts:
        whole = stories.stream(model, tokens)
        past: stories.Past = {}
        for cut in ([*range(len(tokens))], [0, 7, 50]):
            past = {}
            ends = [*cut[1:], len(tokens)]
            parts = [stories.stream(model, tokens[a:b], past) for a, b in zip(cut, ends, strict=True)]
            np.testing.assert_allclose(np.concatenate(parts, axis=1), whole, rtol=0, atol=1e-10)


def test_it_stops_where_the_next_story_would_begin(model: Model) -> None:
    whole = stories.continuation(model, [stories.BOS], 400, 0.7)
    assert len(whole) < 400
    assert stories.BOS not in whole
    tokens = [stories.BOS, *whole]
    assert stories.continuation(model, tokens, 1) == []
    assert np.argmax(stories.logits(model, stories.stream(model, tokens)[-1, -1])) == stories.BOS


def test_a_seed_decides_the_sample(model: Model) -> None:
    told = [generate(model, "The cat", 30, 1.0, seed) for seed in (1, 1, 2)]
    assert told[0] == told[1] != told[2]
    assert all(text.startswith("The cat") for text in told)


def test_samples_follow_the_models_probabilities(model: Model) -> None:
    """The first token of 400 stories; chi-square over those expected at least ten times."""
    temperature = 1.5
    scores = stories.logits(model, stories.stream(model, [stories.BOS])[-1, -1]) / temperature
    probability = np.exp(scores - scores.max())
    probability /= probability.sum()
    drawn = [stories.continuation(model, [stories.BOS], 1, temperature, seed) for seed in range(400)]
    count = np.bincount([token for new in drawn for token in new], minlength=512)
    often = 400 * probability >= 10
    assert often.sum() >= 4
    expected = 400 * probability[often]
    assert ((count[often] - expected) ** 2 / expected).sum() < 2 * often.sum() + 10


# The model in PyTorch


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 1e-5), (np.float64, 1e-12)])
@pytest.mark.parametrize("place", [None, post_ln])
def test_the_same_weights_in_pytorch(
    dtype: type, rtol: float, place: stories.Place | None, texts: list[list[int]]
) -> None:
    model = altered(load(dtype), place=place)
    twin = Stories(model)
    for tokens in texts:
        scores = stories.logits(model, stories.stream(model, tokens)[-1])
        assert scores.dtype == dtype
        other = twin(torch.tensor(tokens)).detach().numpy()
        assert np.abs(other - scores).max() <= rtol * np.abs(scores).max()
        assert twin.loss(torch.tensor(tokens)).item() == pytest.approx(stories.loss(model, tokens), rel=rtol)


def test_pytorch_reads_a_batch(model: Model, texts: list[list[int]]) -> None:
    twin, batch = Stories(model), torch.tensor([tokens[:40] for tokens in texts])
    torch.testing.assert_close(twin(batch)[3], twin(batch[3]))


# Altered models


def test_the_loss_is_worse_without_any_sublayer(model: Model, texts: list[list[int]]) -> None:
    trained = np.mean([stories.loss(model, tokens) for tokens in texts])
    for k in range(10):
        without = altered(model, place=stories.leave_out, at=[k])
        states = stories.stream(without, texts[0])
        np.testing.assert_array_equal(states[k + 1], states[k])
        assert np.mean([stories.loss(without, tokens) for tokens in texts]) > trained


def test_an_alteration_holds_at_its_places_only(model: Model, texts: list[list[int]]) -> None:
    plain, other = (stories.stream(m, texts[0]) for m in (model, altered(model, norm=layer_norm, at=[4])))
    np.testing.assert_array_equal(other[:5], plain[:5])
    assert np.abs(other[5] - plain[5]).max() > 0.01
    last = altered(model, norm=partial(rms_norm, eps=1.0), at=[10])
    np.testing.assert_array_equal(stories.stream(last, texts[0]), plain)
    assert np.abs(stories.logits(last, plain) - stories.logits(model, plain)).max() > 0.1


def test_blocks_run_in_the_given_order(model: Model, texts: list[list[int]]) -> None:
    text = texts[0]
    plain = stories.stream(model, text)
    np.testing.assert_array_equal(stories.stream(stories.arranged(model, [1, 2, 3, 4, 5]), text), plain)
    without = stories.stream(altered(model, place=stories.leave_out, at=[4, 5]), text)
    np.testing.assert_array_equal(stories.stream(stories.arranged(model, [1, 2, 4, 5]), text)[-1], without[-1])
    twice = stories.arranged(altered(model, norm=layer_norm, at=[5]), [3, 3])
    np.testing.assert_array_equal(twice.gains, model.gains[[4, 5, 4, 5, 10]])
    assert twice.norms == (rms_norm, layer_norm) * 2 + (rms_norm,)
    assert [w is model.weights[k] for w, k in zip(twice.weights, (4, 5, 4, 5), strict=True)] == [True] * 4


@pytest.mark.parametrize("unknown", [0, 6, -1])
def test_there_are_five_blocks(model: Model, unknown: int) -> None:
    with pytest.raises(ValueError, match=re.escape(f"the model's blocks are 1 to 5; got [{unknown}].")):
        stories.arranged(model, [1, unknown])


def test_the_loss_is_that_of_guessing_where_all_scores_are_equal(model: Model, texts: list[list[int]]) -> None:
    blind = altered(model, norm=lambda x, gamma: 0 * x, at=[10])
    assert stories.loss(blind, texts[0]) == pytest.approx(np.log(512))


def test_a_model_without_its_first_attention_still_counts_its_tokens(model: Model) -> None:
    deaf = altered(model, place=stories.leave_out, at=[0])
    with pytest.raises(ValueError, match="reads at most 512 tokens; got 513"):
        stories.stream(deaf, [2] * 513)
    past: stories.Past = {}
    stories.stream(deaf, [2] * 512, past)
    with pytest.raises(ValueError, match="got 513"):
        stories.stream(deaf, [2], past)


# Tokens and odd input


@pytest.mark.parametrize(
    "text", ["", " ", "Once upon a time", "Zoë’s cat ☃ 🙂\n\tand\0", "\x80ÿ", "<0x41> <s>", *story_files.published()]
)
def test_a_text_comes_back_from_its_tokens(model: Model, text: str) -> None:
    tokens = model.tokenizer.encode(text)
    assert tokens[0] == stories.BOS
    assert model.tokenizer.decode(tokens) == text


def test_common_words_are_one_token(model: Model) -> None:
    assert len(model.tokenizer.encode("Once upon a time")) == 5


def test_of_equal_pairs_the_first_merges(model: Model) -> None:
    pieces = [model.tokenizer.pieces[token] for token in model.tokenizer.encode("xlll")]
    assert pieces[-2:] == [b"ll", b"l"]


def test_a_lone_surrogate_and_cut_characters_become_replacement_characters(model: Model) -> None:
    assert set(model.tokenizer.decode(model.tokenizer.encode("\ud800"))) == {"�"}
    assert model.tokenizer.decode(model.tokenizer.encode("🙂")[:-1]) == "�"


@pytest.mark.parametrize("text", [b"Once", None, 3])
def test_only_text_is_encoded(model: Model, text: object) -> None:
    with pytest.raises(TypeError, match=f"must be a str; got {type(text).__name__}"):
        generate(model, text)  # type: ignore[arg-type]


def test_an_empty_text_and_a_full_context(model: Model) -> None:
    assert generate(model, tokens=0) == ""
    assert generate(model, "A dog", tokens=0) == "A dog"
    assert len(stories.continuation(model, [2] * 512, 1)) == 1
    with pytest.raises(ValueError, match=r"reads at most 512 tokens; got 513\. Shorten"):
        generate(model, tokens=513)
    with pytest.raises(ValueError, match="reads at most 512 tokens"):
        generate(model, "x " * 600)


@pytest.mark.parametrize("temperature", [-1.0, float("nan"), float("inf")])
def test_a_temperature_is_a_number_from_0(model: Model, temperature: float) -> None:
    with pytest.raises(ValueError, match=r"at least 0; got .*\. 0 takes the best token"):
        generate(model, temperature=temperature)


# The files


@pytest.mark.parametrize(
    ("file", "read"), [("stories260K.bin", story_files.weights), ("tok512.bin", story_files.tokenizer)]
)
def test_a_damaged_file_is_refused(file: str, read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    data = bytearray((story_files.DATA / file).read_bytes())
    data[-1] ^= 1
    (tmp_path / file).write_bytes(data)
    monkeypatch.setattr(story_files, "DATA", tmp_path)
    with pytest.raises(ValueError, match=rf"{file} must be the published file; .*Install the package again"):
        read()


def test_the_model_needs_numpy_alone() -> None:
    code = "import sys, subnorm_lab.stories; print({'torch', 'matplotlib', 'IPython'} & {*sys.modules})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
