"""Words and markup that the commands and pages share."""

import html
import re


def counted(many: int, noun: str) -> str:
    """A number with its noun: "1 mark", "2 marks"."""
    return f"{many} {noun}{'' if many == 1 else 's'}"


def as_markdown(text: str) -> str:
    """Markdown that shows a text as it is."""
    return re.sub(r"([\\`*_\[\]#$])", r"\\\1", html.escape(text, quote=False))


def as_html(sentence: str) -> str:
    """Our own Markdown as HTML; it has no other marks than those of code."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(sentence))
