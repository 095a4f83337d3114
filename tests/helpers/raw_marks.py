"""Marks of a notebook's Markdown that a reader should never see: they look for them in what a page shows."""

import re

from bs4 import BeautifulSoup, Comment

MATH = re.compile(r"\$\$[\s\S]*?\$\$|\$[^$\n]+\$")
RAW = re.compile(
    r"\{[\w:.-]+\}`"  # a role
    r"|:{3,}|\{[.#][\w-]+"  # a directive, and a class
    r"|\(eq-[\w-]+\)|^\([\w-]+\)="  # the name of an equation or a place
    r"|<!--|</?(?:details|summary)\b",  # a comment, and a fold
    re.MULTILINE,
)


def raw_marks(html: str) -> list[str]:
    """The marks in the text of a page, each with some text around it; code and formulas may have any."""
    page = BeautifulSoup(html, "html.parser")
    marks = [f"a listing of the language {name}" for name in re.findall(r'class="[^"]*(\{[\w-]+\})', html)]
    marks += [f"a formula that MathJax refuses: {fault['title']}" for fault in page.select("mjx-merror")]
    for comment in page.find_all(string=lambda text: isinstance(text, Comment)):
        comment.extract()
    for hidden in page.select("pre, mjx-container, style, script"):
        hidden.decompose()
    for code in page.select("code"):
        code.replace_with("``")
    text = MATH.sub("$$", page.get_text())
    return marks + [" ".join(text[max(0, mark.start() - 30) : mark.end() + 30].split()) for mark in RAW.finditer(text)]
