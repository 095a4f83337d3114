"""The table of models: the form of its file, and the page that shows it."""

import copy
import json
from collections import Counter

import pytest
from bs4 import BeautifulSoup
from helpers.built import up_to_date
from subnorm_book.models_table import COLUMNS, HERE, PLACEMENTS, address, faults, read

from subnorm import diagrams
from tools.course import PAGES

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
    "sources": [{"repository": "a/b", "path": "c/d.py", "commit": "0123456789"}],
}


def test_the_file_has_at_least_fifty_models_of_every_placement():
    rows = read()
    assert len(rows) >= 50
    assert {row["placement"] for row in rows} == set(PLACEMENTS)
    assert {row["norm"] for row in rows} >= {"LayerNorm", "RMSNorm"}
    assert not any(word in json.dumps(rows) for word in ("UNVERIFIED", "U (", "HF/"))


def test_the_file_is_stored_as_json_writes_it():
    assert HERE.read_text("utf-8") == json.dumps(read(), indent=1, ensure_ascii=False) + "\n"


def test_a_good_row():
    assert list(faults(ROW)) == []
    assert address(ROW["sources"][0]) == "https://github.com/a/b/blob/0123456789/c/d.py"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"norm": " "}, "norm is empty"),
        ({"qk_norm": ""}, "qk_norm is empty"),
        ({"placement": "Peri"}, "the placement must be one of"),
        ({"eps": "0.00001"}, "eps must be a number such as"),
        ({"sources": []}, "has no source"),
        ({"sources": [{"repository": "a/b", "path": "c", "commit": "main"}]}, "a source is"),
        ({"year": 2024}, "needs the entries"),
    ],
)
def test_a_fault_in_a_row_is_named(change, said):
    assert [fault[: len(said)] for fault in faults({**copy.deepcopy(ROW), **change})] == [said]


def test_a_model_with_two_rows_is_named(tmp_path):
    path = tmp_path / "models.json"
    path.write_text(json.dumps([ROW, ROW]), "utf-8")
    with pytest.raises(ValueError, match="two rows"):
        read(path)
    path.write_text(json.dumps([{**ROW, "eps": "small"}]), "utf-8")
    with pytest.raises(ValueError, match=r"models.json: M: eps must be"):
        read(path)


def test_the_page_shows_every_row():
    assert up_to_date()
    page = BeautifulSoup((PAGES / "book/models.html").read_text("utf-8"), "html.parser")
    table = page.select_one("table.models")
    assert [head.text.strip() for head in table.select("thead th")] == COLUMNS
    lines = [row.select("td") for row in table.select("tbody tr")]
    shown = [[cell.text.strip().replace("’", "'") for cell in line] for line in lines]
    rows = read()
    assert [cells[0] for cells in shown] == [row["model"] for row in rows]
    for row, cells, line in zip(rows, shown, table.select("tbody tr"), strict=True):
        assert len(cells) == len(COLUMNS)
        assert cells[3].startswith(row["placement"])
        assert row["placement_note"] in cells[3]
        assert [a["href"] for a in line.select("a")] == [address(source) for source in row["sources"]]
        assert "placement-" + row["placement"].lower().replace(" ", "-") in line["class"]


def test_pre_ln_with_rmsnorm_is_the_commonest_pair():
    pairs = Counter((row["placement"], row["norm"]) for row in read())
    (first, most), (_second, next_most) = pairs.most_common(2)
    assert first == ("Pre", "RMSNorm")
    assert most > next_most


def test_the_models_named_in_chapter_07_have_these_placements():
    """The choices of its first figure, and the diagram below it."""
    named = {"pre": "Pre", "branch": "after the branch", "both": "both sides"}
    placement = {row["model"]: row["placement"] for row in read()}
    for model, place in diagrams.MODELS.items():
        assert placement[model] == named[place]
    assert placement["BERT"] == "Post"
    late = [row["model"] for row in read() if "after RoPE" in row["qk_norm"] and "no gain" in row["qk_norm"]]
    assert {"Llama 4", "nanochat"} <= set(late)
