"""The one norm with all the choices is each of the norms that it stands for, written out here on its own."""

import inspect
import json
import re
from itertools import combinations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from subnorm.numpy import layer_norm, rms_norm
from subnorm_lab.experiments import conventions
from subnorm_lab.experiments.conventions import COMMITS, CONVENTIONS, SAME_INPUTS, difference, norm, pairs
from subnorm_lab.experiments.precision import FORMATS
from tools.checkout import ROOT


def mean_square(x):
    return x.pow(2).mean(-1, keepdim=True)


def two_groups(x):
    """Of every second feature."""
    halves = x.unflatten(-1, (-1, 2))
    return (F.layer_norm(halves.mT, (4,)).mT).flatten(-2)


def one_pass(x):
    mean = FORMATS["float32"](x.mean(-1, keepdims=True))
    square = FORMATS["float32"]((x * x).mean(-1, keepdims=True))
    var = FORMATS["float32"](square - FORMATS["float32"](mean * mean)).clip(0)
    return FORMATS["float32"]((x - mean) / np.sqrt(var + 1e-5))


#: by the name of the convention: the same in PyTorch, for a float64 tensor and its gain
WRITTEN_OUT = {
    "eps added to the deviation": lambda x, g: (x - x.mean(-1, True)) / (x.std(-1, correction=0, keepdim=True) + 1e-5),
    "d - 1 in the variance": lambda x, g: (x - x.mean(-1, True)) / (x.var(-1, keepdim=True) + 1e-5).sqrt(),
    "eps = 0.001": lambda x, g: F.layer_norm(x, x.shape[-1:], eps=1e-3),
    "a variance in one pass": lambda x, g: torch.from_numpy(one_pass(x.numpy())),
    "a variance without centring": lambda x, g: x * (x.var(-1, correction=0, keepdim=True) + 1e-5).rsqrt(),
    "eps outside, in RMSNorm": lambda x, g: x / (mean_square(x).sqrt() + 1e-8),
    "a part of the features": lambda x, g: x * (mean_square(x[:, :16]) + 1e-5).rsqrt(),
    "the machine's eps": lambda x, g: F.rms_norm(x, x.shape[-1:], eps=torch.finfo(torch.float32).eps),
    "a least length": lambda x, g: F.normalize(x, dim=-1) * x.shape[-1] ** 0.5,
    "length one": lambda x, g: x / x.norm(dim=-1, keepdim=True),
    "a gain stored less 1": lambda x, g: F.rms_norm(x, x.shape[-1:], 1 + g, 1e-5),
    "rounded before the gain": lambda x, g: (
        (F.rms_norm(x, x.shape[-1:], eps=1e-5)).bfloat16() * g.bfloat16()
    ).double(),
    "all axes from here on": lambda x, g: F.layer_norm(x, x.shape[1:]),
    "channels first, each position": lambda x, g: F.layer_norm(x.movedim(1, -1), (8,), eps=1e-6).movedim(-1, 1),
    "strided groups": lambda x, g: two_groups(x),
    "each head apart": lambda x, g: F.rms_norm(x.unflatten(-1, (4, 8)), (8,), eps=1e-5).flatten(-2),
    "scaled by the largest value": lambda x, g: F.layer_norm(8 * x / x.abs().max(), x.shape[-1:]),
}

each_convention = pytest.mark.parametrize("name", CONVENTIONS)


def test_there_are_enough():
    assert len(CONVENTIONS) >= 14
    assert WRITTEN_OUT.keys() == CONVENTIONS.keys()


@each_convention
def test_the_settings_are_the_convention(name):
    convention, rng = CONVENTIONS[name], np.random.default_rng(0)
    x, gain = convention.probe(rng), np.asarray(convention.gain(rng))
    ours = norm(x, gain, **convention.settings)
    theirs = WRITTEN_OUT[name](torch.from_numpy(x), torch.from_numpy(gain))
    np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-9, atol=1e-12)


@each_convention
def test_the_settings_make_the_difference(name):
    """Take it back, and the two agree."""
    convention = CONVENTIONS[name]
    assert min(difference(convention, seed) for seed in range(5)) > 0.01
    same = conventions.Convention(**{**vars(convention), "settings": convention.usual})
    assert difference(same, 0) == 0


def test_without_settings_it_is_the_norm_of_the_course():
    x, gain = (np.random.default_rng(k).standard_normal(shape) for k, shape in ((0, (3, 8)), (1, 8)))
    np.testing.assert_allclose(norm(x, gain), layer_norm(x, gain), rtol=1e-12)
    np.testing.assert_allclose(norm(x, gain, centre=False), rms_norm(x, gain), rtol=1e-12)


def test_blocks_of_features_are_the_groups_of_pytorch():
    x = np.random.default_rng(0).standard_normal((5, 8))
    theirs = F.group_norm(torch.from_numpy(x), 2)
    np.testing.assert_allclose(norm(x, groups=(2, "blocks")), theirs.numpy(), rtol=1e-9, atol=1e-12)


def test_a_clamp_is_a_least_length_of_the_row():
    x = 1e-13 * np.random.default_rng(0).standard_normal((3, 8))
    ours = norm(x, centre=False, eps=1e-12, eps_at="clamp")
    np.testing.assert_allclose(ours, 8**0.5 * F.normalize(torch.from_numpy(x), dim=-1).numpy(), rtol=1e-9)


def test_a_pair_is_every_two_choices_on_one_input():
    """The difference of a pair, written out; two choices with the same settings do not differ at all."""
    draw = SAME_INPUTS["of size 0.001"]
    found = pairs(draw, 3)
    assert list(found) == list(combinations(CONVENTIONS, 2))
    rng = np.random.default_rng(3)
    x, gain = draw(rng), rng.uniform(0.5, 1.5, 8)
    plus_one = norm(x, gain, **CONVENTIONS["a gain stored less 1"].settings)
    machine = norm(x, gain, **CONVENTIONS["the machine's eps"].settings)
    smaller = min((plus_one**2).mean(), (machine**2).mean()) ** 0.5
    expected = np.abs(plus_one - machine).max() / smaller
    assert found["the machine's eps", "a gain stored less 1"] == pytest.approx(expected, rel=1e-12)


def test_two_choices_that_are_one_would_be_found(monkeypatch):
    changed = {**vars(CONVENTIONS["eps = 0.001"]), "settings": {"ddof": 1}}
    monkeypatch.setitem(CONVENTIONS, "eps = 0.001", conventions.Convention(**changed))
    for draw in SAME_INPUTS.values():
        assert pairs(draw, 0)["d - 1 in the variance", "eps = 0.001"] == 0


@each_convention
def test_the_link_names_a_commit(name):
    convention = CONVENTIONS[name]
    repository, path = convention.file.split(": ")
    assert re.fullmatch("[0-9a-f]{40}", COMMITS[repository])
    assert convention.address == f"https://github.com/{repository}/blob/{COMMITS[repository]}/{path}"
    assert "\n" not in convention.quote


def test_every_commit_is_of_a_repository_that_is_quoted():
    assert COMMITS.keys() == {convention.file.split(": ")[0] for convention in CONVENTIONS.values()}


def test_the_installed_library_has_the_quoted_line():
    lines = inspect.getsource(torch.nn.modules.normalization).splitlines()
    assert any(CONVENTIONS["the machine's eps"].quote in line for line in lines)


def test_the_subtitle_counts_norms_and_choices():
    words = {13: "thirteen", 17: "seventeen"}
    notebook = json.loads((ROOT / "notebooks/09b-the-convention-map.ipynb").read_text("utf-8"))
    subtitle = re.search(r"^\*(.*)\*$", "".join(notebook["cells"][0]["source"]), re.M)[1].lower()
    norms = {convention.function for convention in CONVENTIONS.values()}
    assert f"{words[len(norms)]} norms" in subtitle
    assert f"{words[len(CONVENTIONS)]} choices" in subtitle
