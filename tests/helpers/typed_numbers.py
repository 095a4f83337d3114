"""Find numbers that look like results but were typed by hand: in prose, titles, tables and alt texts.

What passes: a number pasted by {val} or marked as chosen by {given}; a sentence with a citation; what others say, in
quotation marks; code; a formula with a letter in it; a bare whole number; the number of a section, a version, a paper;
the wrong options of a quick check, and the right one if a test computes it from the check's `:value:`.
"""

import ast
import re

from markdown_it import MarkdownIt
from mdit_py_plugins.amsmath import amsmath_plugin
from mdit_py_plugins.colon_fence import colon_fence_plugin
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.front_matter import front_matter_plugin
from mdit_py_plugins.myst_role import myst_role_plugin

PARSER = (
    MarkdownIt("commonmark")
    .enable("table")
    .use(front_matter_plugin)
    .use(dollarmath_plugin, double_inline=True)
    .use(amsmath_plugin)
    .use(colon_fence_plugin)
    .use(deflist_plugin)
    .use(myst_role_plugin)
)

WORDS = "two|three|four|five|six|seven|eight|nine|ten|twenty|fifty|a hundred|a thousand|several hundred"
MORE = "as|more|less|fewer|larger|smaller|bigger|higher|lower|faster|slower|longer|shorter|deeper"
RESULT = re.compile(
    r"(?<![\w.])\d+\.\d+(?![\w]*\.\d)"  # 0.71, but not 1.0.4
    r"|\b\d+\s?%|\b\d+ per ?cent"
    r"|\b\d+e[-+]?\d+\b|\b10\s?\^|10[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]"  # 1e-6, 10^5, 10⁻⁵
    r"|\b\d+\s?×(?!\s?\d)|\b\d+x\b|\b\d+(-| )fold\b|\b\d+ times\b"  # 46 times, 3 ×, 1.8x
    rf"|\b(?:{WORDS}) times (?:{MORE})\b|\b(?:twice|thrice|half) as\b|\btwo thirds of\b"
    r"|\b\d+ (?:ns|µs|us|ms|s|seconds?|kB|MB|GB|MiB|GiB|GB/s|TB/s|FLOPs?)\b"
)
NAMED = re.compile(
    r"(?:[Ss]ections?|[Ff]igures?|[Tt]ables?|[Cc]hapters?|[Ee]quations?|PyTorch|torch|NumPy|Python|Jupyter Book|arXiv:|"
    r"version|CC BY(?:-SA)?|Apache|GPT-)\s?$"
)
NUMBER_ONLY = re.compile(r"(?:[-+\d.,\s<>=~%()^{}]|\\(?:approx|sim|pm|times|cdot|le|ge|leq|geq|,|;|%))+")
QUOTED = re.compile(r'"[^"]*"|“[^”]*”')
CITED = "\ue000"
SENTENCE = re.compile(r"(?<=[.!?])[\"”’)*_]*\s+")
# The text of an option, up to its explanation
OPTIONS_WRONG = re.compile(r"^- \[ \] .*?(?=^  - )", flags=re.MULTILINE | re.DOTALL)
OPTIONS_COMPUTED = re.compile(r"^- \[[ x]\] .*?(?=^  - )", flags=re.MULTILINE | re.DOTALL)
# Directives whose body is not prose, or is checked elsewhere
SILENT = {"code", "code-block", "math", "figure", "image", "raw", "toctree", "bibliography", "eval-rst", "claims"}


def found_in(markdown):
    """(line, the typed result, its sentence) for each result in a Markdown text."""
    return list(walk(PARSER.parse(markdown), 0))


def walk(tokens, offset):
    for token in tokens:
        line = offset + (token.map[0] + 1 if token.map else 0)
        if token.type == "inline":
            for match, sentence in results(prose(token.children)):
                yield line, match, sentence
        elif token.type in ("fence", "colon_fence"):
            name, _, title = token.info.strip().removeprefix("{").partition("}")
            if token.info.strip().startswith("{") and name not in SILENT:
                body = re.sub(r"\A(?::[\w-]+:.*\n)+", blank, token.content)
                if name == "quick-check":
                    body = re.sub(OPTIONS_COMPUTED if ":value:" in token.content else OPTIONS_WRONG, blank, body)
                yield from walk(PARSER.parse(title.strip()), line - 1)
                yield from walk(PARSER.parse(body), line)


def blank(part):
    return "\n" * part[0].count("\n")


def prose(tokens):
    """The words of a paragraph, without code, URLs and formulas, and with a mark for each citation."""
    text = ""
    for token in tokens:
        if token.type == "text":
            text += token.content
        elif token.type in ("softbreak", "hardbreak"):
            text += " "
        elif token.type == "math_inline" and NUMBER_ONLY.fullmatch(token.content):
            text += token.content.replace("\\times", "×").replace("\\%", "%").replace("{", "").replace("}", "")
        elif token.type == "myst_role" and token.meta["name"].startswith("cite"):
            text += CITED
        elif token.type == "myst_role" and token.meta["name"] == "claim":
            # the claim's mark comes after the full stop of its sentence
            if "bib:" in token.content:
                text = re.sub(r"([.!?:][\"”’)]*)?\s*$", CITED + r"\1 ", text, count=1)
        else:
            text += "\ue001" if token.type in ("code_inline", "math_inline", "myst_role") else ""
    return text


def results(text):
    for sentence in SENTENCE.split(QUOTED.sub("…", text)):
        for match in RESULT.finditer("" if CITED in sentence else sentence):
            if not NAMED.search(sentence[: match.start()]):
                yield match[0], sentence.replace("\ue001", "…")


def found_in_alt(source):
    """The same for the texts passed to figures.show in a code cell; values in an f-string were measured."""
    for call in ast.walk(ast.parse(source)):
        if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "show":
            for part in call.args[1:]:
                for piece in ast.walk(part):
                    if isinstance(piece, ast.Constant) and isinstance(piece.value, str):
                        for match, sentence in results(piece.value):
                            yield piece.lineno, match, sentence
