"""Predict boxes: the reader answers, or skips, and then what follows opens.

    :::{predict} after-24-blocks

    What is left of the token after 24 plain blocks?

    - [ ] About as much as went in.
    - [x] Next to nothing.

    The size halves in each block.
    :::

One option is right, marked [x]; a wrong answer is told the paragraph below the options. Two other kinds have no
options: `:number: 01:alike` asks for a number, which is compared with the one that a notebook said, with `:percent:` as
a percentage; a share or a percentage has to be one. `:curve:` asks for a curve, drawn into the figure that follows the
box, a `subnorm_lab.live.sketch`.

What follows is the rest of the section, up to the next box or heading. Without JavaScript, and in print, it is open.
`_static/predict.js` keeps the answers in the browser, under the page's number and the id (01-after-24-blocks). Any
fault is a warning in every build.
"""

import hashlib
import json
import re
from html import escape
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from subnorm_book import page_data
from subnorm_book.evidence import values
from subnorm_book.html_nodes import add_html_only, add_script, writes
from subnorm_book.teaching.quick_checks import NAME, tick_box

log = logging.getLogger(__name__)
WORDED = re.compile(r":[^.?]*\bor\b[^.?]*\?")  # "how many: hardly any, one, or most of them?"

#: What is typed, and the largest number, by the kind of a question
RULES = {
    "number": ("Type a number, such as 0.5 or 1e-3.", "Infinity"),
    "share": ("A share is between 0 and 1, or 0 % and 100 %.", "1"),
    "percentage": ("A percentage is between 0 and 100.", "100"),
}

LINE = 90  # characters, more than a line holds


# Other builders know only the base classes, and show these nodes as such.
class prediction(nodes.container):
    """A question, and the means to answer it."""


class guesses(nodes.bullet_list):
    """The options of a choice."""


class guess(nodes.list_item):
    """An option."""


class prediction_end(nodes.General, nodes.Element):
    """The field for a number, what the answer turned out to be, and the button that skips."""


class reason(nodes.paragraph):
    """Why another option is right: what a wrong answer is told."""


class foretold(nodes.container):
    """What opens with the answer."""


class waiting_line(nodes.General, nodes.Element):
    """The first line of what waits, blurred, while it waits."""


class Predict(SphinxDirective):
    # The id is required, but if the parser itself rejected it, only the first build would warn.
    optional_arguments = 1
    has_content = True
    option_spec = {"number": directives.unchanged, "percent": directives.flag, "curve": directives.flag}  # noqa: RUF012, docutils' own style

    def run(self):
        body = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, body)
        slug = " ".join(self.arguments)
        name = f"{Path(self.env.docname).name.partition('-')[0]}-{slug}"
        known = self.env.predictions.setdefault(self.env.docname, [])
        try:
            if not NAME.fullmatch(slug):
                raise ValueError("its id is not of the form after-24-blocks")
            if name in known:
                raise ValueError("another box of the page has its id")
            box = self.read(body.children, name)
        except ValueError as error:
            log.warning("predict %r: %s", slug, error, location=self.get_location(), type="predict")
            self.env.note_reread()
            return body.children
        known.append(name)
        return [box]

    def read(self, body, name):
        if not (body and isinstance(body[0], nodes.paragraph)):
            raise ValueError("it does not begin with its question, a paragraph")
        why = body.pop() if len(body) > 1 and isinstance(body[-2], nodes.bullet_list) else None
        *question, last = body
        percent = "percent" in self.options
        self.options.pop("percent", None)
        kinds = [*self.options, *(["choice"] if isinstance(last, nodes.bullet_list) else [])]
        if len(kinds) != 1:
            raise ValueError("it needs options, or :number:, or :curve:, and one of them only")
        (kind,) = kinds
        if kind == "number" and WORDED.search(body[0].astext()):
            raise ValueError("its question offers choices, but the field takes a number only")
        asked = "percentage" if percent else "share" if re.search(r"\bshare\b", body[0].astext()) else "number"
        end = prediction_end(truth=self.truth() if kind == "number" else None, asked=asked)
        if kind == "choice" and why is None:
            raise ValueError("no paragraph below its options says why one of them is right")
        answer = [read_options(last, name), end, reason("", "", *why.children)] if kind == "choice" else [last, end]
        return prediction("", *question, *answer, ids=[f"predict-{name}"], name=name, kind=kind)

    def truth(self):
        number, _, said = self.options["number"].partition(":")
        numbers = values.said(json.loads(values.quoted_notebook(self.env, number).read_text("utf-8")))
        if said not in numbers:
            raise ValueError(f"no notebook says {self.options['number']!r}")
        return numbers[said]


def read_options(points, name):
    options = []
    for item in points:
        right = tick_box(item)
        value = hashlib.sha256(item.astext().encode()).hexdigest()[:8]  # outlives a new order, but no edit
        options.append(guess("", *item[0].children, right=right, value=value, name=name))
    if len(options) < 2 or sum(option["right"] for option in options) != 1:
        raise ValueError("it needs two options or more, one of them right, marked [x]")
    return guesses("", *options)


def gather(app, doctree, docname):
    """Put what follows a box into one element. When the page is written: its sections have been collected by then."""
    for box in list(doctree.findall(prediction)):
        parent, start = box.parent, box.parent.index(box) + 1
        if box["kind"] == "curve":
            follows = parent[start] if start < len(parent) else nodes.Element()
            if not any('data-live="sketch"' in node.astext() for node in follows.findall(nodes.raw)):
                log.warning("predict %r: no sketch follows it", box["name"], location=docname, type="predict")
                continue
            start += 1
        rest = parent[start:]
        stop = next((k for k, node in enumerate(rest) if isinstance(node, prediction | nodes.section)), len(rest))
        del parent[start : start + stop]
        first = next((node for node in rest[:stop] if isinstance(node, nodes.paragraph)), nodes.paragraph())
        parent.insert(start, [foretold("", *rest[:stop], name=box["name"]), waiting_line(text=first.astext()[:LINE])])


# HTML


def visit_prediction(translator, node):
    (name,) = node["ids"]
    translator.body.append(
        f'<div class="predict" id="{name}" data-predict="{node["name"]}" data-kind="{node["kind"]}" role="group" '
        f'aria-labelledby="{name}-title"><p class="title" id="{name}-title">Predict</p>\n'
    )


def visit_guess(translator, node):
    right = " data-right" if node["right"] else ""
    field = f'<input type="radio" name="predict-{node["name"]}" value="{node["value"]}">'
    translator.body.append(f'<div class="guess"><label{right}>{field}<span>')


def visit_end(translator, node):
    rule, most = RULES[node["asked"]]
    unit = " data-percent> %" if node["asked"] == "percentage" else ">"
    bounds = f'title="{rule}" data-most="{most}"'
    field = f'<input inputmode="decimal" size="8" {bounds} data-truth="{escape(node["truth"] or "")}"{unit}'
    translator.body.append(
        f'<p class="answer">{f"<label>Your guess {field}</label>" if node["truth"] else ""}'
        '<button type="button" class="compare">Compare</button>'
        '<button type="button" class="skip">Skip: just show me</button><span role="status"></span></p>\n'
    )
    raise nodes.SkipNode


def visit_foretold(translator, node):
    # the function is in the head of the page (layout.html): what waits must never be painted
    translator.body.append(f'<div class="foretold" data-for="{node["name"]}"><script>subnormWait()</script>\n')


def visit_waiting_line(translator, node):
    if node["text"]:
        text = " ".join(node["text"].split())
        translator.body.append(f'<p class="waits" aria-hidden="true" data-first="{escape(text)}"></p>\n')
    raise nodes.SkipNode


def setup(app):
    app.add_directive("predict", Predict)
    app.add_node(prediction, html=(visit_prediction, writes("</div>\n")))
    app.add_node(guesses, html=(writes(""), writes("")))
    app.add_node(guess, html=(visit_guess, writes("</span></label></div>\n")))
    app.add_node(foretold, html=(visit_foretold, writes("</div>\n")))
    app.add_node(reason, html=(writes('<p class="reason" hidden>'), writes("</p>\n")))
    add_html_only(app, prediction_end, visit_end)
    add_html_only(app, waiting_line, visit_waiting_line)
    page_data.by_page(app, "predictions")
    app.connect("doctree-resolved", gather)
    add_script(app, "predict.js", lambda doctree: any(doctree.findall(prediction)))
    return {"env_version": 3, "parallel_read_safe": True, "parallel_write_safe": True}
