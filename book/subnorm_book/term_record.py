"""Show the record of a synthetic term, `book/term.json`, which `python -m tools.term --record` writes.

    ```{synthetic-term}
    ```

is the table of its commands, with the time of each and for each student. An inconsistent record is a warning.
"""

import json
from pathlib import Path

from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from subnorm.provenance import made

from .speed_record import faults_of_origin, sentence, size, table, time

log = logging.getLogger(__name__)

MISSING = "Not yet measured: `python -m tools.term --students 2000 --record` does it."
HEAD = {"schema", "date", "commit", "load", "command", "machine", "versions", "students", "rows"}


def faults(record):
    """The faults of a record, as sentences."""
    if set(record) != HEAD or record["schema"] != 1:
        yield f"a record has the keys {sorted(HEAD)} and schema 1"
        return
    yield from faults_of_origin(record)
    if record["command"] != f"python -m tools.term --students {record['students']} --record":
        yield f"{record['command']!r} does not repeat it"
    for name, row in record["rows"].items():
        if not {"seconds"} <= set(row) <= {"seconds", "bytes"} or not all(value > 0 for value in row.values()):
            yield f"{name}: a row has positive seconds, and may have bytes"


def rows(record):
    yield ["", "time", "for each student", "on disk"]
    for name, row in record["rows"].items():
        each = time(row["seconds"] / record["students"])
        yield [f"`{name}`", time(row["seconds"]), each, size(row["bytes"]) if "bytes" in row else ""]


class SyntheticTerm(SphinxDirective):
    def run(self):
        path = Path(self.env.srcdir, "book", "term.json")
        self.env.note_dependency(str(path))
        if not path.exists():
            return self.parse_text_to_nodes(MISSING)
        try:
            record = json.loads(path.read_text("utf-8"))
            wrong = list(faults(record))
        except ValueError as error:
            wrong = [str(error)]
        for fault in wrong:
            log.warning("%s: %s", path.name, fault, location=self.get_location(), type="synthetic-term")
            self.env.note_reread()
        return [] if wrong else self.parse_text_to_nodes(text(record))


def text(record):
    parts = [f"{record['students']:,} students", sentence(record), f"measured by `{record['command']}`"]
    return f"{table(rows(record))}\n\n{'; '.join(parts)}: {made(record, record['versions']['subnorm'])}."


def setup(app):
    app.add_directive("synthetic-term", SyntheticTerm)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
