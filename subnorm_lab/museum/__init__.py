"""Bugs that people shipped in norms and residual connections, rewritten in a few lines each, to find and to fix.

Each exhibit is a function that does the right thing, with one change that brings the bug back, and the test that would
have caught it. ``museum.token_norm(your_fix)`` checks a fix and gives advice, like the checks of the exercises.
``museum.token_norm.bug`` is the function with the bug. Needs NumPy alone.

To add one, write the bug, its fix and the test that would have caught it in a module beside this one, as its neighbours
are written. Then write its three cells in the notebook, under a heading that does not give the bug away.

Deep dive 09a shows them, each with the public report that it was rewritten from.
"""

from subnorm_lab.museum import blocks, gains, gradients, statistics
from subnorm_lab.museum.exhibit import Exhibit

__all__ = ["EXHIBITS", "Exhibit"]

ROOMS = (statistics, blocks, gains, gradients)
#: All exhibits, in the order of the visit.
EXHIBITS = [thing for room in ROOMS for thing in vars(room).values() if isinstance(thing, Exhibit)]
globals().update({exhibit.name: exhibit for exhibit in EXHIBITS})
