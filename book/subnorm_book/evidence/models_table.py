"""The table "What does model X use?": the rows of `models.json`, which readers filter and sort.

`{models}` shows the table, and above it the filter. Notes and sources are folded in their cells. Every row
names the files in which its entries were read, at a commit or a release. To add a model, add a row to the file.
`classes` names its classes in transformers; what `tools/models.py` measured of them is in `measured.json`. A test
compares it with the row, and the table shows an eps or a cast that differs from the authors'.
"""

import json
import re
from html import escape
from pathlib import Path
from urllib.parse import quote

from docutils import nodes
from sphinx.util.docutils import SphinxDirective
from subnorm_book.html_nodes import add_script
from subnorm_book.teaching.row_filter import row_filter

HERE = Path(__file__).parents[2] / "models.json"
MEASURED = HERE.with_name("measured.json")
COLUMNS = ["model", "norm", "gain and bias", "placement", "final norm", "eps", "QK-norm", "cast", "source"]
PLACEMENTS = ["Pre", "Post", "after the branch", "both sides", "parallel", "other"]
NAMES = {"Pre": "Pre-LN", "Post": "Post-LN", "both sides": "Sandwich-LN, sandwich norm, Peri-LN"}
KEYS = {
    *("model", "norm", "parameters", "placement", "placement_note", "final_norm", "eps", "eps_note", "qk_norm", "cast"),
    *("classes", "sources"),
}


def read_rows(path=HERE):
    """The rows, each checked."""
    rows = json.loads(Path(path).read_text("utf-8"))
    for row in rows:
        for fault in faults(row):
            raise ValueError(f"{Path(path).name}: {row.get('model', row)}: {fault}")
    if len({row["model"] for row in rows}) < len(rows):
        raise ValueError(f"{Path(path).name}: a model has two rows")
    return rows


def faults(row):
    """What is wrong with a row."""
    if row.keys() != KEYS:
        yield f"needs the entries {sorted(KEYS)}; got {sorted(row)}"
        return
    for key in KEYS - {"placement_note", "eps_note", "cast", "classes", "sources"}:
        if not row[key].strip():
            yield f"{key} is empty"
    if row["placement"] not in PLACEMENTS:
        yield f"the placement must be one of {PLACEMENTS}; got {row['placement']!r}"
    if not re.fullmatch(r"\d(\.\d+)?e-\d+|library default|none", row["eps"]):
        yield f"eps must be a number such as 1e-5, 'library default' or 'none'; got {row['eps']!r}"
    if not row["classes"] and any(source["repository"] == "huggingface/transformers" for source in row["sources"]):
        yield "cites transformers, and names no class"
    if not row["sources"]:
        yield "has no source"
    for source in row["sources"]:
        if source.keys() != {"repository", "path", "commit"} or not PLACE.fullmatch(source["commit"]):
            yield f"a source is a repository, a path and a commit or release; got {source}"


#: a commit, or a release such as v5.24.0
PLACE = re.compile(r"[0-9a-f]{8,40}|v\d+(\.\d+)+")


def address(source):
    """The page of a file at its commit."""
    return f"https://github.com/{source['repository']}/blob/{source['commit']}/{quote(source['path'])}"


def measurements():
    """What was measured of each class of transformers."""
    return json.loads(MEASURED.read_text("utf-8"))["classes"]


def origin(row):
    """Whether a row was measured, and in which classes, or only read."""
    classes = dict.fromkeys(name.partition("(")[0] for name in row["classes"])
    return f"measured: {', '.join(classes)}" if classes else "read"


def counted(rows):
    """How many rows were measured, and how many only read."""
    release = json.loads(MEASURED.read_text("utf-8"))["transformers"]
    number = sum(bool(row["classes"]) for row in rows)
    return (
        f"Of {len(rows)} rows, {number} are measured: we built their class in transformers {release} with small random "
        f"weights and ran its norms. The other {len(rows) - number} have no class there: we read their code."
    )


def only_the_class(row):
    """Whether a row's eps was read nowhere but in its classes in transformers."""
    return {source["repository"] for source in row["sources"]} == {"huggingface/transformers"}


def other_eps(row, measured):
    """The eps of the row's classes in transformers, where it is another."""
    return [
        f"transformers' {name}: {' and '.join(measured[name]['eps'])}"
        for name in row["classes"]
        if measured[name]["eps"] != [row["eps"]]
    ]


def other_cast(row, measured):
    """The order of gain and cast in the row's classes in transformers, where the row says something else."""
    return [
        f"transformers' {name}: {order}"
        for name in row["classes"]
        for order in measured[name]["cast"]
        if order.startswith("gain") and order not in row["cast"]
    ]


def row_cells(row, measured):
    """The texts of a row, and the links of its last cell."""
    placement = noted(row["placement"], [row["placement_note"]])
    eps = noted(row["eps"], [row["eps_note"], "class default" * only_the_class(row), *other_eps(row, measured)])
    cast = "; ".join([row["cast"] or "–", *other_cast(row, measured)])
    parameters, final, qk = brief(row["parameters"]), brief(row["final_norm"], "[;:,] "), brief(row["qk_norm"], "[;,] ")
    return [row["model"], row["norm"], parameters, placement, final, eps, qk, brief(cast)], row["sources"]


def brief(text, end="; "):
    """A text whose first words end so, and the rest as its note."""
    first, *rest = re.split(end, text, maxsplit=1)
    return noted(first, rest)


def noted(text, notes):
    said = "; ".join(note for note in notes if note)
    return f"{text} ({said})" if said else text


class Models(SphinxDirective):
    def run(self):
        self.env.note_dependency(str(HERE))
        self.env.note_dependency(str(MEASURED))
        measured = measurements()
        table = nodes.table("", classes=["models"])
        group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in COLUMNS), cols=len(COLUMNS))
        group += nodes.thead("", line([nodes.Text(name)] for name in COLUMNS))
        group += nodes.tbody("", *(self.row(row, measured) for row in read_rows()))
        table += group
        choices = row_filter("table.models tbody tr", "models", menus=MENUS)
        return [nodes.paragraph("", counted(read_rows())), choices, table]

    def row(self, row, measured):
        texts, sources = row_cells(row, measured)
        kind, _, classes = origin(row).partition(": ")
        links = [nodes.Text(f"{classes} ")]
        for source in sources:
            name = source["path"].rpartition("/")[2]
            links += [nodes.reference("", name, refuri=address(source)), nodes.Text(" ")]
        made = line([*([nodes.Text(text)] for text in texts), links[:-1]])
        made["classes"] += kinds(row)
        fold_cell(made[-1], kind)
        for column, text in enumerate(texts[2:], 2):
            word, _, note = text.partition(" (")
            if note:
                made[column] = nodes.entry("", nodes.paragraph("", "", nodes.Text(f"({note}")))
                fold_cell(made[column], f"{word} ")
        return made


def fold_cell(entry, label):
    """Fold a cell behind its first words, so that a row is as low as those of its other cells."""
    entry.insert(0, nodes.raw("", f"<details><summary>{escape(label)}</summary>", format="html"))
    entry += nodes.raw("", "</details>", format="html")


def line(parts):
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", *part)) for part in parts))


def css(placement):
    """The class of the rows of a placement."""
    return "placement-" + placement.lower().replace(" ", "-")


#: The choices above the table: the class of the rows, the word, and the names that a reader may type for it
MENUS = {
    "norm": [("LayerNorm", "LayerNorm", ""), ("RMSNorm", "RMSNorm", "")],
    "placement": [(css(name), name, NAMES.get(name, "")) for name in PLACEMENTS],
    "QK-norm": [("has-qk-norm", "yes", "QK-norm yes"), ("no-qk-norm", "no", "")],
    "bias": [("has-bias", "yes", ""), ("no-bias", "no", "")],
}


def kinds(row):
    """The classes of a row, for the choices: both where some of its models have QK-norm, or a bias, and others not."""
    qk, parameters = row["qk_norm"], row["parameters"]
    off = qk.startswith(("no", "option"))
    has = {
        row["norm"].replace(" ", "-"): True,
        css(row["placement"]): True,
        "has-qk-norm": not off,
        "no-qk-norm": (off and qk != "no attention") or ": no" in qk,
        "has-bias": "bias" in parameters,
        "no-bias": "bias" not in parameters or "optional" in parameters,
    }
    return [kind for kind, it_has in has.items() if it_has]


def has_models(doctree):
    return any("models" in table["classes"] for table in doctree.findall(nodes.table))


def setup(app):
    app.add_directive("models", Models)
    add_script(app, "models.js", has_models)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
