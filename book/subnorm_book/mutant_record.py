"""Shows which small faults the tests miss, from `book/mutants.json`, which `python course.py mutants` writes.

    ```{mutants} score
    ```

is the table of all files; `{mutants} survivors` lists each fault that no test noticed when it was tried first, with its
verdict. A survivor without a verdict is a warning in every build, as is a record that does not hold together.
"""

import json
import re
from pathlib import Path

from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from subnorm import _files

from .speed_record import faults_of_origin, table

log = logging.getLogger(__name__)

# What is tried, as patterns of files; the page names those of which there is no record.
TRIED = ["subnorm/numpy/*.py", "subnorm/torch/*.py", "subnorm/checks/*.py", "subnorm/classroom/*.py"]
# Three have no operator to replace, or are a list; what Triton compiles, Python does not run.
NOT_TRIED = {"__init__.py", "shared.py", "kernels.py"}
GOAL = 95  # per cent of the faults that can be noticed

HEAD = {"schema", "files"}
FILE = {"date", "commit", "command", "versions", "code", "tests", "mutants", "tried", "late", "survivors"}
ROW = {"line", "function", "was", "now"}
VERDICTS = {"killed": "noticed since", "equivalent": "cannot be noticed", "open": "still missed"}


def faults(record):
    """What is wrong with a record, as sentences."""
    if set(record) != HEAD or record["schema"] != 1:
        return [f"a record has the keys {sorted(HEAD)} and schema 1"]
    return [f"{name}: {fault}" for name, entry in record["files"].items() for fault in faults_of(entry)]


def faults_of(entry):
    if set(entry) - {"again"} != FILE:
        yield f"must have the keys {sorted(FILE)}"
        return
    for stamp in (entry, entry.get("again", entry)):
        yield from faults_of_origin(stamp)
    if not re.fullmatch(r"python3 course\.py mutants \w+", entry["command"]):
        yield f"{entry['command']!r} does not repeat it"
    if not entry["mutants"] >= entry["tried"] >= len(entry["survivors"]):
        yield "more survivors than mutants, or more tried than there are"
    for row in entry["survivors"]:
        verdicts = [row[key] for key in VERDICTS if key in row]
        if not ROW <= set(row) <= ROW | set(VERDICTS):
            yield f"a survivor has the keys {sorted(ROW)} and a verdict"
        elif len(verdicts) != 1 or not verdicts[0].strip():
            yield f"line {row['line']}: a survivor needs one verdict, {', '.join(VERDICTS)}: {row['now']!r}"


def count(entry, verdict):
    return sum(verdict in row for row in entry["survivors"])


def counts(entries):
    """Tried, noticed at once, and the number of each verdict."""
    tried = sum(entry["tried"] for entry in entries)
    survived = sum(len(entry["survivors"]) for entry in entries)
    return tried, tried - survived, *(sum(count(entry, key) for entry in entries) for key in VERDICTS)


def score_row(name, entries):
    tried, at_once, since, equivalent, missed = counts(entries)
    of = sum(entry["mutants"] for entry in entries)
    share = 100 * (at_once + since) / (tried - equivalent) if tried > equivalent else 100
    sample = f"{tried}" if tried == of else f"{tried} of {of}, a sample"
    low = ", **missed**" if share < GOAL else ""
    return [name, f"{share:.1f} %{low}", sample, *map(str, (at_once, since, equivalent, missed))]


def score(files, root):
    yield ["file", "noticed", "mutants", "at once", "since", "cannot be", "missed"]
    for name, entry in files.items():
        path = root / name
        same = path.exists() and _files.code_digest(path) == entry["code"]
        yield score_row(f"`{name}`" + ("" if same else " (changed since)"), [entry])
    yield score_row("**all**", list(files.values()))


def absent(files, root):
    """The files of which there is no record."""
    found = sorted(path for pattern in TRIED for path in root.glob(pattern) if path.name not in NOT_TRIED)
    return [name for path in found if (name := path.relative_to(root).as_posix()) not in files]


def survivors(files):
    """A list of each file; those that a test notices now are folded."""
    for name, entry in files.items():
        rows = entry["survivors"]
        if rows:
            yield f"**`{name}`**\n"
        yield from (described(row) for row in rows if "killed" not in row)
        if since := [row for row in rows if "killed" in row]:
            yield f"\n```{{admonition}} {len(since)} noticed since\n:class: dropdown"
            yield from map(described, since)
            yield "```"
        yield ""


def described(row):
    """The line as the mutant has it, what was there before, and the verdict."""
    verdict = next(key for key in VERDICTS if key in row)
    # of a test the file and the name, without its parameters: together they are too long for a line
    why = row[verdict] if verdict != "killed" else ": ".join(map(literal, row[verdict].split("[")[0].split("::")))
    where = f"line {row['line']}" + (f" in {literal(row['function'])}" if row["function"] else "")
    return f"- {where}: {change(row['was'], row['now'])}. *{VERDICTS[verdict].capitalize()}*: {why}"


def change(was, now):
    """The new line, and the piece that stood there before."""
    old, new = pieces(was, now)
    if not now:
        return f"without {literal(was)}"
    if not (old and new):
        return f"{literal(now)}, {literal(new)} added" if new else f"{literal(now)}, {literal(old)} removed"
    return f"{literal(now)} with {literal(new)} in place of {literal(old)}"


def pieces(was, now):
    """The words or signs in which two texts differ."""
    old, new = (re.findall(r"[\w.]+|\s+|.", text) for text in (was, now))
    while old and new and old[0] == new[0]:
        del old[0], new[0]
    while old and new and old[-1] == new[-1]:
        del old[-1], new[-1]
    return "".join(old).strip(), "".join(new).strip()


def literal(text):
    """Code in Markdown, whatever is in it."""
    line = " ".join(text.split())
    fence = "`" * (1 + max((len(ticks) for ticks in re.findall("`+", line)), default=0))
    return f"{fence} {line} {fence}" if "`" in line else f"`{line}`"


class Mutants(SphinxDirective):
    required_arguments = 1

    def run(self):
        root = Path(self.env.srcdir)
        path = root / "book" / "mutants.json"
        self.env.note_dependency(str(path))
        try:
            record = json.loads(path.read_text("utf-8")) if path.exists() else {"schema": 1, "files": {}}
            wrong = faults(record)
        except ValueError as error:
            wrong = [str(error)]
        for fault in wrong:
            log.warning("%s: %s", path.name, fault, location=self.get_location(), type="mutants")
            self.env.note_reread()
        return [] if wrong else self.parse_text_to_nodes(self.text(record["files"], root))

    def text(self, files, root):
        if self.arguments[0] == "survivors":
            return "\n".join(survivors(files))
        left = absent(files, root)
        parts = [f"The aim is to notice {GOAL} % of those that can be noticed."]
        parts += [table(score(files, root))] if files else []
        if left:
            parts.append(f"Not tried yet: {', '.join(map(literal, left))}.")
        parts += sorted({made(entry) for entry in files.values()})
        return "\n\n".join(parts)


def made(entry):
    versions = ", ".join(f"{name} {version}" for name, version in entry["versions"].items())
    stamps = [entry] + ([entry["again"]] if "again" in entry else [])
    days = ", its survivors again on ".join(f"{s['date']} at commit {(s['commit'] or 'unknown')[:7]}" for s in stamps)
    return f"`{entry['command']}`, {days}; {versions}."


def setup(app):
    app.add_directive("mutants", Mutants)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
