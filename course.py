#!/usr/bin/env python3
"""Build, test, read and run the course. Needs only Python 3.11 or newer.

build      make .venv, install what the book needs, build the book
test       build, then lint, types, the tests of package and book, every notebook
           (test package: a minute)
serve      build, then show the book on a local web server
lab        open the notebooks in JupyterLab
refresh    run notebooks again and store their outputs
pack       build, then make a zip and PDFs of the book, to take along: minutes
speed      measure how long all this takes, for the table in CONTRIBUTING.md
mutants    make small faults in the code and count those that the tests miss: hours

All but build and serve also install the rest: PyTorch, JupyterLab, the tools of the tests.
Steps that are up to date are skipped.
"""

import sys
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036, nothing is installed yet
    version = sys.version.split()[0]
    sys.exit(f"The course needs Python 3.11 or newer; this is {version}. Get it at https://www.python.org")

sys.path.insert(0, str(Path(__file__).resolve().parent))

from tools import course

if __name__ == "__main__":
    course.run(__doc__)
