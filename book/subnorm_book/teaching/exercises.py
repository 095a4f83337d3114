"""List the exercises from `subnorm_lab.checks.SETS`, so that no page repeats their data.

    ```{exercises} ex01
    ```

lists one sheet, with links to it; without a name it shows the table of all sheets, each of which needs a heading on
that page labelled `sheet-ex01`. The role {exercises}`ex01` gives the number of exercises, with minutes and points. An
unknown name is a warning in every build.
"""

from pathlib import Path

from docutils import nodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective, SphinxRole

from subnorm_lab import checks
from subnorm_lab.checks.collect import NEEDS
from subnorm_lab.checks.exercise import totals

log = logging.getLogger(__name__)


def sheet_lines(name, srcdir):
    """The Markdown lines of one sheet's list."""
    exercises = checks.SETS[name]
    (stem,) = (path.stem for path in Path(srcdir, "notebooks/exercises").glob(f"{name}-*.ipynb"))
    libraries = ["NumPy", *sorted({library for ex in exercises for library in NEEDS.get(ex.way, {}).values()})]
    yield f"{totals(exercises)}. Needs {' and '.join(libraries)}."
    yield f"{{doc}}`Work on the sheet in its page </notebooks/exercises/{stem}>`, where the solutions are folded, or"
    yield f"{{download}}`download the sheet </notebooks/exercises/student/{stem}.ipynb>`."
    yield ""
    yield "| Level | Minutes | Exercise, its chapter, and what you can do then |"
    yield "|---|---|---|"
    for ex in exercises:
        yield f"| {ex.level} | {ex.minutes} | {ex.number} · `{ex.name}`, {chapter_of(ex.chapter)}: {ex.objective} |"


def all_sheets():
    """The Markdown lines of the table of all sheets."""
    yield "| Sheet | Minutes | Points | What, and after which chapters |"
    yield "|---|---|---|---|"
    for name, exercises in checks.SETS.items():
        after = ", ".join(map(chapter_of, sorted({ex.chapter for ex in exercises})))
        yield f"| {{ref}}`sheet-{name}` | {sums(exercises)} | {len(exercises)} exercises, after {after} |"
    everything = [ex for exercises in checks.SETS.values() for ex in exercises]
    yield f"| all | {sums(everything)} | {len(everything)} exercises |"


def sums(exercises):
    return f"{sum(ex.minutes for ex in exercises)} | {sum(ex.level for ex in exercises)}"


def chapter_of(stem):
    return f"{{doc}}`{stem.split('-')[0]} </notebooks/{stem}>`"


def known(name, place):
    """Whether there is such a sheet; warns if not."""
    if name not in checks.SETS:
        there = ", ".join(checks.SETS)
        log.warning("there is no sheet %s; there are %s", name, there, location=place.get_location(), type="exercises")
        place.env.note_reread()
    return name in checks.SETS


class Exercises(SphinxDirective):
    optional_arguments = 1

    def run(self):
        if not self.arguments:
            return self.parse_text_to_nodes("\n".join(all_sheets()))
        name = self.arguments[0]
        return self.parse_text_to_nodes("\n".join(sheet_lines(name, self.env.srcdir))) if known(name, self) else []


class Totals(SphinxRole):
    def run(self):
        text = totals(checks.SETS[self.text]) if known(self.text, self) else self.text
        return [nodes.inline(self.rawtext, text)], []


def setup(app):
    app.add_directive("exercises", Exercises)
    app.add_role("exercises", Totals())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
