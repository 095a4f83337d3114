"""Show the record of the course's own speed, `book/speed.json`, which `python course.py speed` writes.

    ```{speed} build
    ```

shows the table of one measure; `{speed} targets` shows the table of targets, `{speed} machine` a sentence. A missing
measure is reported on the page. An inconsistent record is a warning in every build.
"""

import json
import statistics
from pathlib import Path

from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from subnorm.provenance import is_commit, is_day, made

log = logging.getLogger(__name__)

# The targets for two cores: (measure, row, description, limit in seconds).
TARGETS = [
    ("build", "from nothing", "build the book from nothing", 15),
    ("build", "nothing changed", "build it again, nothing changed", 0.3),
    ("build", "one notebook changed", "build it again, one notebook changed", 5),
    ("import", "subnorm", "`import subnorm`", 0.2),
    ("notebooks", max, "the slowest notebook", 60),
    ("in-page", "chromium: first result", "the first result of Python in a page", 2),
    ("in-page", "chromium: over 10 Mbit/s", "the same over 10 Mbit/s", 10),
    ("in-page", "chromium: next results", "each result after it", 0.1),
    ("tests", "all", "all tests, types and lint", 600),
]
# The import that a package's own time is compared with, because the package needs it.
BESIDE = {"subnorm.numpy": "numpy", "subnorm.torch": "torch"}
# Python in a page: the engines, and the columns of their table.
ENGINES = {"chromium": "Chromium", "firefox": "Firefox", "webkit": "WebKit (Safari's engine)"}
COLUMNS = ["first result", "over 10 Mbit/s", "next results", "after Stop"]
HEAD = {"schema", "machine", "versions", "measures"}
MEASURE = {"date", "commit", "command", "load", "rows"}


def faults(record):
    """The faults of a record, as sentences."""
    if set(record) != HEAD or record["schema"] != 1:
        return [f"a record has the keys {sorted(HEAD)} and schema 1"]
    found = []
    if set(record["machine"]) != {"cpu", "cores", "system"} or not all(record["machine"].values()):
        found.append("machine must say its cpu, cores and system")
    if set(record["versions"]) != {"python", "torch", "numpy", "subnorm", "jupyter-book"}:
        found.append("versions must be those of python, torch, numpy, subnorm and jupyter-book")
    for name, measure in record["measures"].items():
        found += [f"{name}: {fault}" for fault in faults_of(name, measure)]
    return found


def faults_of(name, measure):
    if set(measure) != MEASURE:
        yield f"must have the keys {sorted(MEASURE)}"
        return
    yield from faults_of_origin(measure)
    if measure["command"] != f"python3 course.py speed {name}":
        yield f"{measure['command']!r} does not repeat it"
    if measure["load"] is not None and not measure["load"] >= 0:
        yield f"{measure['load']!r} is not a load"
    if not measure["rows"]:
        yield "has no rows"
    for title, row in measure["rows"].items():
        seconds, cpu = row.get("seconds"), row.get("cpu")
        if not set(row) <= {"seconds", "cpu", "bytes", "version"} or not ("seconds" in row or "bytes" in row):
            yield f"{title}: a row has seconds and cpu, or bytes"
        elif "seconds" in row and not (seconds and all(s > 0 for s in seconds)):
            yield f"{title}: seconds must be positive"
        elif cpu is not None and not (len(cpu) == len(seconds) and all(s >= 0 for s in cpu)):
            yield f"{title}: cpu must be given for every round"
        elif "bytes" in row and not row["bytes"] > 0:
            yield f"{title}: bytes must be positive"


def faults_of_origin(entry):
    """The faults of what every record says of its origin."""
    if not is_day(entry["date"]):
        yield f"{entry['date']!r} is not a day"
    if not is_commit(entry["commit"]):
        yield f"{entry['commit']!r} is not a commit"


def time(seconds):
    """A time to two digits, the precision of timing a whole program."""
    if seconds >= 120:
        return f"{seconds / 60:.1f} min"
    if seconds >= 0.995:
        return f"{seconds:.0f} s" if seconds >= 9.95 else f"{seconds:.1f} s"
    return f"{1000 * seconds:.0f} ms" if seconds >= 0.00995 else f"{1000 * seconds:.1g} ms"


def size(count):
    return f"{count / 1e9:.2f} GB" if count >= 1e8 else f"{count / 1000:.0f} kB"


def middle(row):
    """The median, with the lowest and highest if there are several rounds."""
    seconds = row["seconds"]
    spread = f" ({time(min(seconds))} to {time(max(seconds))})" if len(seconds) > 1 else ""
    return time(statistics.median(seconds)) + spread


# --- the tables: a list of rows, the first one the heading ---


def targets(measures):
    yield ["", "aim", "measured"]
    for name, row, words, limit in TARGETS:
        if name not in measures:
            yield [words, time(limit), "not yet measured"]
            continue
        rows = measures[name]["rows"]
        one = max(rows.values(), key=lambda row: row["seconds"][0]) if row is max else rows[row]
        missed = "" if statistics.median(one["seconds"]) <= limit else ", **missed**"
        yield [words, time(limit), middle(one) + missed]


def pages(measure):
    yield ["page", "bytes on the wire"]
    rows = sorted(measure["rows"].items(), key=lambda row: row[1]["bytes"])
    for words, (name, row) in (("the lightest", rows[0]), ("the heaviest", rows[-1])):
        yield [f"{words}, `{name}`", size(row["bytes"])]
    yield [f"the median of {len(rows)}", size(statistics.median(row["bytes"] for _, row in rows))]


def in_page(measure):
    rows = measure["rows"]
    yield ["", *COLUMNS, "loaded", "memory"]
    for engine, name in ENGINES.items():
        first = rows.get(f"{engine}: first result")
        if not first:
            yield [name, "not on that machine", *[""] * 5]
            continue
        cells = [middle(rows[f"{engine}: {column}"]) for column in COLUMNS]
        memory = rows.get(f"{engine}: memory")
        yield [f"{name} {first['version']}", *cells, megabytes(first), megabytes(memory) if memory else ""]


def megabytes(row):
    return f"{row['bytes'] / 1e6:.1f} MB" if row["bytes"] < 1e7 else f"{row['bytes'] / 1e6:.0f} MB"


def times(measure):
    rows = measure["rows"]
    yield ["", "time", "of a processor"]
    for name, row in rows.items():
        cpu = time(statistics.median(row["cpu"])) if row["cpu"] else ""
        more = f", {size(row['bytes'])} on disk" if "bytes" in row else ""
        if BESIDE.get(name) in rows:
            ratios = [own / other for own, other in zip(row["cpu"] or row["seconds"], alone(rows, name), strict=True)]
            more = f", {statistics.median(ratios):.2f} of `import {BESIDE[name]}`"
        yield [name, middle(row), cpu + more]


def alone(rows, name):
    """The rounds of the import to compare with."""
    beside = rows[BESIDE[name]]
    return beside["cpu"] or beside["seconds"]


class Speed(SphinxDirective):
    required_arguments = 1

    def run(self):
        path = Path(self.env.srcdir, "book", "speed.json")
        self.env.note_dependency(str(path))
        try:
            record = json.loads(path.read_text("utf-8")) if path.exists() else None
            wrong = faults(record) if record else []
        except ValueError as error:
            wrong = [str(error)]
        for fault in wrong:
            log.warning("%s: %s", path.name, fault, location=self.get_location(), type="speed")
            self.env.note_reread()
        return [] if wrong else self.parse_text_to_nodes(self.text(record or {"measures": {}}))

    def text(self, record):
        name, measures = self.arguments[0], record["measures"]
        if name == "targets":
            return table(targets(measures))
        if name == "machine":
            return sentence(record) if measures else "Nothing is measured yet."
        if name not in measures:
            return f"Not yet measured: `python3 course.py speed {name}` does it."
        one = measures[name]
        return table({"pages": pages, "in-page": in_page}.get(name, times)(one)) + (
            f"\n\nMeasured by `{one['command']}`: {made(one, record['versions']['subnorm'])}."
        )


def table(rows):
    head, *body = rows
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *body])


def sentence(record):
    machine, versions = record["machine"], record["versions"]
    return f"{machine['cpu']}, {machine['cores']} cores, {machine['system']}; " + ", ".join(
        f"{name} {version}" for name, version in versions.items()
    )


def setup(app):
    app.add_directive("speed", Speed)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
