"""Files that are written whole or not at all."""

import contextlib
import hashlib
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
