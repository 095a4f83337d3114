"""Give the plots of a page the letters of its live figures.

Matplotlib draws letters of 11 points, which a page shows in 14 to 18 pixels, by the width of the plot; a live figure
has 13, and 11 for what is small. So the SVG for a page gets other sizes and semibold titles. A diagram stays: its
letters belong to its boxes and formulas. So does a plot that a phone shows, too. A notebook keeps what it stored: its
picture and its drawing for a phone.
"""

import re

COLUMN = 688  # CSS pixels of a page's column: no plot is shown wider
LETTERS, SMALL = 13, 11  # CSS pixels, as in live.css
STORED = 11  # points of the same letters in Matplotlib (subnorm_lab.figures.use_style)

SIZE = re.compile(r"(?<=font-size: )([\d.]+)px")
TITLE = re.compile(r'(?<=style=")(?=font-size: 12px)')  # use_style's size of a title; no other letters have it


AXIS = 'id="matplotlib.axis_'  # which a diagram does not have


def as_live(svg):
    """The SVG of a plot with the letters of a live figure; any other as it is."""
    if AXIS not in svg:
        return svg
    width, units = (float(re.search(name, svg)[1]) for name in (r' width="([\d.]+)"', r' viewBox="0 0 ([\d.]+)'))
    pixel = units / min(width, COLUMN)

    def sized(found):
        points = max(float(found[1]) * LETTERS / STORED, SMALL)
        return f"{points * pixel:.2f}".rstrip("0").rstrip(".") + "px"

    return SIZE.sub(sized, TITLE.sub("font-weight: 600; ", svg))
