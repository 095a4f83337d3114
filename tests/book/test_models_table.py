"""The table of models: the form of its file, and the page that shows it."""

import copy
import json
import re
from collections import Counter

import pytest
from bs4 import BeautifulSoup
from helpers.built import up_to_date
from subnorm_book.evidence.models_table import (
    COLUMNS,
    HERE,
    PLACEMENTS,
    address,
    counted,
    faults,
    measurements,
    origin,
    other_eps,
    read_rows,
    row_cells,
)

from subnorm_lab import diagrams
from tools import checkout, models
from tools.checkout import PAGES


def test_the_search_knows_models_by_names_that_the_table_has():
    script = (checkout.ROOT / "book/_static/search-terms.js").read_text("utf-8")
    names = re.search(r"MODELS = `(.*?)`", script, re.DOTALL)[1].split(",")
    table = " ".join(row["model"] for row in json.loads(checkout.ROOT.joinpath("book/models.json").read_text("utf-8")))
    assert [name for name in names if name.strip() not in re.sub("[-‑]", " ", table.lower())] == []


ROW = {
    "model": "M",
    "norm": "RMSNorm",
    "parameters": "gain",
    "placement": "Pre",
    "placement_note": "",
    "final_norm": "yes",
    "eps": "1e-5",
    "eps_note": "",
    "qk_norm": "no",
    "cast": "",
    "classes": [],
    "sources": [{"repository": "a/b", "path": "c/d.py", "commit": "0123456789"}],
}


def test_the_file_has_its_models_and_some_of_every_placement():
    rows = read_rows()
    assert len(rows) >= 114  # as many as there are: a row that is lost is seen
    assert {row["placement"] for row in rows} == set(PLACEMENTS)
    assert {row["norm"] for row in rows} >= {"LayerNorm", "RMSNorm"}
    assert not any(word in json.dumps(rows) for word in ("UNVERIFIED", "U (", "HF/"))


def test_the_file_is_stored_as_json_writes_it():
    assert HERE.read_text("utf-8") == json.dumps(read_rows(), indent=1, ensure_ascii=False) + "\n"


def test_a_good_row():
    assert list(faults(ROW)) == []
    assert address(ROW["sources"][0]) == "https://github.com/a/b/blob/0123456789/c/d.py"
    spaced = {"repository": "a/b", "path": "c/3 - d.md", "commit": "v1.2"}
    assert list(faults({**ROW, "sources": [spaced]})) == []
    assert address(spaced) == "https://github.com/a/b/blob/v1.2/c/3%20-%20d.md"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"norm": " "}, "norm is empty"),
        ({"qk_norm": ""}, "qk_norm is empty"),
        ({"placement": "Peri"}, "the placement must be one of"),
        ({"eps": "0.00001"}, "eps must be a number such as"),
        ({"sources": []}, "has no source"),
        ({"sources": [{"repository": "a/b", "path": "c", "commit": "main"}]}, "a source is"),
        (
            {"sources": [{"repository": "huggingface/transformers", "path": "c", "commit": "v5.24.0"}]},
            "cites transformers",
        ),
        ({"year": 2024}, "needs the entries"),
    ],
)
def test_a_fault_in_a_row_is_named(change, said):
    assert [fault[: len(said)] for fault in faults({**copy.deepcopy(ROW), **change})] == [said]


def test_a_row_says_whether_it_was_measured_or_read():
    measured = {**ROW, "classes": ["AConfig", "AConfig(gated=True)", "BConfig"]}
    assert origin(ROW) == "read"
    assert origin(measured) == "measured: AConfig, BConfig"
    assert re.match(r"Of 3 rows, 1 are measured: .* The other 2 have no class", counted([ROW, measured, ROW]))


def test_a_model_with_two_rows_is_named(tmp_path):
    path = tmp_path / "models.json"
    path.write_text(json.dumps([ROW, ROW]), "utf-8")
    with pytest.raises(ValueError, match="two rows"):
        read_rows(path)
    path.write_text(json.dumps([{**ROW, "eps": "small"}]), "utf-8")
    with pytest.raises(ValueError, match=r"models.json: M: eps must be"):
        read_rows(path)


def test_the_page_shows_every_row():
    assert up_to_date()
    page = BeautifulSoup((PAGES / "book/models.html").read_text("utf-8"), "html.parser")
    table = page.select_one("table.models")
    assert [head.text.strip() for head in table.select("thead th")] == COLUMNS
    lines = [row.select("td") for row in table.select("tbody tr")]
    shown = [[cell.text.strip().replace("’", "'").replace("\u00a0", " ") for cell in line] for line in lines]
    rows = read_rows()
    assert [texts[0] for texts in shown] == [row["model"] for row in rows]
    measured = measurements()
    for row, texts, line in zip(rows, shown, table.select("tbody tr"), strict=True):
        assert texts[:-1] == row_cells(row, measured)[0]
        kind, _, classes = origin(row).partition(": ")
        assert line.select_one("td:last-child summary").text == kind  # without the colon, while it is closed
        assert texts[-1].startswith(kind + classes)
        assert texts[3].startswith(row["placement"])
        assert row["placement_note"] in texts[3]
        assert [a["href"] for a in line.select("a")] == [address(source) for source in row["sources"]]
        assert "placement-" + row["placement"].lower().replace(" ", "-") in line["class"]


def test_pre_ln_with_rmsnorm_is_the_commonest_pair():
    pairs = Counter((row["placement"], row["norm"]) for row in read_rows())
    (first, most), (_second, next_most) = pairs.most_common(2)
    assert first == ("Pre", "RMSNorm")
    assert most > next_most


def test_the_models_named_in_chapter_07_have_these_placements():
    """The choices of its first figure, the diagram below it, and two sentences."""
    named = {"pre": "Pre", "after_branch": "after the branch", "sandwich": "both sides"}
    placement = {row["model"]: row["placement"] for row in read_rows()}
    for model, place in diagrams.MODELS.items():
        assert placement[model] == named[place]
    assert placement["BERT"] == "Post"
    note = {row["model"]: row["placement_note"] for row in read_rows()}
    assert all("residual streams" in note[model] for model in ("DeepSeek-V4", "Hy4"))
    assert all("attention residuals" in note[model] for model in ("Kimi K3", "Inkling 2"))
    late = [row["model"] for row in read_rows() if "after RoPE" in row["qk_norm"] and "no gain" in row["qk_norm"]]
    assert {"Llama 4", "nanochat"} <= set(late)


# --- what was measured of the classes in transformers

EACH = {row["model"]: row for row in read_rows()}
each_model = pytest.mark.parametrize("model", EACH)


def test_every_class_is_measured_and_no_other():
    assert measurements().keys() == {name for row in read_rows() for name in row["classes"]}


@each_model
def test_a_row_is_what_its_classes_are(model):
    assert list(models.differences(EACH[model], measurements())) == []


@pytest.mark.parametrize(
    ("model", "change", "said"),
    [
        ("Qwen3", {"norm": "LayerNorm"}, "norm: the row has 'LayerNorm', the class 'RMSNorm'"),
        ("Qwen3", {"parameters": "gain 1+w"}, "1+w: the row has True, the class False"),
        ("Gemma 2", {"parameters": "gain"}, "1+w: the row has False, the class True"),
        ("GPT-2", {"parameters": "gain"}, "parameters: the row has 'gain', the class 'gain, bias'"),
        ("ModernBERT", {"parameters": "gain, bias"}, "parameters: the row has 'gain, bias', the class 'gain'"),
        ("Qwen3", {"placement": "parallel"}, "placement: the row has 'parallel', the class 'Pre'"),
        ("OPT", {"placement_note": ""}, "placement: the row has 'Pre', the class 'Post'"),
        ("DeepSeek-V4", {"placement_note": ""}, "placement: the row has 'Pre', the class 'several streams'"),
        ("Qwen3", {"qk_norm": "no"}, "qk_norm: the row has 'no', the class 'RMSNorm per head, before RoPE'"),
        ("Llama 2", {"qk_norm": "RMSNorm per head, before RoPE"}, "QK-norm: the row has True, the class False"),
        ("Qwen3", {"final_norm": "none"}, "final norm: the row has False, the class True"),
        ("BERT", {"final_norm": "yes; norm after the embedding"}, "final norm: the row has True, the class False"),
        ("BERT", {"final_norm": "none"}, "first norm: the row has False, the class True"),
        ("Jamba", {"eps": "1e-5"}, "eps: the row has '1e-5', the class '1e-6'"),
        ("Jamba", {"cast": "library call"}, "cast: the row has 'library call', the class 'gain after the cast'"),
        ("Qwen3", {"cast": "library call"}, "cast: the row has 'library call', the class 'gain after the cast'"),
        ("Qwen3", {"eps": "1e-5"}, "eps: the row has '1e-5', the class '1e-6'"),
    ],
)
def test_a_row_that_says_something_else_is_named(model, change, said):
    assert said in list(models.differences({**EACH[model], **change}, measurements()))


def test_an_eps_that_was_read_in_the_class_alone_says_so():
    port = {**ROW, "classes": ["AConfig"], "sources": [{**ROW["sources"][0], "repository": "huggingface/transformers"}]}
    measured = {"AConfig": {"eps": ["1e-5"], "cast": []}}
    assert row_cells(port, measured)[0][5] == "1e-5 (class default)"
    assert row_cells({**port, "sources": [*port["sources"], *ROW["sources"]]}, measured)[0][5] == "1e-5"


def test_an_eps_and_a_cast_that_differ_are_shown():
    measured = {"AConfig": {"eps": ["1e-6"], "cast": ["gain after the cast"]}, "BConfig": {"eps": ["1e-5"], "cast": []}}
    row = {**ROW, "classes": ["AConfig", "BConfig"], "eps_note": "here", "cast": "library call"}
    assert other_eps(row, measured) == ["transformers' AConfig: 1e-6"]
    assert row_cells(row, measured)[0][5] == "1e-5 (here; transformers' AConfig: 1e-6)"
    assert row_cells(row, measured)[0][7] == "library call (transformers' AConfig: gain after the cast)"


def test_the_record_is_what_the_installed_transformers_has():
    pytest.importorskip("transformers", exc_type=ImportError)
    stored = json.loads(models.RECORD.read_text("utf-8"))
    taken = models.take(stored["classes"])
    if stored["transformers"] != taken["transformers"]:
        pytest.skip("measured in another release")
    assert stored["classes"] == taken["classes"]


def test_minimax_has_the_alpha_of_deepnorm_at_its_depth():
    note = EACH["MiniMax-Text-01"]["placement_note"]
    alpha, layers = float(re.search(r"α = ([\d.]+)", note)[1]), int(re.search(r"(\d+) layers", note)[1])
    assert f"{(2 * layers) ** 0.25:.4f}" == f"{alpha:.4f}"
    assert EACH["MiniMax-Text-01"]["placement"] == "Post"
