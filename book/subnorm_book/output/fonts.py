"""Subset the fonts of the style sheet to the glyphs that the book uses.

KaTeX's fonts keep the letters of the book's formulas, the icon fonts the code points that the style sheet names. The
full fonts stay on disk, for a later build that needs another glyph.

The formula fonts are embedded in the style sheet: as files they would arrive after the first paint, and every line
with a formula would reflow. Icons have the same width in any font, so their fonts are files.
"""

import base64
import hashlib
import io
import logging
import re

from fontTools import subset

logging.getLogger("fontTools").setLevel(logging.WARNING)  # it logs every glyph

FACE = re.compile(r"@font-face\{([^}]*)\}")
FILE = re.compile(r"url\(([^)]*\.woff2)\)")
# A formula consists only of these elements.
FORMULA = re.compile(r'class="katex-html"[^>]*>((?:[^<]+|</?(?:span|svg|path)\b[^>]*>)*)')
LETTERS = re.compile(r'<span(?: class="([^"]*)")?[^>]*>([^<]+)')
RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
MAIN = ("KaTeX_Main", "400", "normal")


def typeset(pages):
    """The characters of all formulas, by the classes of their element."""
    found = {}
    for html in pages:
        for formula in set(FORMULA.findall(html)):
            for classes, letters in set(LETTERS.findall(formula)):
                found.setdefault(classes, set()).update(letters)
    return {classes: "".join(sorted(letters)) for classes, letters in found.items()}


def cut(css, glyphs, static):
    """The style sheet with smaller fonts: formula fonts embedded, icon fonts in `static/fonts`."""
    icons = set("".join(re.findall(r'"([^"]{1,2})"', css)))  # `content` and `--fa` of one character
    letters = by_face(css, glyphs)

    def face(found):
        told = dict(re.findall(r"([\w-]+):([^;]*)", found[1]))
        path = static / FILE.search(told["src"])[1]
        name = told["font-family"]
        wanted = letters.get((name, told["font-weight"], told["font-style"]), ()) if "KaTeX" in name else icons
        font = smaller(path.read_bytes(), wanted)
        if font is None:
            return ""
        if "KaTeX" in name:
            address = f"data:font/woff2;base64,{base64.b64encode(font).decode()}"
        else:
            small = static / "fonts" / f"{path.stem}.{hashlib.sha256(font).hexdigest()[:12]}.woff2"
            small.parent.mkdir(exist_ok=True)
            small.write_bytes(font)
            address = f"fonts/{small.name}"
        source = f'url({address}) format("woff2")'
        return "@font-face{" + ";".join(f"{key}:{value}" for key, value in {**told, "src": source}.items()) + "}"

    return FACE.sub(face, css)


def by_face(css, glyphs):
    """The characters that each of KaTeX's faces must draw, from the style sheet's rules for their classes."""
    rules = [
        (head, dict(re.findall(r"([\w-]+):([^;]*)", body))) for head, body in RULE.findall(css) if ".katex" in head
    ]
    rules = [(head, body) for head, body in rules if {"font-family", "font-weight", "font-style"} & set(body)]
    found = {}
    for classes, letters in glyphs.items():
        faces = [MAIN]
        for head, body in rules:
            for selector in head.split(","):
                last = re.split(r"[ >+~]", selector.strip())[-1]
                needs = set(re.findall(r"\.([\w-]+)", last))
                if needs <= set(classes.split()) and (needs or not classes):
                    family, weight, style = faces[-1]
                    face = (
                        body.get("font-family", family).split(",")[0],
                        {"bold": "700"}.get(body.get("font-weight", weight), body.get("font-weight", weight)),
                        body.get("font-style", style),
                    )
                    faces.append(face)
        for face in faces if not classes else faces[-1:]:
            found.setdefault(face, set()).update(letters)
    return found


def smaller(font, letters):
    """The font reduced to these characters; None if it has none of them."""
    # name_IDs: copyright, family, licence
    options = subset.Options(
        flavor="woff2", layout_features=["*"], name_IDs=[0, 1, 13, 14], notdef_outline=True, hinting=False
    )
    whole = subset.load_font(io.BytesIO(font), options)
    if not set(map(ord, letters)) & set(whole.getBestCmap()):
        return None
    tool = subset.Subsetter(options)
    tool.populate(unicodes=map(ord, letters))
    tool.subset(whole)
    result = io.BytesIO()
    subset.save_font(whole, result, options)
    return result.getvalue()
