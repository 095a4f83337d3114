"""Definitions as titles of the links to terms."""

import re

from helpers import small_book

GLOSSARY = (
    "# Terms\n\n```{glossary}\nskip path\n  The way around\n  the branch {cite:p}`he2016deep`, *unchanged*.\n```\n"
)


def titles(folder):
    return re.findall(r'href="glossary.html#term-skip-path" title="([^"]*)"', small_book.html(folder, "a"))


def test_a_link_to_a_term_has_its_definition_without_citations(tmp_path):
    (tmp_path / "refs.bib").write_text(
        "@book{he2016deep, title={T}, author={He, K}, year={2016}, publisher={P}}", "utf-8"
    )
    (tmp_path / "glossary.md").write_text(GLOSSARY + "\n```{bibliography}\n```\n", "utf-8")
    (tmp_path / "a.md").write_text("# A\n\nA {term}`skip path`.\n", "utf-8")  # not the parent of the glossary
    small_book.page(tmp_path, "```{toctree}\nglossary\na\n```")
    small_book.build(tmp_path)
    assert titles(tmp_path) == ["The way around the branch, unchanged."]
    changed = (tmp_path / "glossary.md").read_text("utf-8").replace("around", "past")
    (tmp_path / "glossary.md").write_text(changed, "utf-8")
    small_book.build(tmp_path)
    assert titles(tmp_path) == ["The way past the branch, unchanged."]


def test_a_source_is_described_once_on_a_page(tmp_path):
    (tmp_path / "refs.bib").write_text(
        "@book{he2016deep, title={T}, author={He, K}, year={2016}, publisher={P}, url={https://p.org}, doi={10.1/x}}",
        "utf-8",
    )
    cited = "One {cite:p}`he2016deep`, and again {cite:p}`he2016deep`.\n\n"
    small_book.page(tmp_path, cited + "```{bibliography}\n```\n")
    small_book.build(tmp_path)
    links = re.findall(r'<a class="reference internal" href="#id\d+"( title="K He[^"]*")?', small_book.html(tmp_path))
    assert [bool(title) for title in links] == [True, False]
    assert "doi:10.1/x" in links[0]
    assert "URL" not in links[0]
