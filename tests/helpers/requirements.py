"""The packages that requirement files bring, read off what is installed here."""

import re
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]


def lines(name):
    """The requirements of a file, and of those that it includes."""
    for line in (ROOT / name).read_text("utf-8").splitlines():
        line = line.partition("#")[0].strip()
        if line.startswith("-r "):
            yield from lines(line.removeprefix("-r "))
        elif line and not line.startswith("-c "):
            yield re.sub(r"^-e \.", "subnorm", line)


def packages(*names):
    """Names of the packages that pip installs with these files, less those that only another system needs."""
    found = {}  # the extras of each
    todo = [(Requirement(line), "") for name in names for line in lines(name)]
    while todo:
        one, extra = todo.pop()
        if one.marker and not one.marker.evaluate({"extra": extra}):
            continue
        known = found.setdefault(canonicalize_name(one.name), set())
        for more in {"", *one.extras} - known:
            known.add(more)
            todo += [(Requirement(line), more) for line in metadata.requires(one.name) or ()]
    return set(found)
