"""Leave out on paper what only a screen can do: all from a bold *Try* to the end of its paragraph.

    The curve shows each token. **Try:** drag the norm. Which place keeps the tokens apart?

What a reader of the paper needs is in front of it, or in another paragraph.
"""

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

ON_SCREEN = "on-screen"  # subnorm.css does not print it


class LeaveOut(SphinxPostTransform):
    default_priority = 890  # when links have their words, but before no_breaks.py looks at words next to one another

    def run(self):
        for paragraph in self.document.findall(nodes.paragraph):
            words = [part.astext() if isinstance(part, nodes.strong) else "" for part in paragraph]
            start = next((k for k, word in enumerate(words) if word.rstrip(":") == "Try"), None)
            if start is None:
                continue
            before, asked = paragraph[:start], paragraph[start:]
            if any(part.astext() for part in before):
                del paragraph[start:]
                paragraph += nodes.inline("", "", *asked, classes=[ON_SCREEN])
            else:
                paragraph["classes"].append(ON_SCREEN)


def setup(app):
    app.add_post_transform(LeaveOut)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
