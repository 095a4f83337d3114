"""The ledger of claims: the sentences that the book asserts, with the evidence for each.

A claim has an id at the end of its sentence: {claim}`03-ignores-shift`. Its evidence is

- code cells tagged `claim:03-ignores-shift`, which must assert something, they or the functions that they call;
- the items after the id in the role: `test:tests/package/test_norms.py::test_name`, `bib:ba2016layer`, `claim:02-sum`
  for another claim, or `record:subnorm_lab/experiments/records/warmup.json`.

A record is a stored measurement: a JSON file with an entry "command" that repeats it. A pattern, such as
`record:subnorm/timing/records/cpu-*.json`, names the newest of several. A cell that asserts something about stored
values does not measure them, so its claims must name the record; `records` finds these cells from their code.
If such a cell also compares the record with a new run, tag it `spot-check`: then it counts as a measurement too.

The directive {claims} counts and lists all claims. A claim without evidence, missing evidence and a repeated id are
warnings in every build.
"""

import ast
import re
from functools import cache
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import docname_join, logging
from sphinx.util.docutils import SphinxDirective, SphinxRole
from subnorm_book import BEFORE_LINKS, page_data
from subnorm_book.evidence import chapter_code
from subnorm_book.evidence.records import Stored, newest
from subnorm_book.html_nodes import without_citations
from subnorm_book.notebook_text import authors_of
from subnorm_book.teaching.row_filter import row_filter

log = logging.getLogger(__name__)

TAG = "claim:"
NAME = re.compile(r"[0-9a-z]+(-[0-9a-z]+)+")
SPOT_CHECK = "spot-check"
SAME = {"reading": "record"}  # a cell that reads a record counts as the record
KINDS = {"cell": "computed", "record": "recorded", "test": "tested", "bib": "cited"}
SENTENCE_END = re.compile(r"[.?!][\"”’)]*\s+(?=\S)")


class claim(nodes.Inline, nodes.TextElement):
    """The mark after the sentence of a claim."""


class ledger(nodes.General, nodes.Element):
    """A placeholder for the list of all claims."""


class ClaimRole(SphinxRole):
    def run(self):
        name, *rests = self.text.split() or [""]
        node = claim(name=name, rests=rests, ids=[f"claim-{name}"])
        self.set_source_info(node)
        return [node], []


class Claims(SphinxDirective):
    def run(self):
        return [ledger()]


# Reading: each page stores its claims, and the claims that its cells support, in the environment


def collect(app, doctree):
    env = app.env
    env.claims[env.docname] = [
        {"name": node["name"], "rests": node["rests"], "line": node.line, "sentence": sentence(node)}
        for node in doctree.findall(claim)
    ]
    code = chapter_code.of_page(env)
    stored = Stored(code)
    env.claim_cells[env.docname] = [
        row
        for cell in doctree.findall(nodes.container)
        if cell.get("nb_element") == "cell_code"
        for row in supported_claims(cell, stored, code)
    ]


def supported_claims(cell, stored, code):
    """For each claim of a cell: its name, an anchor for links, whether the cell asserts something about stored values
    and about new ones, and the fault that disqualifies it, if any."""
    tags = cell["cell_metadata"].get("tags", [])
    names = [tag.removeprefix(TAG) for tag in tags if tag.startswith(TAG)]
    source = next((block.astext() for block in cell.findall(nodes.literal_block)), "")
    reads = any(stored.cell(source))  # of every cell: it follows values from one cell to the next
    if not names:
        return
    anchor = f"cell-{cell['cell_index']}"
    cell["ids"].append(anchor)
    fault = None
    if not re.search(r"^\s*assert\b", code.expanded(source), flags=re.MULTILINE):
        fault = "rests on a cell that asserts nothing"
    if "nbval-ignore-output" in tags:
        fault = "rests on a cell whose output is not compared"
    if SPOT_CHECK in tags and not reads:
        fault = f"rests on a cell tagged {SPOT_CHECK} that reads no record"
    measures = not reads or SPOT_CHECK in tags
    for name in names:
        yield {"name": name, "anchor": anchor, "reads": reads, "measures": measures, "fault": fault}


def sentence(node):
    """Copies of the nodes of a claim: a table row, a whole list item, or the last sentence before the mark."""
    row = closest(node, nodes.row)
    if row is not None:
        return row_as_text(row)
    before = node.parent.children[: node.parent.index(node)]
    in_list = isinstance(node.parent.parent, nodes.list_item)
    said = []
    for part in reversed(before):
        if not said and (is_mark(part) or not part.astext().strip()):
            continue  # another mark of the same sentence
        if is_mark(part):
            break
        if isinstance(part, nodes.Text) and not in_list:
            ends = [end.end() for end in SENTENCE_END.finditer(part if said else part.rstrip())]
            if ends:
                said.insert(0, nodes.Text(part[ends[-1] :]))
                break
        said.insert(0, part)
    said = copies(said)
    if said and isinstance(said[0], nodes.Text):
        said[0] = nodes.Text(said[0].lstrip())
    if said and isinstance(said[-1], nodes.Text):
        said[-1] = nodes.Text(said[-1].rstrip())
    return said


def is_mark(node):
    """Whether a node is the mark of a claim, also on a page that is being written."""
    return isinstance(node, claim) or (isinstance(node, nodes.superscript) and "claim" in node["classes"])


def row_as_text(row):
    """A row's cells without the marks, each after its column's heading."""
    headings = [cell.astext() for head in row.parent.parent.findall(nodes.thead) for cell in head[0]]
    said = []
    for heading, cell in zip(headings, row, strict=True):
        said += [nodes.Text(" · ")] if said else []
        said += [nodes.Text(f"{heading}: ")] if said and heading else []
        said += copies([part for block in cell for part in (block.children or [block]) if not is_mark(part)])
        if isinstance(said[-1], nodes.Text):
            said[-1] = nodes.Text(said[-1].rstrip())  # the space before a mark
    return said


#: Stands for a claim that no page makes, of which the build warns
NOTHING: dict = {"supports": [], "sentence": []}


def quoted(claimed):
    """The sentence of a claim as a text; nothing if it has a formula that is no text, but TeX."""
    said = nodes.inline("", "", *copies(claimed["sentence"]))
    tex = any(re.search(r"[\\{}_^]", formula.astext()) for formula in said.findall(nodes.math))
    return f"“{without_citations(said)}”" if len(said) and not tex else ""


def closest(node, kind):
    while node is not None and not isinstance(node, kind):
        node = node.parent
    return node


def copies(found):
    """Copies of the nodes without ids, because an id may occur only once on a page."""
    result = []
    for node in found:
        copy = node.deepcopy() if isinstance(node, nodes.Element) else nodes.Text(node.astext())
        if isinstance(copy, nodes.Element):
            for element in copy.findall(nodes.Element):
                element["ids"] = []
        result.append(copy)
    return result


# Checking: in every build, even if no page was read


def resolve(app, env):
    """Every claim by id, with its place and its evidence; and all faults."""
    known, faults = {}, []
    for doc, rows in env.claims.items():
        for row in rows:
            name, where = row["name"], (doc, row["line"])
            if not NAME.fullmatch(name):
                faults.append((where, f"claim {name!r} is not an id; write it like 03-unit-norm"))
            elif name in known:
                faults.append((where, f"claim {name} is stated twice; the other one is on {known[name]['doc']}"))
            else:
                known[name] = row | {"doc": doc, "supports": []}
    for doc, cells in env.claim_cells.items():
        for cell in cells:
            if cell["name"] not in known:
                faults.append(((doc, None), f"claim {cell['name']} is supported by a cell, but no page states it"))
            elif cell["fault"]:
                faults.append(((doc, None), f"claim {cell['name']} {cell['fault']}"))
            else:
                place_of_cell = f"{doc}#{cell['anchor']}"
                kinds_of_cell = [("reading", cell["reads"]), ("cell", cell["measures"])]
                known[cell["name"]]["supports"] += [(kind, place_of_cell) for kind, is_so in kinds_of_cell if is_so]
    for row in known.values():
        for pointer in row["rests"]:
            kind, _, target = pointer.partition(":")
            if not exists(app, known, kind, target):
                faults.append((place(row), f"claim {row['name']} rests on {pointer}, which does not exist"))
            elif kind == "record":
                row["records"] = row.get("records", {}) | {target: newest(app.srcdir, target)}
                if not row["records"][target][1]:
                    faults.append((place(row), f"claim {row['name']} rests on {pointer}, which has no command"))
            row["supports"].append((kind, target))
        has = {kind for kind, _ in row["supports"]}
        if "record" in has and "reading" not in has:
            faults.append((place(row), f"claim {row['name']} names a record, but no cell asserts anything about it"))
        if "reading" in has and "record" not in has:
            faults.append((place(row), f"claim {row['name']} rests on a stored measurement; name it with record:…"))
        if not row["supports"]:
            faults.append((place(row), f"claim {row['name']} has no support"))
    for row in known.values():
        if row["supports"] and not kinds(known, row["name"]):
            faults.append((place(row), f"claim {row['name']} rests only on claims that rest on it"))
    return known, faults


def place(row):
    return row["doc"], row["line"]


def exists(app, known, kind, target):
    if kind == "test":
        path, _, function = target.partition("::")
        return function in tests_in(Path(app.srcdir, path))
    if kind == "bib":
        files = [Path(app.srcdir, name) for name in app.config.bibtex_bibfiles]
        return any(re.search(rf"^@\w+\{{{re.escape(target)},", file.read_text("utf-8"), re.MULTILINE) for file in files)
    if kind == "record":
        return newest(app.srcdir, target) is not None
    return kind == "claim" and target in known


@cache
def tests_in(path):
    if not path.is_file():
        return set()
    tree = ast.parse(path.read_text("utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def kinds(known, name, seen=frozenset()):
    """The kinds of evidence for a claim, through other claims if it rests on them."""
    if name in seen or name not in known:
        return set()
    return {
        last
        for kind, target in known[name]["supports"]
        for last in (kinds(known, target, seen | {name}) if kind == "claim" else {SAME.get(kind, kind)})
    }


def check(app, env):
    tests_in.cache_clear()
    env.known_claims, faults = resolve(app, env)
    for where, message in faults:
        log.warning("%s", message, location=where, type="claims")
    before, env.claim_looks = env.claim_looks, {doc: linked_parts(env, doc) for doc in env.claims}
    return [doc for doc, now in env.claim_looks.items() if doc in env.ledgers or now != before.get(doc)]


def linked_parts(env, doc):
    """The parts of a page that depend on other pages: what its marks say, and the pages of the claims it checks."""
    marks = [
        (
            sorted(kinds(env.known_claims, row["name"])),
            env.known_claims.get(row["name"], {}).get("supports"),
            [quoted(env.known_claims[other]) for other in claims_below(env, row["name"])],
        )
        for row in env.claims[doc]
    ]
    homes = [env.known_claims.get(cell["name"], {}).get("doc") for cell in env.claim_cells[doc]]
    return marks, homes


def claims_below(env, name):
    """The claims that one rests on."""
    supports = env.known_claims.get(name, {}).get("supports", [])
    return [target for kind, target in supports if kind == "claim" and target in env.known_claims]


def remember(app, doctree):
    if next(doctree.findall(ledger), None):
        app.env.ledgers[app.env.docname] = True


# Writing


def stick(node):
    """Put a mark after the comma or full stop that follows it. Returns the blank before it, on which no line ends.

    The blank is a part of the mark, which paper does not show.
    """
    parent, place = node.parent, node.parent.index(node)
    before, after = (parent[at] if 0 <= at < len(parent) else None for at in (place - 1, place + 1))
    if isinstance(before, nodes.Text) and before[-1:].isspace():
        words = before.astext().rstrip()
        stop = re.match(r"[.,;:?!]*", after)[0] if words and isinstance(after, nodes.Text) else ""
        parent[place - 1] = nodes.Text(f"{words}{stop}")
        if stop:
            parent[place + 1] = nodes.Text(after[len(stop) :])
        return "\u00a0"
    return ""


class Fill(SphinxPostTransform):
    default_priority = BEFORE_LINKS

    def run(self):
        for node in list(self.document.findall(claim)):
            glue = stick(node)
            node.replace_self(self.mark(node["name"], glue))
        for cell in self.document.findall(nodes.container):
            if cell.get("nb_element") == "cell_code":
                self.name_claims(cell)
        for node in list(self.document.findall(ledger)):
            node.replace_self(list(self.pages()))

    def mark(self, name, glue):
        """A ✓ that links to the ledger: the style sheet draws it, and hover-cards.js shows its title as a card."""
        link = self.link(self.home(), f"row-{name}", "", reftitle=self.card(name))
        link += nodes.inline("", self.words(name), classes=["kinds"])
        return nodes.superscript("", "", nodes.Text(glue), link, ids=[f"claim-{name}"], classes=["claim"])

    def card(self, name):
        """In words: the sentence, and what it rests on, each on a line of the card."""
        known = self.env.known_claims
        claimed = known.get(name, NOTHING)
        lines = [("Claimed: " if kinds(known, name) == {"bib"} else "Checked: ") + (quoted(claimed) or "this sentence")]
        for kind, target in claimed["supports"]:
            if kind == "claim":
                line = f"rests on another claim, {self.words(target)}: {quoted(known.get(target, NOTHING)) or target}"
            elif kind == "bib":
                line = f"cited: {self.source(target)}"
            else:
                line = "".join(part.astext() for part in self.rest(kind, target, claimed))
            lines.append(line[:1].upper() + line[1:])
        return " · ".join(lines)

    def source(self, key):
        """The authors and the year of a source, as the text cites it."""
        entry = next((one.entry for one in self.env.get_domain("cite").citations if one.key == key), None)
        if not entry or "author" not in entry.persons:
            return key
        return f"{authors_of(entry)} ({entry.fields['year']})"

    def words(self, name):
        found = kinds(self.env.known_claims, name)
        return ", ".join(word for kind, word in KINDS.items() if kind in found) or "claim"

    def home(self):
        return next(iter(self.env.ledgers), self.env.docname)

    def link(self, doc, anchor, text, **attributes):
        to = self.app.builder.get_relative_uri(self.env.docname, doc) if doc != self.env.docname else ""
        return nodes.reference("", text, internal=True, refuri=f"{to}#{anchor}", **attributes)

    def name_claims(self, cell):
        """Add a line below a supporting cell with the claims that it checks."""
        names = [t.removeprefix(TAG) for t in cell["cell_metadata"].get("tags", []) if t.startswith(TAG)]
        known = [name for name in names if name in self.env.known_claims]
        if known:
            line = nodes.paragraph("", "checks ", classes=["supports"])
            for i, name in enumerate(known):
                line += nodes.Text(", ") if i else nodes.Text("")
                line += self.link(self.env.known_claims[name]["doc"], f"claim-{name}", name)
            cell += line

    def pages(self):
        """The ledger: the number of claims of each kind, then the claims of each page, in the order of the book."""
        yield nodes.paragraph("", self.count(), classes=["count"])
        yield row_filter("ul.ledger > li", "claims", {word: word for word in KINDS.values()})
        for doc in in_order(self.env, self.config.root_doc):
            rows = [self.row(name) for name, row in self.env.known_claims.items() if row["doc"] == doc]
            if rows:
                yield nodes.rubric("", self.env.titles[doc].astext())
                yield nodes.bullet_list("", *rows, classes=["ledger"])

    def count(self):
        claims = self.env.known_claims
        each = [kinds(claims, name) for name in claims]
        of_kind = ", ".join(f"{sum(kind in one for one in each)} {word}" for kind, word in KINDS.items())
        several = sum(len(one) > 1 for one in each)
        return f"{len(claims)} claims: {of_kind}; {several} of them in more than one way."

    def row(self, name):
        claimed = self.env.known_claims[name]
        said = nodes.paragraph("", "", *copies(claimed["sentence"]))
        for link in said.findall(addnodes.pending_xref):
            if link["reftype"] == "doc":
                link["reftarget"] = "/" + docname_join(claimed["doc"], link["reftarget"])
            link["refdoc"] = self.env.docname  # resolve links from this page, not from the claim's page
        line = nodes.paragraph("", "", classes=["supports"])
        line += self.link(claimed["doc"], f"claim-{name}", name)
        for kind, target in claimed["supports"]:
            line += nodes.Text(" · ")
            line += self.rest(kind, target, claimed)
        return nodes.list_item("", said, line, ids=[f"row-{name}"], classes=self.words(name).split(", "))

    def rest(self, kind, target, claimed):
        if kind in ("cell", "reading"):
            page, _, anchor = target.partition("#")
            verb = "computed" if kind == "cell" else "read"
            return [nodes.Text(f"{verb} by "), self.link(page, anchor, f"a cell of {Path(page).name}")]
        if kind == "record":
            path, command = claimed.get("records", {}).get(target, (Path(target), ""))
            said = nodes.Text("recorded in "), nodes.literal("", path.name)
            return [*said, nodes.Text(", measured again by "), nodes.literal("", command)]
        if kind == "claim":
            return [nodes.Text("rests on "), self.link(self.home(), f"row-{target}", target)]
        if kind == "test":
            return [nodes.Text("tested by "), nodes.literal("", target.partition("tests/")[2])]
        cite = addnodes.pending_xref("", nodes.inline("", target), refdomain="cite", reftype="t", reftarget=target)
        cite["refdoc"] = self.env.docname
        return [nodes.Text("cited: "), cite]


def in_order(env, doc):
    yield doc
    for child in env.toctree_includes.get(doc, []):
        yield from in_order(env, child)


def start(app, env, docnames):
    for name in ("known_claims", "claim_looks"):  # of all pages together, recomputed in every build
        if not hasattr(env, name):
            setattr(env, name, {})


def setup(app):
    app.add_node(claim)
    app.add_node(ledger)
    app.add_role("claim", ClaimRole())
    app.add_directive("claims", Claims)
    app.add_post_transform(Fill)
    page_data.by_page(app, "claims", "claim_cells", "ledgers")
    app.connect("env-before-read-docs", start)
    app.connect("doctree-read", collect)
    app.connect("doctree-read", remember)
    app.connect("env-updated", check)
    return {"env_version": 5, "parallel_read_safe": True, "parallel_write_safe": True}
