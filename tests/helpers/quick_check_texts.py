"""Read the quick checks of a page from its Markdown. (The extension reports malformed ones.)"""

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
