"""Keep a number on the line of its unit, its factor, its range or its word: 0.8 %, 20 µs, 4096 × 4096, 1.1 [0.5, 2.1],
chapter 07.

A name with a hyphen or a slash is kept on one line, too: Pre-LN, QK-norm, 1/√N; and in a heading any short word with a
hyphen. Its characters stay as they are, for those who search or copy them.
"""

import re

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

UNIT = r"(?:%|×|(?:µs|ms|s|GB|MB|kB|KiB|GB/s|nats|px)(?!\w))"
NUMBER = r"[-−]?\d[\d.]*"
RANGE = rf"(?<=\d) (?=\[{NUMBER}, {NUMBER}\])|(?<=\d,) (?={NUMBER}\])"
BLANKS = re.compile(rf"(?<=\d) (?={UNIT})|(?<=×) (?=\d)|(?<=[Cc]hapter) (?=\d)|(?<=[Ss]heet) (?=\d)|{RANGE}")
AFTER_A_NUMBER = re.compile(rf"^ (?={UNIT})")
NAMES = r"\b(?:[A-Z]\w*|pre|post|peri)-(?:LN|[Nn]orm)s?\b|\b1/√\w+"
NAME = re.compile(f"({NAMES})")
NAME_IN_A_HEADING = re.compile(rf"({NAMES}|(?<![\w-])(?=[\w-]{{1,14}}(?![\w-]))\w+-\w+)")
AS_IT_IS = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw)


class KeepTogether(SphinxPostTransform):
    default_priority = 900  # when links have their words

    def run(self):
        before = None
        for text in list(self.document.findall(nodes.Text)):
            if any(isinstance(parent, AS_IT_IS) for parent in ancestors(text)):
                before = None
                continue
            kept = BLANKS.sub("\u00a0", text)
            if before is not None and before[-1:].isdigit() and block(before) is block(text):
                kept = AFTER_A_NUMBER.sub("\u00a0", kept)
            parts = whole_names(kept, text.parent)
            before = text
            if kept != text or any(isinstance(part, nodes.inline) for part in parts):
                text.parent.replace(text, parts)
                *_, before = (part for node in parts for part in node.findall(nodes.Text))


def whole_names(words, parent):
    """The words as nodes, of which each name is one that no line breaks."""
    if parent is None or "glued" in parent["classes"]:
        return [nodes.Text(words)]
    parts = (NAME_IN_A_HEADING if isinstance(parent, nodes.title) else NAME).split(words)
    made = [nodes.inline("", part, classes=["glued"]) if n % 2 else nodes.Text(part) for n, part in enumerate(parts)]
    return [node for node in made if node.astext()] or made


def ancestors(node):
    while node := node.parent:
        yield node


def block(node):
    """What a text is a line of."""
    return next((parent for parent in ancestors(node) if not isinstance(parent, nodes.Inline)), None)


def setup(app):
    app.add_post_transform(KeepTogether)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
