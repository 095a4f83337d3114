"""Fold what a first reading leaves out: a section whose heading has the class `second-reading`.

    {.second-reading}
    ## Where the law breaks

The heading stays, and the contents of the page mark it; what is below it is folded behind the minutes that it takes and
its gist: the paragraph that begins with "In short", or the sentence of its first claim that can stand alone. With the
class `symptom`, too, it is folded behind "Cause and fix", and begins with its text; the cell before that, which shows
the fault, comes after it on the page. subnorm.js opens it for a link to it, or into it. Paper has those that are open;
the menu of the page can print all.
"""

import re
from itertools import takewhile

from docutils import nodes
from subnorm_book import AFTER_THE_THEME
from subnorm_book.evidence import claims
from subnorm_book.teaching import reading_time

CLASS = "second-reading"
IN_SHORT = re.compile(r"In short[:,] ")
WORDS = 6  # a sentence of fewer says too little alone, and so does one that points back
POINTS_BACK = re.compile(
    r"(And|Below|Both|But|Each|Here|Its?|Left|Only|Outside|So|That|Then|There|These|They|This|Those)\b"
)


class second_reading(nodes.General, nodes.Element):
    """The folded part of a section; the first child is its label."""


class fold_label(nodes.General, nodes.TextElement):
    """The label of a folded section: what shows of it while it is closed."""


def count(app, doctree):
    """As the page is read: later, a cell no longer says that it is folded."""
    for section in doctree.findall(nodes.section):
        if CLASS in section["classes"] and "symptom" not in section["classes"]:
            section["minutes"] = reading_time.minutes(*section[1:])


def fold(app, doctree, docname):
    """When the page is written: what collects a page's sections must see them first."""
    for section in list(doctree.findall(nodes.section)):
        if CLASS in section["classes"]:
            title, *rest = section.children
            if "symptom" in section["classes"]:
                label = fold_label("", "Cause and fix")
                rest = text_first(rest)
            else:
                label = fold_label("", f"Second reading, {section['minutes']} min", *gist(section))
                mark_contents(app.env.tocs[docname], section["ids"])
            section.children = [title]
            section += second_reading("", label, *rest)


def fold_answers(app, doctree, docname):
    """Below each question of a page that filters its questions (row_filter.py)."""
    if docname in app.env.question_pages:
        for section in list(doctree.findall(nodes.section)):
            if isinstance(section.parent.parent, nodes.section):
                title, *answer = section.children
                section["classes"].append("question")
                section.children = [title]
                section += second_reading("", fold_label("", "", nodes.inline("", "Answer")), *answer)


def text_first(parts):
    """The cause and the fix in words; then the cells that come before them in the notebook, and those after them."""
    before = list(takewhile(is_cell, parts))
    text = list(takewhile(lambda part: not is_cell(part), parts[len(before) :]))
    after = parts[len(before) + len(text) :]
    if not (before and text):
        return parts
    return [*text, shows("See it happen"), *before, *([shows("With the fix")] if after else []), *after]


def is_cell(node):
    return isinstance(node, nodes.container) and "cell" in node["classes"]


def shows(words):
    return nodes.paragraph("", "", nodes.strong("", words), classes=["shows"])


def gist(section):
    """What the label says of a section, without links: a label has none."""
    said = in_short(section) or next((one for one in claimed(section) if stands_alone(one)), [])
    whole = nodes.inline("", "", *said, classes=["gist"])
    for link in list(whole.findall(nodes.reference)):
        link.replace_self(link.children)
    return [whole] if said else []


def in_short(section):
    for paragraph in section.findall(nodes.paragraph):
        if found := IN_SHORT.match(paragraph.astext()):
            first, *more = claims.copies(takewhile(lambda part: not claims.is_mark(part), paragraph.children))
            rest = first[found.end() :]
            return [nodes.Text(rest[:1].upper() + rest[1:]), *more]
    return []


def claimed(section):
    """The sentences of the claims outside tables."""
    for found in section.findall(claims.is_mark):
        if claims.closest(found, nodes.row) is None:
            yield claims.sentence(found)


def stands_alone(sentence):
    text = "".join(part.astext() for part in sentence)
    return len(text.split()) > WORDS and text[0].isupper() and not POINTS_BACK.match(text)


def mark_contents(contents, ids):
    for link in contents.findall(nodes.reference):
        if link["anchorname"].removeprefix("#") in ids:
            entry = claims.closest(link, nodes.list_item)
            entry["classes"] = sorted({*entry["classes"], CLASS})


def offer_all(app, pagename, templatename, context, doctree):
    """Two ways to print a page with second readings, in the menu of the theme."""
    classes = [section["classes"] for section in doctree.findall(nodes.section)] if doctree else []
    if not any(CLASS in names and "symptom" not in names for names in classes):
        return
    for menu in context.get("header_buttons", []):  # another theme has none
        for button in menu.get("buttons", []):
            if button.get("javascript") == "window.print()":
                whole = button | {
                    "javascript": "document.documentElement.classList.add('print-all'); window.print()",
                    "text": ".pdf, all",
                    "tooltip": "Print with all second readings",
                }
                menu["buttons"].append(whole)
                button |= {"text": ".pdf, first reading", "tooltip": "Print the first reading and what is open"}
                return


def visit(self, node):
    self.body.append("<details>")


def depart(self, node):
    self.body.append("</details>\n")


def visit_label(self, node):
    self.body.append("<summary>")


def depart_label(self, node):
    self.body.append("</summary>\n")


def setup(app):
    app.add_node(second_reading, html=(visit, depart))
    app.add_node(fold_label, html=(visit_label, depart_label))
    app.connect("doctree-read", count)
    app.connect("doctree-resolved", fold)
    app.connect("doctree-resolved", fold_answers)
    app.connect("html-page-context", offer_all, priority=AFTER_THE_THEME)
    return {"env_version": 1, "parallel_read_safe": True, "parallel_write_safe": True}
