"""How long a part of a page takes to read: 200 words take a minute, and so do 20 lines of code.

Words are those that a reader sees on a first reading: not what is folded, nor the sections in APART.
"""

import math

from docutils import nodes
from subnorm_book.evidence.checked_cells import is_folded

APART = ("Quick checks", "Exercises", "Further reading")
WORDS, LINES = 200, 20  # in a minute
NO_PROSE = nodes.math_block | nodes.Invisible | nodes.raw | nodes.literal_block | nodes.image


def minutes(*parts):
    words, lines = words_and_lines(*parts)
    return math.ceil(words / WORDS + lines / LINES)


def words_and_lines(*parts):
    """Words of prose, and visible lines of code."""
    each = [count_one(part) for part in parts]
    return sum(words for words, _ in each), sum(lines for _, lines in each)


def count_one(node):
    if isinstance(node, nodes.section) and (node[0].astext() in APART or "second-reading" in node["classes"]):
        return 0, 0
    if isinstance(node, nodes.container) and node.get("nb_element") == "cell_code_source":
        source = node.astext().splitlines()
        return 0, 0 if is_folded(node.parent) else sum(bool(line.strip()) for line in source)
    if isinstance(node, NO_PROSE):
        return 0, 0
    if isinstance(node, nodes.Text):
        return len(node.astext().split()), 0
    return words_and_lines(*node.children)
