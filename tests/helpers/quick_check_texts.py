"""The quick checks of a page, read from its Markdown. That they are well formed is the extension's to say."""

import re
from dataclasses import dataclass

CHECK = re.compile(r"^:::\{quick-check\} (\S+)\n(?::value: ([^\n]*)\n)?(.*?)^:::$", flags=re.MULTILINE | re.DOTALL)
OPTION = re.compile(r"^- \[([ x])\] (.*?)\n(?=  - )", flags=re.MULTILINE | re.DOTALL)


@dataclass
class Check:
    name: str
    value: str | None
    options: list[tuple[bool, str]]  # (is right, what it says)


def found_in(markdown):
    return [
        Check(name, value or None, [(mark == "x", said) for mark, said in OPTION.findall(body)])
        for name, value, body in CHECK.findall(markdown)
    ]
