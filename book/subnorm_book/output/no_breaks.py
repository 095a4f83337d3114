"""Keep a number on the line of its unit, its factor or its word: 0.8 %, 20 µs, 4096 × 4096, chapter 07."""

import re

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

UNIT = r"(?:%|×|(?:µs|ms|s|GB|MB|kB|KiB|GB/s|nats|px)(?!\w))"
BLANKS = re.compile(rf"(?<=\d) (?={UNIT})|(?<=×) (?=\d)|(?<=[Cc]hapter) (?=\d)|(?<=[Ss]heet) (?=\d)")
AFTER_A_NUMBER = re.compile(rf"^ (?={UNIT})")
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
            before = text
            if kept != text:
                before = nodes.Text(kept)
                text.parent.replace(text, before)


def ancestors(node):
    while node := node.parent:
        yield node


def block(node):
    """What a text is a line of."""
    return next((parent for parent in ancestors(node) if not isinstance(parent, nodes.Inline)), None)


def setup(app):
    app.add_post_transform(KeepTogether)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
