"""The page computes the same as the package: live.js's two norms against subnorm.numpy."""

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from py_mini_racer import MiniRacer

from subnorm.numpy import layer_norm, rms_norm
from subnorm_lab import live

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
def outputs(monkeypatch):
    found = []
    monkeypatch.setattr(live, "publish_display_data", found.append)
    monkeypatch.delenv("SUBNORM_STORED", raising=False)
    return found


def description(outputs):
    """The description of the first figure, as a page holds it."""
    return re.search(r'<script type="application/json">(.*?)</script>', outputs[0]["text/html"])[1]


@pytest.fixture
def figure(outputs):
    live.norms("both", "One token through both norms", ["layer", "rms"], "Bars of four features.")
    return description(outputs)


@pytest.fixture
def cloud(outputs):
    points = np.array([0.9, 0.1, 0.5]) + np.random.default_rng(0).standard_normal((50, 3))
    live.cloud("cloud", "Tokens of three features in space", points, "A cloud of fifty points.")
    return description(outputs)


GRIP, LETTERS = 7, 9  # px: of a handle from its middle, and of a digit above its line


def hidden_numbers(engine, figure, width, tight):
    """The numbers of the token that a handle hides, {shift: numbers}, with the features spread over their range."""
    controls = {control["name"]: control["start"] for control in json.loads(figure)["controls"]}
    found = {}
    for shift in np.arange(-8, 8.5, 0.5):
        state = {**controls, "x1": -3.0, "x2": 0.5, "x3": 2.0, "x4": 9.0, "shift": float(shift)}
        svg = engine.eval(f"subnormLive.picture({figure}, {json.dumps(state)}, {width}, {tight}).svg")
        grips = [(float(x), float(y)) for x, y in re.findall(r'class="grip" cx="([-\d.]+)" cy="([-\d.]+)"', svg)]
        numbers = re.findall(r'<text x="([-\d.]+)" y="([-\d.]+)" text-anchor="middle" class="small"[^>]*>([^<]+)<', svg)
        hidden = [
            number
            for x, y, number in numbers[: len(grips)]
            for across, down in grips
            if float(x) == across and down - GRIP < float(y) and float(y) - LETTERS < down + GRIP
        ]
        if hidden:
            found[float(shift)] = hidden
    return found


@pytest.mark.parametrize(("width", "tight"), [(608, 0), (350, 1), (350, 2)])
def test_no_number_of_a_token_is_under_its_handle(figure, width, tight):
    assert hidden_numbers(live.renderer(), figure, width, tight) == {}


def test_a_number_under_its_handle_is_found(figure):
    engine = MiniRacer()
    engine.eval(live.SCRIPT.read_text("utf-8").replace("drag ? bottom + clear : bottom", "bottom"))
    assert hidden_numbers(engine, figure, 608, 0)


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
    shown = live.renderer().eval(
        f"JSON.stringify(subnormLive.picture({figure}, {json.dumps(state)}, 608).numbers.rows)"
    )
    x = state["scale"] * (np.array([state[f"x{k}"] for k in (1, 2, 3, 4)], float) + state["shift"])
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


def test_both_norms_ignore_the_scale_and_only_layer_norm_ignores_a_shift(figure):
    start = {control["name"]: control["start"] for control in json.loads(figure)["controls"]}
    outputs = [
        live.renderer().eval(f"JSON.stringify(subnormLive.picture({figure}, {json.dumps({**start, **dials})}, 608))")
        for dials in ({"shift": 3}, {"shift": 3, "scale": 2})
    ]
    once, twice = (json.loads(output)["numbers"]["rows"] for output in outputs)
    for norm in CHOICES:
        np.testing.assert_allclose(once[norm]["y"], twice[norm]["y"], atol=1e-6)
    layer, rms = json.loads(outputs[0])["say"].split("RMSNorm")
    assert "shift and scale do not change" in layer
    assert "; its output changes by up to" in rms
    assert "output" not in live.renderer().eval(f"subnormLive.picture({figure}).say")  # nothing has been moved yet


@pytest.mark.parametrize(("dials", "beyond"), [({}, 0), ({"scale": 1.5}, 2), ({"x1": -9.0}, 3), ({"shift": 8}, 2)])
def test_a_bar_that_is_longer_than_its_place_is_cut(figure, dials, beyond):
    """At scale 1.5 the fourth feature is 18, in two places for at most 14; without the mean it fits."""
    start = {control["name"]: control["start"] for control in json.loads(figure)["controls"]}
    svg = live.renderer().eval(f"subnormLive.picture({figure}, {json.dumps({**start, **dials})}, 608).svg")
    assert svg.count('class="cut"') == beyond


CHOICES = {"layer": 0, "rms": 1}


def picture(engine, cloud, **state):
    first = {control["name"]: control["start"] for control in json.loads(cloud)["controls"]}
    return json.loads(
        engine.eval(f"JSON.stringify(subnormLive.picture({cloud}, {json.dumps({**first, **state})}, 608))")
    )


def astray(engine, cloud, norm, project, rescale):
    """How far the tokens of the script are from those of the package."""
    tokens = picture(engine, cloud, norm=CHOICES[norm], project=project, rescale=rescale)["numbers"]
    x = np.array(json.loads(cloud)["x"])
    part = project / 100 if norm == "layer" else 0
    flat = x - part * x.mean(axis=-1, keepdims=True)
    end = layer_norm(x, eps=0) if part == 1 else rms_norm(flat, eps=0)
    return np.abs(tokens - (flat + rescale / 100 * (end - flat))).max()


@pytest.mark.parametrize("rescale", [0, 45, 100])
@pytest.mark.parametrize("project", [0, 30, 100])
@pytest.mark.parametrize("norm", CHOICES)
def test_the_points_of_a_cloud_end_where_the_package_puts_them(cloud, norm, project, rescale):
    assert astray(live.renderer(), cloud, norm, project, rescale) < TOLERANCE


CLOUD_FAULTS = {
    "no centring": ('norm === "layer" ? mean(x) : 0', "0"),
    "RMSNorm projects": ("norm === 0 ? project / 100 : 0", "project / 100"),
    "length 1": ('steps("rms", flat, 1, 0, 0)', 'steps("rms", flat, 1, 0, 2 * meanSquare(flat))'),
    "rescales the raw token": ('steps("rms", flat, 1, 0, 0)', 'steps("rms", token, 1, 0, 0)'),
    "half of the way is a quarter": ("(rescale / 100) * (xhat", "(rescale / 100) ** 2 * (xhat"),
}


@pytest.mark.parametrize("fault", CLOUD_FAULTS)
def test_a_point_astray_is_seen(cloud, fault):
    right, wrong = CLOUD_FAULTS[fault]
    script = live.SCRIPT.read_text("utf-8")
    assert script.count(right) == 1
    engine = MiniRacer()
    engine.eval(script.replace(right, wrong))
    states = [("layer", 100, 100), ("layer", 30, 45), ("rms", 100, 100)]
    assert max(astray(engine, cloud, *state) for state in states) > 1e-3


@pytest.mark.parametrize(("turn", "tilt"), [(26, 20), (-140, 60), (0, -34), (90, 90)])
def test_the_circle_is_drawn_through_its_points_from_every_side(cloud, turn, tilt):
    """To 0.2 px. The points keep their order round the circle, which a mirrored view would turn over."""
    svg = picture(live.renderer(), cloud, project=100, rescale=100, turn=turn, tilt=tilt)["svg"]
    look = r'cx="([\d.]+)" cy="([\d.]+)" '
    cx, cy, rx, ry = map(float, re.search(rf'<ellipse {look}rx="([\d.]+)" ry="([\d.]+)" [^>]*dasharray', svg).groups())
    points = np.array(re.findall(rf'<circle class="token" {look}', svg), float) - (cx, cy)
    assert len(points) == 50
    np.testing.assert_allclose(np.hypot(*points.T * [[1], [rx / ry]]), rx, atol=0.2 * rx / ry)
    np.testing.assert_allclose(ry, rx * abs(np.sin(np.radians(tilt))), atol=0.1)


def test_from_above_the_features_follow_each_other_against_the_clock(cloud):
    svg = picture(live.renderer(), cloud, tilt=90)["svg"]
    ends = {
        name: complex(float(x), -float(y))
        for x, y, name in re.findall(r'<text x="([\d.]+)" y="([\d.]+)"[^>]*>x([₁₂₃])<', svg)
    }
    middle = sum(ends.values()) / 3
    for one, other in ("₁₂", "₂₃", "₃₁"):
        assert np.angle((ends[other] - middle) / (ends[one] - middle), deg=True) == pytest.approx(120, abs=1)


SAID = {
    (0, 0, 0): "50 tokens of d = 3 features",
    (0, 40, 0): "40\N{NO-BREAK SPACE}% of each token's mean",
    (0, 100, 0): "in one plane",
    (0, 100, 60): "60\N{NO-BREAK SPACE}% of the way",
    (0, 100, 100): "one circle: LayerNorm keeps d − 2 = 1 of its 3",
    (0, 40, 100): "its mean is still there",
    (1, 100, 0): "RMSNorm has no projection",
    (1, 0, 100): "one sphere: RMSNorm keeps d − 1 = 2 of its 3",
}


@pytest.mark.parametrize("state", SAID)
def test_the_sentence_of_a_cloud_says_where_its_points_are(cloud, state):
    shown = picture(live.renderer(), cloud, **dict(zip(("norm", "project", "rescale"), state, strict=True)))
    assert SAID[state] in shown["say"]
    assert ("plane x₁" in shown["svg"]) == (state[0] == 0)
