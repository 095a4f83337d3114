"""Find the first use of each glossary term in a text, and whether it links to the glossary."""

import re

# Not prose: headings, fenced code, formulas, code, roles, titles of boxes, URLs, comments,
# the generated line of an exercise, and the options of a quick check, which are labels
NOT_PROSE = re.compile(
    r"^#+ .*$|^:{3,}.*$|^:\w+:.*$"
    r"|^```(?:python|text|\{(?:code|raw|math|figure|toctree|bibliography|claims))[\s\S]*?^```"
    r"|^`{3,}.*$|^Level \d · .*$|^- \[[ x]\] .*$"
    r"|\$\$[\s\S]*?\$\$|\$[^$\n]+\$|\{(?!term)[\w:-]+\}`[^`]*`|(\{term\}`[^`]*`)|`[^`]+`|\]\([^)]*\)|\"[^\"]*\"|<!--[\s\S]*?-->",
    flags=re.MULTILINE,
)
LINKED = re.compile(r"\{term\}`[^`]*`")
# Also everyday words: only a reader can tell whether a use is the term
AMBIGUOUS = {"gain", "shift", "token", "placement", "eps"}


def terms(glossary):
    """The terms of the glossary page."""
    body = glossary.split("```{glossary}\n")[1].split("\n```")[0]
    return re.findall(r"^(\S.*)$", body, flags=re.MULTILINE)


def pattern(term):
    """A regular expression for the term in a sentence: capitalised, in the plural, or across a line break."""
    words = re.escape(term).replace(r"\ ", r"\s+")
    return re.compile(rf"(?<![\w-]){words}s?(?![\w-])", re.IGNORECASE)


def prose(text):
    """The text with everything except prose blanked out, and positions unchanged."""
    return NOT_PROSE.sub(lambda part: part[1] or re.sub(r"[^\n]", " ", part[0]), text)


def unlinked(text, names):
    """(term, start, end) of each first use that is not linked."""
    words = prose(text)
    links = [match.span() for match in LINKED.finditer(words)]
    for name in names:
        if name in AMBIGUOUS:
            continue
        longer = [pattern(other) for other in names if name != other and name.lower() in other.lower()]
        inside = [match.span() for other in longer for match in other.finditer(words)]
        uses = [u.span() for u in pattern(name).finditer(words) if not within(u.span(), inside)]
        # a term role with its own text names the term in angle brackets
        named = [match.start() for match in LINKED.finditer(words) if re.search(rf"<{re.escape(name)}>", match[0])]
        if uses and not within(uses[0], links) and not (named and named[0] < uses[0][0]):
            yield name, *uses[0]


def within(span, others):
    return any(start <= span[0] and span[1] <= end for start, end in others)
