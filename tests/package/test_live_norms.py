"""The page computes the same as the package: live.js's two norms against subnorm.numpy."""

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from py_mini_racer import MiniRacer

from subnorm import live
from subnorm.numpy import layer_norm, rms_norm

TOLERANCE = 1e-10  # of the largest output of the token

number = st.floats(-2, 2)
cases = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32 - 1),
        "d": st.integers(2, 64),
        "offset": st.floats(-100, 100),
        "scale": st.floats(-3, 3).map(lambda power: 10**power),
        "gamma": number,
        "beta": number,
        "eps": st.floats(-8, 2).map(lambda power: 10**power),
    }
)


def expected(norm, x, gamma, beta, eps):
    if norm == "layer":
        return layer_norm(x, np.full(len(x), gamma, float), np.full(len(x), beta, float), eps=eps)
    return rms_norm(x, np.full(len(x), gamma, float), eps=eps)


def gap(engine, norm, seed, d, offset, scale, gamma, beta, eps):
    """How far the script's output is from the package's, relative to the largest feature."""
    x = scale * (offset + np.random.default_rng(seed).standard_normal(d))
    arguments = json.dumps([norm, x.tolist(), gamma, beta, eps])
    y = json.loads(engine.eval(f"JSON.stringify(subnormLive.steps(...{arguments}).y)"))
    right = expected(norm, x, gamma, beta, eps)
    return np.abs(y - right).max() / (np.abs(right).max() or 1)


@pytest.mark.parametrize("norm", ["layer", "rms"])
@given(case=cases)
def test_the_page_computes_the_norms_of_the_package(norm, case):
    assert gap(live.renderer(), norm, **case) < TOLERANCE


FAULTS = {
    "eps outside the root": ("1 / Math.sqrt(meanSquare(centred) + eps)", "1 / (Math.sqrt(meanSquare(centred)) + eps)"),
    "variance over d - 1": ("=> v * v))", "=> v * v)) * x.length / (x.length - 1)"),
    "beta forgotten": ('(norm === "layer" ? beta : 0)', "0"),
    "no centring": ('norm === "layer" ? mean(x) : 0', "0"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_another_norm_is_seen(fault):
    right, wrong = FAULTS[fault]
    script = live.SCRIPT.read_text("utf-8")
    assert script.count(right) == 1
    engine = MiniRacer()
    engine.eval(script.replace(right, wrong))
    case = {"seed": 0, "d": 64, "offset": 1.0, "scale": 1.0, "gamma": 1.5, "beta": 0.5, "eps": 1e-5}
    assert gap(live.renderer(), "layer", **case) < TOLERANCE
    assert gap(engine, "layer", **case) > 1e-6


@pytest.fixture
def figure(monkeypatch):
    """The description of a figure of both norms, as a page holds it."""
    published = []
    monkeypatch.setattr(live, "publish_display_data", published.append)
    monkeypatch.delenv("SUBNORM_STORED", raising=False)
    live.norms("both", "One token through both norms", ["layer", "rms"], "Bars of four features.", shift=3)
    return re.search(r'<script type="application/json">(.*?)</script>', published[0]["text/html"])[1]


@pytest.mark.parametrize(
    "dials",
    [
        {},
        {"x1": -14, "x3": 0.5, "shift": -8, "scale": 0.25},
        {"gamma": -1.3, "beta": 0.7, "eps": -8},
        {"scale": 3, "shift": 8, "eps": 2},
    ],
)
def test_the_controls_reach_the_norms(figure, dials):
    controls = {control["name"]: control["start"] for control in json.loads(figure)["controls"]}
    state = {**controls, **dials}
    shown = live.renderer().eval(f"JSON.stringify(subnormLive.picture({figure}, {json.dumps(state)}, 608).numbers)")
    x = state["scale"] * np.array([state[f"x{k}"] for k in (1, 2, 3, 4)], float) + state["shift"]
    eps = 10.0 ** state["eps"]
    for norm, steps in json.loads(shown).items():
        mean = x.mean() if norm == "layer" else 0.0
        package = {
            "mean": mean,
            "centred": x - mean,
            "rstd": 1 / np.sqrt(((x - mean) ** 2).mean() + eps),
            "xhat": expected(norm, x, 1, 0, eps),
            "y": expected(norm, x, state["gamma"], state["beta"], eps),
        }
        assert steps.keys() == package.keys()
        for step, right in package.items():
            np.testing.assert_allclose(steps[step], right, rtol=TOLERANCE, err_msg=step)


def test_the_sentence_says_which_norm_ignores_a_shift(figure):
    layer, rms = live.renderer().eval(f"subnormLive.picture({figure}).say").split("RMSNorm")
    assert "the output has not moved" in layer
    assert "the output has moved by up to" in rms
