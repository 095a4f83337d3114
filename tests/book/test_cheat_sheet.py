"""The tables of the cheat sheet say what the code and the table of models say."""

import inspect
import json
import re

import pytest
import torch

import subnorm.numpy as sn
import subnorm.torch as st
from tools import checkout

TEXT = (checkout.ROOT / "book/cheat-sheet.md").read_text("utf-8")


def rows(heading):
    """The cells of the table below a heading, without its head and without marks of code and links."""
    table = TEXT.split(f"### {heading}\n")[1].split("\n### ")[0]
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", table.replace("`", ""))
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in re.findall(r"^\|.*\|$", plain, re.M)]
    return found[2:]


def test_published_models_are_those_of_the_table_of_models():
    known = {row["model"]: row for row in json.loads((checkout.ROOT / "book/models.json").read_text("utf-8"))}
    shown = rows("Published models")
    assert len(shown) >= 8
    for model, *cells in shown:
        assert cells == [known[model][key] for key in ("norm", "placement", "eps", "parameters")], model


def test_which_of_them_have_qk_norm():
    known = {row["model"]: row for row in json.loads((checkout.ROOT / "book/models.json").read_text("utf-8"))}
    have = [model for model, *_ in rows("Published models") if known[model]["qk_norm"].startswith("RMSNorm per head")]
    full = [model for model, *_ in rows("Published models") if "full width" in known[model]["qk_norm"]]
    assert f"{' and '.join(sorted(full + have))} have QK-norm" in TEXT


def test_the_defaults_that_are_installed_here():
    shown = {library: cells for library, *cells in rows("Defaults of libraries")}
    layer, rms = torch.nn.LayerNorm(4), torch.nn.RMSNorm(4)
    names = ", ".join(name for name, _ in layer.named_parameters())
    assert shown["PyTorch"] == [exponent(layer.eps), str(rms.eps), names]
    ours = {exponent(inspect.signature(f).parameters["eps"].default) for f in (sn.layer_norm, sn.rms_norm)}
    ours |= {exponent(f(4).eps) for f in (st.LayerNorm, st.RMSNorm)}
    assert {*shown["this course"][:2]} == ours
    assert shown["this course"][2].split(", ") == [*inspect.signature(sn.layer_norm).parameters][1:3]


def exponent(eps):
    return f"{eps:.0e}".replace("e-0", "e-")


def test_every_library_links_to_a_file_at_a_commit():
    linked = re.findall(
        r"^\| \[(\w+)\]\((\S+)\)", TEXT.split("### Defaults of libraries\n")[1].split("\n### ")[0], re.M
    )
    assert {name for name, _ in linked} >= {"Keras", "Flax", "MLX", "Equinox", "Haiku", "ONNX"}
    for _, address in linked:
        assert re.search(r"/(blob|tree)/[0-9a-f]{40}/", address)


LIBRARIES = {
    "Keras": ("keras", lambda k: (k.layers.LayerNormalization().epsilon, k.layers.RMSNormalization().epsilon)),
    "Flax": ("flax.linen", lambda f: (f.LayerNorm().epsilon, f.RMSNorm().epsilon)),
    "MLX": ("mlx.nn", lambda m: (m.LayerNorm(4).eps, m.RMSNorm(4).eps)),
    "Equinox": ("equinox", lambda e: (e.nn.LayerNorm(4).eps, e.nn.RMSNorm(4).eps)),
    "Haiku": ("haiku", lambda h: tuple(default(norm.__init__, "eps") for norm in (h.LayerNorm, h.RMSNorm))),
    "ONNX": (
        "onnx.defs",
        lambda o: tuple(
            o.get_schema(f"{name}Normalization").attributes["epsilon"].default_value.f for name in ("Layer", "RMS")
        ),
    ),
}


def default(function, name):
    return inspect.signature(function).parameters[name].default


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_defaults_of_a_library_that_may_be_installed(library):
    """The course installs none of them; where they are, their own code is asked."""
    module, found = LIBRARIES[library]
    installed = pytest.importorskip(module, exc_type=ImportError)
    shown = {name: cells for name, *cells in rows("Defaults of libraries")}[library]
    assert [exponent(eps) for eps in found(installed)] == shown[:2]
