"""Quick checks: multiple-choice questions with an explanation for every option.

    :::{quick-check} ignores-bias

    A colleague sets `bias=False` in LayerNorm. Is it RMSNorm now?

    - [ ] Yes.
      - Having no bias is common to both now.
    - [x] No.
      - It still subtracts the mean.
    - [ ] Only with a gain of 1.
      - The gain has nothing to do with it.
    :::

The id must be unique on its page. With the page's number (04-ignores-bias) it is the key under which the browser
stores the answer, so it must not change when checks are reordered. If the right option is a number, `:value:` holds
a Python expression from which a test recomputes it. Any fault is a warning in every build.

The page needs no script: choosing an option shows its explanation. `_static/quick-checks.js` counts and stores answers.
Every text occurs once on the page, so that print, search and other builders get a plain list.
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
from subnorm_book.html_nodes import add_html_only, add_script, writes

log = logging.getLogger(__name__)

NAME = re.compile(r"[0-9a-z]+(-[0-9a-z]+)*")
BOX = re.compile(r"\[([ x])\]\s+")
VERDICT = re.compile(r"(Almost|Close|Correct|Exactly|Indeed|Nearly|No|Not quite|Right|True|Wrong|Yes)\b *[:.,;!]")


# Other builders know only the base classes, and show these nodes as such.
class quick_check(nodes.container):
    """A question and its options."""


class check_question(nodes.paragraph):
    """The question."""


class check_options(nodes.bullet_list):
    """The options."""


class check_option(nodes.list_item):
    """One option: its label and its explanation."""


class check_label(nodes.paragraph):
    """The text of an option."""


class check_why(nodes.container):
    """Why an option is right, or tempting but wrong."""


class checks_head(nodes.General, nodes.Element):
    """Above the checks of a page: the number right, and a switch that shows all answers."""


class checks_done(nodes.General, nodes.Element):
    """Next to a link to a page: the number of its checks answered right."""


class QuickCheck(SphinxDirective):
    # The id is required, but if the parser itself rejected it, only the first build would warn.
    optional_arguments = 1
    has_content = True
    option_spec = {"value": directives.unchanged}  # noqa: RUF012, docutils' own style

    def run(self):
        body = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, body)
        known = self.env.quick_checks.setdefault(self.env.docname, {})
        slug = " ".join(self.arguments)
        name = f"{Path(self.env.docname).name.partition('-')[0]}-{slug}"
        try:
            if not NAME.fullmatch(slug):
                raise ValueError("its id is not of the form ignores-bias")
            if name in known:
                raise ValueError("another check of the page has its id")
            if self.options.get("value") == "":
                raise ValueError(":value: is empty; it must be a Python expression")
            check = read_check(body, name, len(known) + 1)
        except ValueError as error:
            log.warning("quick check %r: %s", slug, error, location=self.get_location(), type="checks")
            self.env.note_reread()
            return body.children
        known[name] = next(option["value"] for option in check.findall(check_option) if option["right"])
        return [check]


def read_check(body, name, number):
    """The check from the parsed body of a directive."""
    if not (body.children and isinstance(body[0], nodes.paragraph)):
        raise ValueError("it does not begin with its question, a paragraph")
    if not (len(body) == 2 and isinstance(body[1], nodes.bullet_list)):
        raise ValueError("its question must be followed by a list of options, and nothing else")
    question = check_question("", f"{number}. ", *body[0].children)
    options = [read_option(item, f"check-{name}") for item in body[1]]
    right = sum(option["right"] for option in options)
    if len(options) < 3:
        raise ValueError(f"it needs at least 3 options; it has {len(options)}")
    if right != 1:
        raise ValueError(f"{right} of its options are right; one must be, marked [x]")
    if len({option["value"] for option in options}) < len(options):
        raise ValueError("two of its options are the same")
    return quick_check("", question, check_options("", *options), ids=[f"check-{name}"])


def read_option(item, group):
    right = tick_box(item)
    said = item[0].astext()
    if not (len(item) == 2 and isinstance(item[1], nodes.bullet_list) and len(item[1]) == 1):
        raise ValueError(f"an option is not explained by one point below it: {said[:60]!r}")
    why = item[1][0].children
    if not isinstance(why[0], nodes.paragraph):
        raise ValueError(f"an explanation does not begin with a sentence: {said[:60]!r}")
    if VERDICT.match(why[0].astext()):
        raise ValueError(f"an explanation begins with a verdict, which the page writes: {why[0].astext()[:60]!r}")
    why[0].insert(0, [nodes.strong("", "Right." if right else "Not quite."), nodes.Text(" ")])
    # a hash of the option's text, so that a stored answer neither moves to another option nor outlives an edit
    value = hashlib.sha256(item[0].astext().encode()).hexdigest()[:8]
    parts = check_label("", "", *item[0].children), check_why("", *why)
    return check_option("", *parts, right=right, value=value, group=group)


def tick_box(item):
    """Take the box off an option; whether it is ticked."""
    box = isinstance(item[0], nodes.paragraph) and BOX.match(item[0].astext())
    if not box:
        raise ValueError(f"an option does not begin with [ ] or [x]: {item[0].astext()[:60]!r}")
    first = item[0][0]
    item[0].replace(first, nodes.Text(BOX.sub("", first, count=1)))
    return box[1] == "x"


def add_head(app, doctree):
    checks = app.env.quick_checks.get(app.env.docname)
    if checks:
        first = next(doctree.findall(quick_check))
        first.parent.insert(first.parent.index(first), checks_head(checks=checks))


def add_done(app, doctree, docname):
    """Add the counts to the list of chapters on the first page. Sphinx writes that page whenever it writes another."""
    if docname == app.config.root_doc:
        pages = {app.builder.get_relative_uri(docname, doc): c for doc, c in app.env.quick_checks.items() if c}
        for term in doctree.findall(nodes.term):
            for link in [link for link in term.findall(nodes.reference) if link.get("refuri") in pages]:
                term += checks_done(checks=pages[link["refuri"]])


def has_checks(doctree):
    return any(doctree.findall(lambda node: isinstance(node, checks_head | checks_done)))


# HTML


def visit_check(translator, node):
    translator.body.append(f'<fieldset class="quick-check" id="{node["ids"][0]}">\n')


def visit_option(translator, node):
    name = f"{node['group']}-{node['value']}"
    translator.body.append(
        f'<div class="option">\n<input type="radio" name="{node["group"]}" id="{name}" value="{node["value"]}">\n'
    )


def visit_label(translator, node):
    translator.body.append(f'<label for="{node.parent["group"]}-{node.parent["value"]}">')


def visit_why(translator, node):
    """A permanent live region, so that a screen reader announces the text; a description would reveal the answer."""
    kind = " right" if node.parent["right"] else ""
    translator.body.append(f'<div aria-live="polite"><div class="why{kind}">\n')


def done(node, text=""):
    return f'<span class="checks-done" data-checks="{escape(json.dumps(node["checks"]))}">{text}</span>'


def visit_head(translator, node):
    count = f"0 of {len(node['checks'])} answered right"  # as the script writes it: the text must not move when it runs
    translator.body.append(
        f'<p class="checks-head">{done(node, count)}<button type="button" hidden>Clear my answers</button></p>\n'
        '<input type="checkbox" id="all-answers"><label for="all-answers">Show all answers, explained</label>\n'
    )
    raise nodes.SkipNode


def visit_done(translator, node):
    translator.body.append(done(node))
    raise nodes.SkipNode


def setup(app):
    app.add_directive("quick-check", QuickCheck)
    app.add_node(quick_check, html=(visit_check, writes("</fieldset>\n")))
    app.add_node(check_question, html=(writes("<legend>"), writes("</legend>\n")))
    app.add_node(check_options, html=(writes(""), writes("")))
    app.add_node(check_option, html=(visit_option, writes("</div>\n")))
    app.add_node(check_label, html=(visit_label, writes("</label>\n")))
    app.add_node(check_why, html=(visit_why, writes("</div></div>\n")))
    add_html_only(app, checks_head, visit_head)
    add_html_only(app, checks_done, visit_done)
    page_data.by_page(app, "quick_checks")
    app.connect("doctree-read", add_head)
    app.connect("doctree-resolved", add_done)
    add_script(app, "quick-checks.js", has_checks)
    return {"env_version": 1, "parallel_read_safe": True, "parallel_write_safe": True}
