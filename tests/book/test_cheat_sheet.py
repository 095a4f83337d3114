"""The tables of the cheat sheet say what the code and the table of models say."""

import inspect
import json
import re

import torch

import subnorm.numpy as sn
import subnorm.torch as st
from tools import course

TEXT = (course.ROOT / "book/cheat-sheet.md").read_text("utf-8")


def rows(heading):
    """The cells of the table below a heading, without its head and without marks of code and links."""
    table = TEXT.split(f"### {heading}\n")[1].split("\n### ")[0]
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", table.replace("`", ""))
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in re.findall(r"^\|.*\|$", plain, re.M)]
    return found[2:]


def test_published_models_are_those_of_the_table_of_models():
    known = {row["model"]: row for row in json.loads((course.ROOT / "book/models.json").read_text("utf-8"))}
    shown = rows("Published models")
    assert len(shown) >= 8
    for model, *cells in shown:
        assert cells == [known[model][key] for key in ("norm", "placement", "eps", "parameters")], model


def test_which_of_them_have_qk_norm():
    known = {row["model"]: row for row in json.loads((course.ROOT / "book/models.json").read_text("utf-8"))}
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
