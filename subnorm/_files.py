"""Files that are written whole or not at all, and a hash of the code in them."""

import contextlib
import hashlib
import io
import tokenize
from pathlib import Path


def write(path: Path, content: str | bytes) -> None:
    """Replace a file's content at once: an interruption or a full disk leaves the old one. Text is UTF-8."""
    # not the file's name with an ending: that may be as long as a name can be
    part = path.with_name(f".part-{hashlib.sha256(path.name.encode()).hexdigest()[:16]}")
    try:
        part.write_bytes(content.encode() if isinstance(content, str) else content)
        part.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise


def code_digest(path: Path) -> str:
    """A short hash of a Python file's code. Comments, docstrings and empty lines do not count.

    It cuts them out of the text and parses nothing, so every version of Python computes the same hash.
    """
    text = path.read_text("utf-8")
    found = [token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type != tokenize.NL]
    cut = [token for token in found if token.type == tokenize.COMMENT]
    rest = [token for token in found if token.type != tokenize.COMMENT]
    begins = {tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}  # a statement
    for before, token, after in zip([None, *rest], rest, rest[1:], strict=False):
        if token.type == tokenize.STRING and (not before or before.type in begins) and after.type == tokenize.NEWLINE:
            cut.append(token)  # a statement that is only a string
    lines = text.split("\n")
    for token in sorted(cut, key=lambda token: token.start, reverse=True):
        (row, column), (last, end) = token.start, token.end
        lines[row - 1 : last] = [lines[row - 1][:column] + lines[last - 1][end:]]
    code = "\n".join(line.rstrip() for line in lines if line.strip())
    return hashlib.sha256(code.encode()).hexdigest()[:16]
