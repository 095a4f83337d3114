"""Build the book in a folder, as `jupyter-book build . -W -n --keep-going` does; course.py runs this in .venv.

Every error names its file and line, or its cell and line. For an unreadable file jupyter-book prints a traceback
without the file's name, so we check the files first.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from sphinx_external_toc.parsing import MalformedError, parse_toc_data

CELL = {"markdown": {"source", "metadata"}, "raw": {"source", "metadata"}, "code": {"source", "metadata", "outputs"}}


def unreadable(root: Path) -> Iterator[str]:
    """A fault `path:line: why` for each file that cannot be read."""
    for name in ("_config.yml", "_toc.yml"):
        try:
            text = (root / name).read_text("utf-8")
            settings = yaml.safe_load(text)
            if name == "_toc.yml":
                parse_toc_data(settings)
                yield from missing_pages(root, name, yaml.compose(text))
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            yield f"{name}:{mark.line + 1 if mark else 1}: {error.problem}"
        except MalformedError as error:
            where = re.search(" @ '([^']*)'", str(error))
            yield f"{name}:{line_of(yaml.compose(text), re.findall('[^/]+', where[1]) if where else [])}: {error}"
        except (OSError, ValueError) as error:
            yield f"{name}: {error}"
    for path in sorted((root / "notebooks").rglob("*.ipynb")):
        if ".ipynb_checkpoints" not in path.relative_to(root).parts:
            yield from (path.relative_to(root).as_posix() + fault for fault in notebook_faults(path))


def line_of(node: yaml.Node | None, keys: list[str]) -> int:
    """The line of the entry at `keys` in a YAML file, or of the last key that exists."""
    for key in keys:
        if isinstance(node, yaml.SequenceNode) and key.isdigit():
            node = node.value[int(key)]
        elif isinstance(node, yaml.MappingNode):
            node = next((value for name, value in node.value if name.value == key), node)
    return int(node.start_mark.line) + 1 if node else 1


def missing_pages(root: Path, name: str, node: yaml.Node) -> Iterator[str]:
    """A fault for each missing page in the table of contents."""
    if isinstance(node, yaml.SequenceNode):
        for part in node.value:
            yield from missing_pages(root, name, part)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value in ("root", "file") and isinstance(value, yaml.ScalarNode):
                page = root / value.value
                if not any(page.with_name(page.name + suffix).is_file() for suffix in ("", ".md", ".ipynb", ".rst")):
                    yield f"{name}:{value.start_mark.line + 1}: there is no page {value.value}"
            else:
                yield from missing_pages(root, name, value)


def notebook_faults(path: Path) -> Iterator[str]:
    """The faults of a file that is not a valid notebook: `:line: why`, or `, cell 3: why`."""
    try:
        book = json.loads(path.read_text("utf-8"))
    except json.JSONDecodeError as error:
        yield f":{error.lineno}: this is not a notebook, because it is not JSON: {error.msg}"
        return
    except (OSError, ValueError) as error:
        yield f": {error}"
        return
    cells = book.get("cells") if isinstance(book, dict) else None
    if not isinstance(cells, list):
        yield ": this is not a notebook: it has no list of cells"
        return
    for k, cell in enumerate(cells, 1):
        kind: Any = cell.get("cell_type") if isinstance(cell, dict) else None
        if kind not in CELL:
            yield f", cell {k}: its cell_type is {kind!r}, not one of {', '.join(CELL)}"
        elif missing := sorted(CELL[kind] - cell.keys()):
            yield f", cell {k}: it has no {' and no '.join(missing)}"


class WarningStream:
    """A stream for Sphinx's warnings: shows each once, with a place that a reader can find."""

    def __init__(self, root: Path, stream: Any) -> None:
        self.root, self.stream, self.line, self.printed = f"{root}/", stream, "", set[str]()

    def write(self, text: str) -> int:
        *lines, self.line = (self.line + text).split("\n")
        for line in map(self.locate, lines):
            if line not in self.printed:
                self.printed.add(line)
                print(line, file=self.stream)
        return len(text)

    def flush(self) -> None:
        self.stream.flush()

    def locate(self, line: str) -> str:
        """The line with paths from the root; for a notebook, unpack MyST-NB's line number into cell and line."""
        line = line.replace(self.root, "")
        return re.sub(
            r"^(.*?\.ipynb):(\d{5,})(?=: )",
            lambda found: f"{found[1]}, cell {int(found[2]) // 10000}, line {max(int(found[2]) % 10000 - 1, 1)}",
            line,
        )


def main(root: Path, folder: Path) -> int:
    """Write the pages to folder/html and Sphinx's state beside it; return 1 if anything is wrong."""
    if faults := list(unreadable(root)):
        print(*faults, sep="\n")
        return 1
    from jupyter_book.sphinx import build_sphinx  # type: ignore[import-untyped]
    from sphinx.util.console import nocolor

    nocolor()
    sys.stderr = WarningStream(root, sys.stdout)  # type: ignore[assignment]
    toc = root / "_toc.yml"
    ended = build_sphinx(
        root,
        folder / "html",
        path_config=root / "_config.yml",
        noconfig=True,
        confoverrides={"external_toc_path": toc.as_posix(), "latex_individualpages": False, "nitpicky": True},
        warningiserror=True,
        keep_going=True,
        quiet=True,
    )
    if isinstance(ended, KeyboardInterrupt):
        return 130
    return 0 if ended == 0 else 1


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parents[1], Path(sys.argv[1])))
