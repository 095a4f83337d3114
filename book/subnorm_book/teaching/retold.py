"""Two stories on the first page, side by side: the trained model's, and that of the model with one part cut.

    :::{retold}
    without one skip
    : What to see in it.
    :::

Each term is a model in the record of `subnorm_lab.experiments.retold`, all but the first in its order; a reader sees
its label of `LABELS`. The words that the first does not have in the same place are marked. A missing or unknown model
is a warning in every build.
`{retold-loss}` is the table of their losses.

All texts are on the page, in the same place, so nothing moves when another is chosen. Without a script two stories are
there. `retold.js` comes with the figure, not as a file, and so runs before the text is first painted. The model
itself loads when the reader asks it for a story: `_static/storyteller.js`, and from `_static/stories` its weights, in
scripts, because a page that was opened as a file can read nothing else.
"""

import base64
import hashlib
import json
import math
import re
from html import escape
from itertools import groupby
from pathlib import Path

from docutils import nodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from subnorm_lab.stories import files as story_files

RECORD = Path("subnorm_lab", "experiments", "records", "retold.json")
SCRIPT = Path(__file__).with_suffix(".js")
FOLDER = Path("_static", "stories")
LICENCE = "LICENSE-tinyllamas"
PARTS = 8  # so that the reader sees how much has come

LABELS = {
    "without one skip": "one skip cut",
    "without one branch": "one attention cut",
    "LayerNorm": "LayerNorm instead",
    "no norms": "all norms cut",
    "no final division": "last norm partly cut",
    "Post-LN": "norms after the sum",
}

log = logging.getLogger(__name__)


def label(name):
    return LABELS.get(name, name)


class retold(nodes.container):
    """The figure: the two texts, the switch, a note on each cut, and the reader's own words below them."""


class retold_note(nodes.container):
    """The note on one cut."""


class Retold(SphinxDirective):
    has_content = True

    def run(self):
        record = read_stories(self.env)
        self.env.note_dependency(str(SCRIPT))
        body = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, body)
        items = list(body.findall(nodes.definition_list_item))
        names, (trained, *cuts) = [item[0].astext() for item in items], record["told"]
        if names != cuts:
            fault = f"it must explain the models {cuts}, in this order; it has {names}"
            log.warning("retold: %s", fault, location=self.get_location(), type="retold")
            self.env.note_reread()
            return body.children
        notes = [retold_note("", *item[1].children) for item in items]
        told = {name: at_a_word(record["told"][name]["story"]) for name in (trained, *cuts)}
        losses = [model["loss"]["mean"] for model in record["told"].values()]
        return [retold("", *notes, told=told, losses=losses, tokens=record["tokens"])]


class Loss(SphinxDirective):
    def run(self):
        return self.parse_text_to_nodes("\n".join(table_of_losses(read_stories(self.env))))


def read_stories(env):
    path = Path(env.srcdir, RECORD)
    env.note_dependency(str(path))
    return json.loads(path.read_text("utf-8"))


def at_a_word(story):
    """A story that was cut off, up to its last whole word: tokens are parts of words. As in `retold.js`."""
    whole = story.rstrip()
    kept = whole if re.search(r"[.!?][\"'”’]?$", whole) else re.sub(r"\s*\S+$", "", whole)
    return f"{whole}…" if len(kept) < len(whole) / 2 else f"{kept} …"  # no words at all


def table_of_losses(record):
    """The Markdown lines of the table of losses."""
    tokens = len(story_files.tokenizer().pieces)
    yield f"| The model | Mean loss, nats a token | Range over {record['texts']} texts | Like guessing among … tokens |"
    yield "|---|---|---|---|"
    for name, model in record["told"].items():
        mean, low, high = (model["loss"][key] for key in ("mean", "min", "max"))
        span = f"{low:.2f} to {high:.2f}".replace(" ", "\N{NO-BREAK SPACE}")
        yield f"| {label(name)} | {mean:.2f} | {span} | {two_digits(math.exp(mean))} |"
    yield f"| *guessing* | {math.log(tokens):.2f} | | {tokens} |"


def two_digits(number):
    return f"{float(f'{number:.1e}'):,.0f}" if number >= 10 else f"{number:.1f}"


def story_pieces(story, trained):
    """The story in pieces (text, whether the trained model has other words there)."""
    pieces, others = (re.split(r"(\s+)", text) for text in (story, trained))  # words, and the blanks between them

    def differs(k):
        return differs(k - 1) and differs(k + 1) if k % 2 else pieces[k : k + 1] != others[k : k + 1]

    for differ, places in groupby(range(len(pieces)), differs):
        yield "".join(pieces[k] for k in places), differ


def marked(story, trained):
    parts = ((escape(text, quote=False), differ) for text, differ in story_pieces(story, trained))
    return "".join(f"<mark>{text}</mark>" if differ else text for text, differ in parts)


def chosen(k):
    return ' class="chosen"' if k == 0 else ""


LOSS = '<a href="#what-a-cut-costs">loss {:.2f} nats</a>'
RADIO = '<label><input type="radio" name="retold" value="{name}" autocomplete="off"{checked}> {label}</label>'
FIGURE = """\
<figure class="live retold" data-tokens="{tokens}" data-parts="{parts}" data-storyteller="{script}">
<div class="retold-panes">
<div><p class="retold-name">{first} {loss} <button type="button">Stop</button></p>
<p class="retold-text">{told}</p></div>
<div class="retold-cuts">{cuts}</div>
</div>
<div class="live-controls"><fieldset><legend class="live-heard">The second model</legend>{radios}</fieldset></div>
<div class="retold-notes">"""
FORM = """</div>
<form class="live-controls"><label for="first-words">Your own first words</label>
<input id="first-words" maxlength="100" placeholder="One day, a dog" autocomplete="off"> \
<button>Continue: loads {megabytes:.1f} MB</button></form>
<p class="live-heard" role="status"></p>
"""


def visit(translator, node):
    (first, trained), *cuts = node["told"].items()
    whole, *losses = node["losses"]
    panes = [
        f'<div{chosen(k)}><p class="retold-name">{escape(label(name))} {LOSS.format(loss)}</p>'
        f'<p class="retold-text">{marked(story, trained)}</p></div>'
        for k, ((name, story), loss) in enumerate(zip(cuts, losses, strict=True))
    ]
    radios = [
        RADIO.format(name=escape(name), label=escape(label(name)), checked=" checked" * (k == 0))
        for k, (name, _) in enumerate(cuts)
    ]
    script = Path(translator.builder.srcdir, "book", "_static", "storyteller.js")
    code = script.read_bytes() if script.exists() else b""
    translator.body.append(
        FIGURE.format(
            tokens=node["tokens"],
            parts=PARTS,
            script=f"{script.name}?{hashlib.sha256(code).hexdigest()[:12]}",
            first=escape(first),
            loss=LOSS.format(whole),
            told=escape(trained, quote=False),
            cuts="".join(panes),
            radios="".join(radios),
        )
    )


def depart(translator, node):
    form = FORM.format(megabytes=sum(map(len, scripts())) / 1e6)
    translator.body.append(f"{form}<script>{SCRIPT.read_text('utf-8')}</script></figure>\n")


def visit_note(translator, node):
    translator.body.append(f"<div{chosen(node.parent.index(node))}>")


def scripts():
    """The model in scripts, each with its part of the bytes: the weights as in their file, and the tokens in theirs."""
    weights = b"".join(array.tobytes() for array in story_files.weights().values())
    text = base64.b64encode(weights + (story_files.DATA / "tok512.bin").read_bytes()).decode()
    size = math.ceil(len(text) / PARTS)
    return [f'subnormStories[{k}] = "{text[k * size : (k + 1) * size]}";\n' for k in range(PARTS)]


def write_scripts(app, error):
    if error or app.builder.format != "html":
        return
    folder = Path(app.outdir, FOLDER)
    folder.mkdir(parents=True, exist_ok=True)
    for k, text in enumerate(scripts()):
        (folder / f"{k}.js").write_text(text, "utf-8")
    (folder / LICENCE).write_bytes((story_files.DATA / LICENCE).read_bytes())


def setup(app):
    app.add_directive("retold", Retold)
    app.add_directive("retold-loss", Loss)
    app.add_node(retold, html=(visit, depart))
    app.add_node(retold_note, html=(visit_note, lambda translator, node: translator.body.append("</div>")))
    app.connect("build-finished", write_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
