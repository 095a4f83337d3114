"""The story on the first page, told by the trained model and by what is left of it.

    :::{retold}
    as trained
    : What this model is.

    one branch left out
    : What to see in it.
    :::

Each term is a model in the record of `subnorm_lab.experiments.retold`, all in its order; the directive adds what
it says and its loss. A missing or unknown model is a warning in every build.

All texts are on the page, in the same place, so nothing moves when another is chosen. Without a script the first one
is there. `retold.js` comes with the figure, not as a file, and so runs before the text is first painted.
"""

import json
import math
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

RECORD = Path("subnorm_lab", "experiments", "records", "retold.json")
SCRIPT = Path(__file__).with_suffix(".js")

log = logging.getLogger(__name__)


class retold(nodes.container):
    """The figure: the texts, the switch, and a note on each model below it."""


class retold_note(nodes.container):
    """The note on one model."""


class Retold(SphinxDirective):
    has_content = True

    def run(self):
        path = Path(self.env.srcdir, RECORD)
        for file in (path, SCRIPT):
            self.env.note_dependency(str(file))
        record = json.loads(path.read_text("utf-8"))
        body = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, body)
        items = list(body.findall(nodes.definition_list_item))
        names = [item[0].astext() for item in items]
        if names != list(record["told"]):
            fault = f"it must explain the models {list(record['told'])}, in this order; it has {names}"
            log.warning("retold: %s", fault, location=self.get_location(), type="retold")
            self.env.note_reread()
            return body.children
        told = record["told"].values()
        notes = [note(item[1], model["loss"], record["texts"]) for item, model in zip(items, told, strict=True)]
        return [retold("", *notes, told={name: model["story"] for name, model in record["told"].items()})]


def note(definition, loss, texts):
    """The loss of a model, and what its definition says."""
    measured = f"Loss {loss['mean']:.2f} nats a token, {loss['min']:.2f} to {loss['max']:.2f} in {texts} texts"
    said = nodes.strong("", f"{measured}; guessing costs {math.log(512):.2f}.", classes=["measured"])
    definition[0].insert(0, [said, nodes.Text(" ")])
    return retold_note("", *definition.children)


def chosen(k):
    return ' class="chosen"' if k == 0 else ""


def visit(translator, node):
    texts = [f"<p{chosen(k)}>{escape(story, quote=False)}</p>" for k, story in enumerate(node["told"].values())]
    radios = [
        f'<label><input type="radio" name="retold" autocomplete="off"{" checked" * (k == 0)}> {escape(name)}</label>'
        for k, name in enumerate(node["told"])
    ]
    translator.body.append(
        f'<figure class="live retold">\n<div class="retold-texts">{"".join(texts)}</div>\n'
        f'<div class="live-controls"><fieldset><legend class="live-heard">The model</legend>{"".join(radios)}'
        '<button type="button">Stop</button></fieldset></div>\n<div class="retold-notes">'
    )


def depart(translator, node):
    script = SCRIPT.read_text("utf-8")
    translator.body.append(f'</div>\n<p class="live-heard" role="status"></p>\n<script>{script}</script></figure>\n')


def visit_note(translator, node):
    translator.body.append(f"<div{chosen(node.parent.index(node))}>")


def setup(app):
    app.add_directive("retold", Retold)
    app.add_node(retold, html=(visit, depart))
    app.add_node(retold_note, html=(visit_note, lambda translator, node: translator.body.append("</div>")))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
