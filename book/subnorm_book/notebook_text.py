"""Read the plain Markdown of a notebook: the forms that JupyterLab, VS Code and GitHub show as they are.

A notebook holds no role and no directive. Sphinx hands its text to `read` (event `source-read`), which puts the book's
roles and directives in place of these forms:

    7.8 × 10⁻¹³<!-- 02:plain_gradient -->      a number that notebook 02 said; a test fails when it says another
    32<!-- chosen -->                          a number that was chosen, not measured
    <!-- claim: 02-sum bib:he2016deep -->      a claim of the sentence before it, and what it rests on
    *at 2*<!-- gain: f=2 -->                   a phrase that sets the figure `gain`
    token<!-- term: token -->                  a term of the glossary, where the word alone would not tell
    ([He et al., 2016](https://…))             a citation: the address of an entry in the bibliography
    [He et al. (2016)](https://…)              the same in a sentence
    (2.3)<!-- eq-variance -->                  the number of an equation
    8 exercises, …<!-- exercises: ex01 -->     the totals of a sheet

    <!-- eq-variance -->                       the name of an equation,
    $$ … \\tag{2.3} $$                          and its number: of the notebook, and within it

    <!-- second-reading -->                    folds the section of the heading below it
    <!-- symptoms -->                          the filter of the page of symptoms

    > **Often said**                           a box
    >
    > "Depth is everything."

    > **Predict** <!-- after-24-blocks -->      a prediction: with options and an answer that says why, with a measured
    >                                          number as the answer, or with neither, before a sketch
    > What is left of the token?
    >
    > 1. About as much as went in.
    > 2. Next to nothing.
    >
    > <details><summary>Answer</summary>Option 2. The size halves in each block.</details>

    > **Quick check** <!-- ignores-bias -->     the same, with a sentence on every option; `value: 2 * 3` after the name
    >                                          recomputes the right one
    > Is LayerNorm without a bias RMSNorm?
    >
    > 1. Yes.
    > 2. No.
    >
    > <details><summary>Answer</summary>
    >
    > 1. Having no bias is common to both now.
    > 2. **Right.** It still subtracts the mean.
    >
    > </details>

    <details><summary>Solution</summary>       a fold
    …
    </details>

The first use of each term of the glossary becomes a link by itself.

A paragraph right above a cell tagged `turn:depth` says what to change in it, and what to watch:

    **Try:** set `depth` to 128. Which of the two gradients is left?

The page has it only where the cell has a button, tagged `try-it`, too.
"""

import json
import re
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType

import pybtex.database
from docutils import nodes
from sphinx.util import logging

from subnorm_book import page_data
from subnorm_book.evidence import values
from subnorm_lab import figures
from subnorm_lab.checks import SETS
from subnorm_lab.checks.exercise import totals

log = logging.getLogger(__name__)

ROOT = Path(__file__).parents[2]

NUMBER = r"[+−-]?\d[\d.,]*(?:e[+-]?\d+)?(?:\u00a0×\u00a010)?[⁻⁰¹²³⁴-⁹]*"
CODE = re.compile(r"^( *)(`{3,}|~{3,})[\s\S]*?^\1\2 *$|(`+)(?!`)[\s\S]+?(?<!`)\3(?!`)", re.MULTILINE)
MEASURED = re.compile(rf"({NUMBER})<!-- (\d\d[a-z]?:\w+) -->")
CHOSEN = re.compile(rf"({NUMBER})<!-- chosen -->")
CLAIM = re.compile(r" *<!-- claim: ([^>]*?) -->")
PHRASE = re.compile(r"\*([^*]+)\*<!-- ([\w-]+: [^>]*?) -->")
TERM = re.compile(r"([\w-]+)<!-- term: ([^>]+?) -->")
REFERENCE = re.compile(r"\((\w+\.\d+)\)<!-- (eq-[\w-]+) -->")
LINK = r"\[([^][]+)\]\((https?:[^()\s]+)\)"
SECTION = re.compile(r"\]\(((?!https?:)[^()\s#]*)#([^()\s]+)\)")
CITATIONS = re.compile(rf"(\({LINK}(?:; {LINK})*\))|{LINK}")
DATED, SPOKEN = re.compile(r", \d{4}$"), re.compile(r" \(\d{4}\)$")
TOTALS = re.compile(r"(\d+ exercises, \d+ minutes, \d+ points)<!-- exercises: (\w+) -->")
MACRO = re.compile(r"\\(?:LN|E)(?![A-Za-z])")  # those of _config.yml
COMMENT = re.compile(r"<!-- .*? -->")
EQUATION = re.compile(r"( *)<!-- (eq-[\w-]+) -->")
TAG = re.compile(r" *\\tag\{([\w.]+)\}")
SECOND_READING = re.compile(r"<!-- (second-reading[\w -]*) -->")
TITLE = re.compile(r"\*\*([^*]+)\*\*(?: <!-- (.*) -->)?")
FOLD = re.compile(r"( *)<details><summary>(.*?)</summary>(.*)")
ITEM = re.compile(r"(\d+)\. +(.*)")
CLASSES = {"Often said": "warning", "Predict": "predict"}
RIGHT = "**Right.** "
TURN = re.compile(r"(?:^|\n\n)\*\*Try:\*\* (?:(?!\n\n)[\s\S])*\Z")

# Terms are looked up in prose: not in headings, formulas, code, roles, titles of boxes, the box of objectives,
# addresses, quotations and comments, the generated line of an exercise, or the options of a quick check, which are
# labels.
NOT_PROSE = re.compile(
    r"^(:{3,})\{admonition\} This .*$[\s\S]*?^\1$"
    r"|^#+ .*$|^ *:{3,}.*$|^ *:\w+:.*$"
    r"|^```(?:python|text|\{(?:code|raw|math|figure|toctree|bibliography|claims))[\s\S]*?^```"
    r"|^`{3,}.*$|^Level \d · .*$|^- \[[ x]\] .*$"
    r"|\$\$[\s\S]*?\$\$|\$[^$\n]+\$|\{[\w:-]+\}`[^`]*`|`[^`]+`|\[[^][]*\]\([^)]*\)|\"[^\"]*\"|<!--[\s\S]*?-->",
    flags=re.MULTILINE,
)
NAMED = re.compile(r"\{term\}`(?:[^`<]*<)?([^`<>]+)>?`")
# Also everyday words: only a reader can tell whether a use is the term
AMBIGUOUS = {"gain", "shift", "token", "placement", "eps"}


@dataclass(frozen=True)
class Citation:
    """How an entry of the bibliography is cited."""

    key: str
    authors: str
    year: str

    @property
    def textual(self):
        return f"{self.authors} ({self.year})"

    @property
    def parenthetical(self):
        return f"{self.authors}, {self.year}"


class Reader:
    """Turns the Markdown of one notebook into the book's; collects `faults`, sentences about what is wrong.

    Args:
        numbers: maps "02" to the numbers {name: text} that notebook 02 says.
        citations: maps the address of a paper to its `Citation`.
        terms: names of the glossary.
    """

    def __init__(self, numbers, citations, terms):
        self.numbers, self.citations, self.terms = numbers, citations, terms
        self.faults = []
        self.tags = {}  # {label: number} of the notebook's equations
        self.references = []  # (number, label) of equations of any notebook

    def text(self, markdown):
        """One cell, or one Markdown output, without the links to the glossary."""
        kept = []

        def keep(code):
            kept.append(code[0])
            return f"\0{len(kept) - 1}\0"

        masked = CODE.sub(keep, markdown)
        read = self.inline("\n".join(self.blocks(masked.split("\n"))))
        for macro in MACRO.findall(masked):
            self.faults.append(f"{macro} is a macro of the book, which a notebook does not know: write it out")
        for left in COMMENT.findall(read):
            self.faults.append(f"{left} is no form of a notebook; see notebook_text.py")
        return re.sub("\0(\\d+)\0", lambda place: kept[int(place[1])], read)

    # Blocks

    def blocks(self, lines):
        k = 0
        while k < len(lines):
            line = lines[k]
            if line.startswith(">"):
                end = next((j for j in range(k, len(lines)) if not lines[j].startswith(">")), len(lines))
                yield from self.quotation([re.sub("^> ?", "", quoted) for quoted in lines[k:end]])
                k = end
            elif EQUATION.fullmatch(line) and lines[k + 1 : k + 2] and lines[k + 1].strip() == "$$":
                end = next((j for j in range(k + 2, len(lines)) if lines[j].strip() == "$$"), len(lines) - 1)
                yield from self.equation(EQUATION.fullmatch(line)[2], lines[k + 1 : end + 1])
                k = end + 1
            elif FOLD.fullmatch(line):
                end = self.end_of_fold(lines, k)
                yield from self.fold(lines[k : end + 1])
                k = end + 1
            elif SECOND_READING.fullmatch(line):
                yield "{" + " ".join(f".{name}" for name in SECOND_READING.fullmatch(line)[1].split()) + "}"
                k += 1
            elif line == "<!-- symptoms -->":
                yield from ("```{symptoms}", "```")
                k += 1
            else:
                yield line
                k += 1

    def equation(self, label, lines):
        body = "\n".join(lines)
        tag = TAG.search(body)
        if tag and label not in self.tags and "\\end" not in body[tag.end() :]:
            self.tags[label] = tag[1]
        else:
            self.faults.append(f"equation {label} has no \\tag{{…}} at its end, or is written twice")
        yield from TAG.sub("", body).split("\n")[:-1]
        yield f"{lines[-1]} ({label})"

    def end_of_fold(self, lines, start):
        depth = 0
        for k in range(start, len(lines)):
            depth += lines[k].count("<details>") - lines[k].count("</details>")
            if depth == 0:
                return k
        self.faults.append(f"{lines[start].strip()} is never closed by </details>")
        return len(lines) - 1

    def fold(self, lines):
        indent, title, first = FOLD.fullmatch(lines[0]).groups()
        inside = [first, *lines[1:]] if first else lines[1:]
        inside[-1] = inside[-1].replace("</details>", "")
        body = [line.removeprefix(indent) for line in inside]
        # in a list, as an admonition would be, it takes too much room
        head = [f"{{dropdown}} {title}"] if indent else [f"{{admonition}} {title}", ":class: dropdown"]
        yield from (f"{indent}{line}".rstrip() for line in directive(head, self.blocks(trimmed(body))))

    def quotation(self, lines):
        head = TITLE.fullmatch(lines[0])
        if not head:
            yield from (f"> {line}".rstrip() for line in self.blocks(lines))
            return
        title, name = head.groups()
        body = trimmed(lines[1:])
        if name and title == "Predict":
            yield from directive(*self.predict(name, body))
        elif name and title == "Quick check":
            yield from directive(*self.quick_check(name, body))
        else:
            options = [f":class: {CLASSES[title]}"] if title in CLASSES else []
            yield from directive([f"{{admonition}} {title}", *options], self.blocks(body))

    def predict(self, name, lines):
        body, answer = self.answer(lines)
        question, options = numbered(body)
        if answer is None:
            return [f"{{predict}} {name}", ":curve:"], ["", *self.blocks(body)]
        said = MEASURED.search("\n".join(answer))
        if said and not options:
            unit = [":percent:"] if said.string[said.end() :].strip() == "%" else []
            return [f"{{predict}} {name}", f":number: {said[2]}", *unit], ["", *self.blocks(body)]
        right = re.fullmatch(r"Option (\d+)\.\s+(.+)", "\n".join(answer), re.DOTALL)
        if not (right and 1 <= int(right[1]) <= len(options)):
            self.faults.append(f"the answer to predict {name} must be an option and the reason, as in 'Option 2. Why.'")
            return [f"{{predict}} {name}"], ["", *body]
        items = [listed(f"- [{' x'[k + 1 == int(right[1])]}] ", option) for k, option in enumerate(options)]
        return [f"{{predict}} {name}"], ["", *question, "", *(line for item in items for line in item), "", right[2]]

    def quick_check(self, head, lines):
        name, _, value = head.partition(" value: ")
        body, answer = self.answer(lines)
        question, options = numbered(body)
        _, reasons = numbered(answer or [])
        if len(options) != len(reasons):
            self.faults.append(f"quick check {name} has {len(options)} options and {len(reasons)} answers to them")
        items = []
        for option, reason in zip(options, reasons, strict=False):
            right = reason[0].startswith(RIGHT)
            items += listed(f"- [{' x'[right]}] ", option)
            items += listed("  - ", [reason[0].removeprefix(RIGHT), *reason[1:]])
        settings = [f":value: {value}"] if value else []
        return [f"{{quick-check}} {name}", *settings], ["", *self.blocks(question), "", *items]

    def answer(self, lines):
        """The lines before the fold *Answer*, and its lines; None without one."""
        start = next((k for k, line in enumerate(lines) if line.startswith("<details><summary>Answer</summary>")), None)
        if start is None:
            return lines, None
        inside = "\n".join(lines[start:]).removeprefix("<details><summary>Answer</summary>")
        return trimmed(lines[:start]), trimmed(inside.replace("</details>", "").split("\n"))

    # Words

    def inline(self, text):
        text = MEASURED.sub(self.measured, text)
        text = CHOSEN.sub(r"{given}`\1`", text)
        text = CLAIM.sub(r" {claim}`\1`", text)
        text = PHRASE.sub(r"{set}`\1 <\2>`", text)
        text = TERM.sub(lambda found: term_link(found[1], found[2]), text)
        text = REFERENCE.sub(self.reference, text)
        text = TOTALS.sub(self.totals, text)
        text = SECTION.sub(lambda found: f"]({found[1]}#{slug(found[2])})", text)
        return CITATIONS.sub(self.cited, text)

    def measured(self, found):
        number, _, name = found[2].partition(":")
        said = self.numbers(number).get(name)
        if said is None:
            self.faults.append(f"no notebook says {found[2]}")
        elif said != found[1]:
            self.faults.append(f"the text says {found[1]} for {found[2]}, its cell {said}: run `course.py refresh`")
        return f"{{val}}`{found[2]}`"

    def renewed(self, markdown):
        """The text with the numbers that the notebooks say now; one that none says stays, and the build names it."""

        def new(found):
            number, _, name = found[2].partition(":")
            return f"{self.numbers(number).get(name, found[1])}<!-- {found[2]} -->"

        return MEASURED.sub(new, markdown)

    def reference(self, found):
        self.references.append((found[1], found[2]))
        return f"{{eq}}`{found[2]}`"

    def totals(self, found):
        now = totals(SETS[found[2]])
        if now != found[1]:
            self.faults.append(f"the text says {found[1]} of {found[2]}; it has {now}")
        return f"{{exercises}}`{found[2]}`"

    def cited(self, found):
        links = re.findall(r"\[([^][]+)\]\(([^()\s]+)\)", found[0])
        if found[1] and all(DATED.search(text) for text, _ in links):
            return f"{{cite:p}}`{','.join(self.key(*link) for link in links)}`"
        return re.sub(LINK, lambda link: self.one_cited(*link.groups()), found[0])

    def one_cited(self, text, address):
        if DATED.search(text):
            return f"{{cite:alp}}`{self.key(text, address)}`"
        if SPOKEN.search(text):
            return f"{{cite:t}}`{self.key(text, address)}`"
        return f"[{text}]({address})"

    def key(self, text, address):
        entry = self.citations.get(address)
        if not entry:
            self.faults.append(f"[{text}]({address}) cites a paper that the bibliography has not: add its entry")
            return ""
        if text not in (entry.textual, entry.parenthetical):
            self.faults.append(f"the bibliography calls {address} {entry.parenthetical!r}, the notebook {text!r}")
        return entry.key

    # Terms

    def link_terms(self, texts):
        """The texts of a page with the first use of each term, unless it is linked by hand, as a link."""
        if not texts:
            return []
        whole = "\n\n\0\n\n".join(texts)
        for name, start, end in sorted(first_uses(whole, self.terms), key=lambda use: -use[1]):
            whole = whole[:start] + term_link(whole[start:end], name) + whole[end:]
        return whole.split("\n\n\0\n\n")


def trimmed(lines):
    """The lines without empty ones at the ends."""
    full = [k for k, line in enumerate(lines) if line.strip()]
    return lines[full[0] : full[-1] + 1] if full else []


def directive(head, body):
    """The lines of a directive, with a fence longer than those inside."""
    body = list(body)
    longest = max((len(fence) for line in body for fence in re.findall(r"^\s*(:{3,})", line)), default=2)
    fence = ":" * (longest + 1)
    return [fence + head[0], *head[1:], *body, fence]


def numbered(lines):
    """The lines before a numbered list, and its items, each a list of lines."""
    start = next((k for k, line in enumerate(lines) if line.startswith("1. ")), len(lines))
    items = []
    for line in lines[start:]:
        item = ITEM.fullmatch(line)
        if item:
            items.append([item[2]])
        elif line.strip():
            items[-1].append(line.strip())
    return trimmed(lines[:start]), items


def listed(mark, item):
    """An item of a list, its lines below one another."""
    indent = " " * (len(mark) - len(mark.lstrip()) + 2)
    return [mark + item[0], *(indent + line for line in item[1:])]


def slug(section):
    """The name that a section has on a page, from the one that JupyterLab gives it: 'What-eps-does' and its like."""
    return re.sub(r"[^\w-]", "", section.lower())


def term_link(words, name):
    return f"{{term}}`{words}`" if words == name else f"{{term}}`{words} <{name}>`"


def first_uses(text, names):
    """(term, start, end) of the first use of each term that has no link by hand."""
    words = NOT_PROSE.sub(lambda part: re.sub(r"[^\n]", " ", part[0]), text)
    linked = set(NAMED.findall(text))
    for name in names:
        if name in AMBIGUOUS or name in linked:
            continue
        longer = [use_of(other) for other in names if name != other and name.lower() in other.lower()]
        inside = [match.span() for other in longer for match in other.finditer(words)]
        for use in use_of(name).finditer(words):
            if not any(start <= use.start() and use.end() <= end for start, end in inside):
                yield name, *use.span()
                break


@cache
def use_of(term):
    """A regular expression for the term in a sentence: capitalised, in the plural, or across a line break."""
    words = re.escape(term).replace(r"\ ", r"\s+")
    return re.compile(rf"(?<![\w-]){words}s?(?![\w-])", re.IGNORECASE)


def glossary_terms(page):
    """The terms of the glossary page."""
    body = page.split("```{glossary}\n")[1].split("\n```")[0]
    return re.findall(r"^(\S.*)$", body, flags=re.MULTILINE)


@cache  # of the text: every notebook asks, and parsing takes longer than reading one
def bibliography(*texts):
    """Maps the address of each entry to its `Citation`, read-only."""
    found = {}
    for text in texts:
        for key, entry in pybtex.database.parse_string(text, "bibtex").entries.items():
            address = entry.fields.get("url") or f"https://doi.org/{entry.fields.get('doi', key)}"
            found[address] = Citation(key, authors_of(entry), entry.fields["year"])
    return MappingProxyType(found)


def authors_of(entry):
    """The authors of an entry of the bibliography, as a sentence cites them."""
    names = [" ".join(map(str, p.rich_prelast_names + p.rich_last_names)) for p in entry.persons["author"]]
    return " and ".join(names) if len(names) < 3 else f"{names[0]} et al."


# Sphinx


def replace_source(app, docname, source):
    """Put the book's Markdown in place of a notebook's: its cells, and the Markdown that they printed."""
    if Path(app.env.doc2path(docname)).suffix != ".ipynb":
        return
    reader = reader_of(app.srcdir, app.config.bibtex_bibfiles, lambda path: app.env.note_dependency(str(path)))
    notebook = json.loads(source[0])
    read_cells(notebook, reader)
    app.env.equation_numbers[docname] = reader.tags
    app.env.equation_references[docname] = reader.references
    for fault in reader.faults:
        log.warning("%s", fault, location=docname, type="notebook")
        app.env.note_reread()
    source[0] = json.dumps(notebook)


def read_cells(notebook, reader):
    """Read a notebook in place, the first use of a term below its title and objectives as a link."""
    for cell, below in pairwise(notebook["cells"]):
        if cell["cell_type"] == "markdown" and not turns_in_page(below):
            cell["source"] = TURN.sub("", "".join(cell["source"]))
    texts = [cell for cell in notebook["cells"] if cell["cell_type"] == "markdown"]
    read = [reader.text("".join(cell["source"])) for cell in texts]
    for cell, text in zip(texts, [*read[:1], *reader.link_terms(read[1:])], strict=True):
        cell["source"] = text
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            if "text/markdown" in output.get("data", {}):
                output["data"]["text/markdown"] = reader.text(with_minus("".join(output["data"]["text/markdown"])))
            if svg := figures.wide(output):
                output["data"]["image/svg+xml"] = svg


#: A cell of a table that has numbers alone, with what may be between and after them
NUMBERS = re.compile(r"(?: to |[-\d.,\s±×→⁻⁰¹²³⁴-⁹\[\]])+(?:<!--[^|]*-->)?\s*")


def with_minus(table):
    """A printed table with minus signs for the hyphens of its numbers, as the prose and the figures have them."""
    cells = re.split(r"(\||\n)", table)
    return "".join(re.sub(r"(?<![\w.])-(?=\d)", "−", cell) if NUMBERS.fullmatch(cell) else cell for cell in cells)


def turns_in_page(cell):
    """Whether a page keeps what the text right above a cell asks for: a turn needs a button."""
    tags = cell["metadata"].get("tags", [])
    return "try-it" in tags or not any(tag.startswith("turn:") for tag in tags)


def reader_of(root, papers=("book/references.bib",), opened=lambda path: None):
    """A reader for the notebooks of the course.

    Args:
        root: the folder of the course.
        papers: the files of its bibliography, below it.
        opened: is told each file on which what is read depends.
    """
    papers, glossary = [Path(root, name) for name in papers], Path(root, "book/glossary.md")
    for path in filter(Path.is_file, (*papers, glossary)):
        opened(path)

    @cache
    def numbers(number):
        found = sorted(Path(root, "notebooks").glob(f"{number}-*.ipynb"))
        for path in found:
            opened(path)
        return values.said(json.loads(found[0].read_text("utf-8"))) if found else {}

    terms = glossary_terms(glossary.read_text("utf-8")) if glossary.is_file() else []
    return Reader(numbers, bibliography(*(path.read_text("utf-8") for path in papers)), terms)


def read_file(path):
    """A notebook of the course as the book reads it.

    Raises:
        ValueError: something in it is no form of a notebook.
    """
    reader, notebook = reader_of(ROOT), json.loads(Path(path).read_text("utf-8"))
    read_cells(notebook, reader)
    if reader.faults:
        raise ValueError(f"{Path(path).name}: " + "; ".join(reader.faults))
    return notebook


def number_equations(app, doctree):
    """Give each equation the number of its \\tag, which the notebook shows."""
    numbers = app.env.equation_numbers.get(app.env.docname, {})
    equations = app.env.get_domain("math").equations
    for block in doctree.findall(nodes.math_block):
        if block.get("label") in numbers:
            block["number"] = numbers[block["label"]]
            equations[block["label"]] = (app.env.docname, block["number"])


def check_references(app, env):
    numbers = {label: number for page in env.equation_numbers.values() for label, number in page.items()}
    for doc, references in env.equation_references.items():
        for number, label in references:
            if numbers.get(label, number) != number:
                log.warning(
                    "(%s) is not %s, which is (%s)", number, label, numbers[label], location=doc, type="notebook"
                )


def setup(app):
    page_data.by_page(app, "equation_numbers", "equation_references")
    app.connect("source-read", replace_source)
    app.connect("doctree-read", number_equations)
    app.connect("env-updated", check_references)
    return {"env_version": 1, "parallel_read_safe": True, "parallel_write_safe": True}
