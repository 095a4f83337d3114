"""Merge all style sheets into one for the whole site, with only the rules that its pages can use.

The theme has ten sheets of half a megabyte, and the browser shows nothing until all have loaded. We merge them in
order. The sheet of the formulas, with their fonts, is apart: only pages with a formula load it. A selector stays if all
its classes and ids occur in a page or a script; so do the custom properties, animations and fonts still in use, and of
the fonts only the glyphs in use (`fonts.py`). What a mouse shows by hovering holds for a mouse alone: a touched button
would keep it after the tap.

A sheet's name is a hash of its inputs. A page keeps the names of the theme's sheets in `data-from`, so that the next
build can make the sheet again when it writes only some pages.
"""

import hashlib
import posixpath
import re

import tinycss2
from subnorm_book.output import fonts

#: Names that are built from parts, so that the whole word occurs nowhere: Bootstrap's `navbar-expand-` + width, the
#: colours of live figures.
PUT_TOGETHER = re.compile(r"navbar-expand-\w+|--live-\w+")

FORMULAS = "katex/katex.css"
FORMULA = 'class="katex"'

LINK = re.compile(
    r'<link\b(?=[^>]*\brel="stylesheet")[^>]*\bhref="([^"?#:]*_static/)([^"?#]*)[^"]*"'
    r'(?: data-from="([^"]*)")?[^>]*>\n?'
)
IMPORT = re.compile(r'@import\s+(?:url\()?["\']?([^"\');]+)["\']?\)?\s*;')
URL = re.compile(r'url\((["\']?)(?!data:|#)([^"\')]+)\1\)')
VARIABLE = re.compile(r"--[\w-]+")
#: Not a heading, whose link to itself a tap may show.
HOVERED = re.compile(r":hover(?!.*headerlink)(?![^(]*\))", re.DOTALL)


def merge(pages, static):
    """The HTML of all pages by path, each linked to the merged sheets, which are written to `static`."""
    names = dict.fromkeys(name for html in pages.values() for name in sources(html))
    # what runs Python in a page brings its own look, and a megabyte of words; a model's weights are no words at all
    others = {static / "python", static / "stories"}
    own = [path for path in sorted(static.rglob("*.js")) if others.isdisjoint(path.parents)]
    scripts = "\n".join(path.read_text("utf-8") for path in own)
    words = in_pages(pages.values()) | in_script(scripts)
    glyphs = fonts.typeset(pages.values())
    site = style_sheet(static, "site", [name for name in names if name != FORMULAS], words, glyphs)
    formulas = style_sheet(static, "formulas", [FORMULAS], words, glyphs) if FORMULAS in names else None
    return {path: linked(html, site, formulas) for path, html in pages.items()}


def style_sheet(static, kind, names, words, glyphs):
    """The name of the sheet that the sheets `names` make, which is written unless it is there."""
    text = "\n".join(css_text(static, name) for name in names)
    words = sorted(words & set(re.findall(r"[\w-]+", text)))  # sorted, because the sheet's name depends on them
    key = hashlib.sha256(repr((text, words, sorted(glyphs.items()))).encode()).hexdigest()
    path = static / f"{kind}.{key[:12]}.css"
    if not path.exists():
        for old in [*static.glob(f"{kind}.*.css"), *(static.glob("fonts/*.woff2") if kind == "site" else ())]:
            old.unlink()
        rules = used(tinycss2.parse_stylesheet(text, skip_comments=True, skip_whitespace=True), set(words))
        licences = "\n".join(dict.fromkeys(re.findall(r"/\*!.*?\*/", text, re.DOTALL)))
        path.write_text(licences + fonts.cut(written(without_leftovers(rules, words)), glyphs, static), "utf-8")
    return path.name


def sources(html):
    """The theme's sheets of a page, even if an earlier build has replaced their links."""
    return [name for _, name, merged in LINK.findall(html) for name in (merged.split() or [name])]


def linked(html, site, formulas):
    """The page with one link in place of all its links to sheets, and another if it has a formula."""
    found = sources(html)
    if not found:
        return html
    first = LINK.search(html)
    rest = LINK.sub("", html[first.end() :])
    links = [(formulas, [FORMULAS])] if FORMULAS in found and FORMULA in html else []
    links.append((site, [name for name in found if name != FORMULAS]))
    text = "".join(
        f'<link rel="stylesheet" href="{first[1]}{name}" data-from="{" ".join(made_from)}" />\n'
        for name, made_from in links
    )
    return html[: first.start()] + text + rest


def css_text(static, name):
    """The text of one sheet with its imports inlined, and its URLs relative to `static`."""
    folder = posixpath.dirname(name)
    text = URL.sub(
        lambda m: f"url({posixpath.normpath(posixpath.join(folder, m[2]))})", (static / name).read_text("utf-8")
    )
    return IMPORT.sub(lambda m: css_text(static, posixpath.normpath(posixpath.join(folder, m[1]))), text)


def in_pages(pages):
    """The classes and ids of all elements, the variables in their styles, and the words of inline scripts."""
    found, scripts = set(), set()
    for html in pages:
        for names in set(re.findall(r'\s(?:class|id)="([^"]*)"', html)):
            found.update(names.split())
        found.update(VARIABLE.findall(html))
        scripts.update(re.findall(r"<script\b[^>]*>(.*?)</script>", html, re.DOTALL))  # most are on every page
    return found.union(*map(in_script, scripts))


def in_script(text):
    return set(re.findall(r"[\w-]+", text))


def used(nodes, words):
    """The rules that can match something, as (prelude, body); a body is a list of rules and (name, value) pairs."""
    rules = []
    for node in nodes:
        if node.type == "declaration":
            value = tinycss2.serialize(node.value).strip()
            rules.append((node.name, value + " !important" * node.important))
        elif node.type == "qualified-rule":
            found = selectors(node.prelude, words)
            parts = tinycss2.parse_blocks_contents(node.content, skip_comments=True, skip_whitespace=True)
            body = used(parts, words) if found else []
            hovered = [one for one in found if HOVERED.search(one)]
            if rest := [one for one in found if one not in hovered]:
                rules.append((",".join(rest), body))
            if hovered:
                rules.append(("@media (hover: hover)", [(",".join(hovered), body)]))
        elif node.type == "at-rule" and node.content is not None:
            prelude = f"@{node.at_keyword}{tinycss2.serialize(node.prelude)}".strip()
            parts = tinycss2.parse_blocks_contents(node.content, skip_comments=True, skip_whitespace=True)
            rules.append((prelude, used(parts, words)))
    return rules


def selectors(prelude, words):
    """The selectors in a list that can match."""
    one, every = [], []
    for token in [*prelude, None]:
        if token is None or (token.type == "literal" and token.value == ","):
            if all(name in words or PUT_TOGETHER.fullmatch(name) for name in named(one)):
                every.append(tinycss2.serialize(one).strip())
            one = []
        else:
            one.append(token)
    return every


def named(selector):
    """The classes and ids that a selector needs, ignoring brackets (:not, :is, [...])."""
    before = None
    for token in selector:
        class_name = token.type == "ident" and before == "."
        if class_name or token.type == "hash":
            yield token.value
        before = token.value if token.type == "literal" else None


def without_leftovers(rules, words):
    """The rules without unused custom properties, animations and fonts."""
    declared = list(declarations(rules))
    needed = {key for key, _ in declared if key in words or PUT_TOGETHER.fullmatch(key)}
    needed.update(name for key, value in declared if not key.startswith("--") for name in VARIABLE.findall(value))
    while more := {n for key, v in declared if key in needed for n in VARIABLE.findall(v)} - needed:
        needed |= more
    values = " ".join(value for key, value in declared if not key.startswith("--") or key in needed)
    spoken = set(re.findall(r"[\w-]+", values))

    def kept(rule):
        head, body = rule
        if isinstance(body, str):
            return not head.startswith("--") or head in needed
        if re.match(r"@[-\w]*keyframes", head):
            return head.split()[-1] in spoken
        if head == "@font-face":
            return unquoted(dict(body)["font-family"]) in unquoted(values)
        return True

    def pruned(rules):
        left = [(head, body if isinstance(body, str) else pruned(body)) for head, body in filter(kept, rules)]
        return [rule for rule in left if rule[1] != []]

    return pruned(rules)


def unquoted(family):
    """The name of a font without quotes and escapes."""
    return re.sub(r"[\\\"']", "", family)


def declarations(rules):
    """Every (name, value) that the rules set, except in @font-face."""
    for head, body in rules:
        if isinstance(body, str):
            yield head, body
        elif head != "@font-face":
            yield from declarations(body)


def written(rules):
    parts = (f"{head}:{body};" if isinstance(body, str) else f"{head}{{{written(body)}}}" for head, body in rules)
    return "".join(parts).replace(";}", "}")
