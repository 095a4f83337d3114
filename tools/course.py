"""The commands of course.py: install the pinned packages, build, test, serve and run. Standard library only."""

import argparse
import collections
import functools
import gzip
import hashlib
import http.server
import importlib.util
import io
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
INSTALLED = VENV / "course.json"  # the contents of .venv; has no "home" while an install is running
LOG = VENV / "install.log"
READ = ["requirements-book.txt"]
RUN = ["requirements.txt"]  # with requirements-book.txt, and with torch
TEST = [*RUN, "requirements-dev.txt"]
MUTANTS = [*TEST, "requirements-mutants.txt"]
BUILD = ROOT / "_build"
PAGES = BUILD / "html"  # the last build without errors
STATE = BUILD / "state"  # Sphinx's state from that build
BUILT = BUILD / "course.json"  # hashes of that build's inputs
NEXT = BUILD / "next"  # the work folder of a build, moved into place only after success
DONE = NEXT / "course.json"  # exists from the end of a successful build until everything is in place
OLD = BUILD / "old"  # the previous pages, while they are being replaced
PARTS = {"html": PAGES, ".doctrees": STATE / ".doctrees", "jupyter_execute": STATE / "jupyter_execute"}
INPUTS = [
    "_config.yml",
    "_toc.yml",
    "book",
    "notebooks",
    "subnorm",  # the API pages
    "subnorm_lab",
    "subnorm_classroom",
    "pyproject.toml",  # the repository's address
    "constraints.txt",
    "tools/book.py",
]
# A copy of the checkout without these is as fresh as a clone: its first build finds no cache.
GENERATED = shutil.ignore_patterns(
    ".*", "_build", "_pack", "dist", "venv", "grades", "submissions", "__pycache__", "*.egg-info"
)

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    ".md": "text/plain; charset=utf-8",
    ".ipynb": "application/json",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".woff2": "font/woff2",
}
NETWORK = r"NewConnectionError|name resolution|getaddrinfo|timed? ?out|ProxyError|SSLError|Connection\w*Error"


def call(command: list, **options) -> int:
    """Exit status of a command, run at the root."""
    sys.stdout.flush()  # print our own lines first
    return subprocess.run([str(word) for word in command], **{"cwd": ROOT, **options}).returncode


def digest(paths: list) -> str:
    """One hash of the names and contents of files."""
    result = hashlib.sha256()
    for path in paths:
        content = path.read_bytes()
        result.update(f"{path.relative_to(ROOT).as_posix()} {len(content)}\n".encode() + content)
    return result.hexdigest()


def read_json(path: pathlib.Path) -> dict:
    """The JSON in a file; {} if the file is missing or incomplete."""
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}


def with_included(files: list) -> list:
    """Requirement files, and those that they name."""
    found = []
    for name in files:
        found += [name, *with_included(re.findall(r"^-r +(\S+)", (ROOT / name).read_text("utf-8"), re.MULTILINE))]
    return found


def requirements(files: list) -> dict:
    """What `INSTALLED` says once `files` are in .venv, which works neither moved nor under another Python."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    package = json.dumps([project.get("build-system"), project.get("project")])  # a setting of ruff installs nothing
    needs = hashlib.sha256(package.encode()).hexdigest()
    return {
        "home": f"Python {sys.version_info[0]}.{sys.version_info[1]} in {VENV}",
        **{name: f"{digest([ROOT / name, ROOT / 'constraints.txt'])} {needs}" for name in with_included(files)},
    }


def size(files: list) -> str:
    """The disk that .venv needs for `files`."""
    if files == READ:
        return "0.4 GB"
    return f"{'1.4' if files == RUN else '2.5'} GB with PyTorch's CPU build, several GB with CUDA"


def pip_install(python: pathlib.Path, files: list, torch_index: str) -> list:
    """The command that installs all `files` at once."""
    command = [python, "-m", "pip", "install", "--no-input", "--progress-bar=off", "--disable-pip-version-check"]
    if not sys.dont_write_bytecode:  # else every later process would compile anew
        command += ["--no-compile"]  # most modules are never imported; Python compiles and keeps the others
    command += [word for name in files for word in ("-r", name)]
    if torch_index and files != READ:  # the CPU build is 2.13.0+cpu, which matches ==2.13.0 and which pip prefers
        command += ["--extra-index-url", torch_index]
    return command


def install(files: list, torch_index: str) -> None:
    """Bring .venv to the pinned versions. An install that did not finish is begun again in an empty .venv."""
    have = read_json(INSTALLED)
    index = torch_index or have.get("torch index", "")  # asked for once: a .venv made again keeps its kind of torch
    want = requirements(files)
    ours = PYTHON.exists() and have.get("home") == want["home"]
    if ours and index != have.get("torch index", ""):
        if RUN[0] in have:  # for pip it is the same version: it would change nothing
            sys.exit(f".venv has torch already. To take it from {index}, remove {VENV}, then run this command again.")
        have["torch index"] = index  # for the first command that needs torch
        INSTALLED.write_text(json.dumps(have), "utf-8")
    if ours and want.items() <= have.items():
        return
    start = time.monotonic()
    begun = json.dumps({"torch index": index})
    if PYTHON.exists() and not INSTALLED.exists():
        print("Using the .venv you made. If this install is cut off, the next call removes it and makes a new one.")
    elif not ours:
        make_venv(begun)
        have = {}
    before = INSTALLED.read_text("utf-8") if INSTALLED.exists() else ""
    INSTALLED.write_text(begun, "utf-8")
    wait = "a minute" if files == READ else "minutes"
    print(f"Installing {' and '.join(files)} into .venv: {wait} the first time; it then takes {size(files)}")
    status = None
    try:
        status = logged(pip_install(PYTHON, files, index))
    finally:  # also after Ctrl+C, which ends many a wait for a network
        log = LOG.read_text("utf-8", "replace")
        if status != 0 and "Installing collected packages" not in log:  # .venv is what it was
            INSTALLED.write_text(before, "utf-8") if before else INSTALLED.unlink()
    if status != 0:
        sys.exit(install_error(log, files))
    INSTALLED.write_text(json.dumps({**have, **want, "torch index": index}), "utf-8")
    print(f"Installed in {time.monotonic() - start:.0f} s")


def make_venv(begun: str) -> None:
    """An empty .venv whose record is `begun`."""
    if not (importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip")):
        sys.exit("This Python cannot make a virtual environment. On Debian and Ubuntu: sudo apt install python3-venv")
    if VENV.exists():
        if VENV.samefile(sys.prefix):
            sys.exit("The .venv has to be made again, and you are inside it: run `deactivate`, then this command.")
        print("Removing .venv: it is unfinished, was moved, or belongs to another Python")
        PYTHON.unlink(missing_ok=True)  # first: without its record, a .venv that has a Python passes as yours
        shutil.rmtree(VENV)
    VENV.mkdir()
    INSTALLED.write_text(begun, "utf-8")
    if call([sys.executable, "-m", "venv", VENV]) != 0:
        sys.exit(f"{sys.executable} -m venv failed; its message is above.")


def logged(command: list) -> int:
    """Exit status of a long command that writes to `LOG`; every ten seconds, the line it is at."""
    start = time.monotonic()
    with LOG.open("wb") as log:
        process = subprocess.Popen([str(word) for word in command], cwd=ROOT, stdout=log, stderr=subprocess.STDOUT)
    while True:
        try:
            return process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            steps = [line for line in LOG.read_text("utf-8", "replace").split("\n") if line[:1].strip()]
            line = steps[-1] if steps else ""  # what pip indents is detail
            print(f"  {time.monotonic() - start:4.0f} s  {line[:100]}", flush=True)


def install_error(log: str, files: list) -> str:
    """The end of pip's log, and what to do."""
    missing = re.search(r"No matching distribution found for (\S+)", log)
    if re.search("No space left", log):
        fix = f"The disk is full: {' and '.join(files)} need {size(files)}."
    elif "ResolutionImpossible" in log:  # before the network: pip also got over a slow reply
        fix = f"The pinned versions contradict each other: undo the last change to them. The whole log is {LOG}."
    elif re.search(NETWORK, log, re.IGNORECASE):
        fix = "No connection to the package index: look at the network, the proxy, and --torch-index if you gave it."
    elif missing:
        fix = f"There is no {missing[1]} for Python {sys.version.split()[0]} on {sys.platform}: use Python 3.11."
    else:
        fix = f"pip could not install the packages; the whole log is {LOG}."
    tail = "\n".join(log.rstrip().split("\n")[-12:])
    return f"{tail}\n\n{fix}\nThen run the same command again: what is downloaded already is in pip's cache."


def inputs() -> dict:
    """Two hashes: of the files that Sphinx updates page by page, and of those that affect all pages."""
    found = [path for name in INPUTS for path in [ROOT / name, *sorted((ROOT / name).rglob("*"))] if path.is_file()]
    caches = re.compile(r"(^|/)(\.|__pycache__/)")  # hidden folders include ruff's and JupyterLab's caches
    found = [path for path in found if not caches.search(path.relative_to(ROOT).as_posix())]
    kinds: dict = {"pages": [], "shape": []}
    for path in found:
        kinds["pages" if path.suffix in (".md", ".ipynb", ".css") else "shape"].append(path)
    return {kind: digest(paths) for kind, paths in kinds.items()}


def built() -> dict:
    """Hashes of the pages' inputs; {} if they are gone, or overwritten by a plain `jupyter-book build`."""
    record = read_json(BUILT)
    page = PAGES / "index.html"
    return record if page.is_file() and record.pop("written", None) == page.stat().st_mtime_ns else {}


def place() -> None:
    """Move a successful build into place; after an interruption, finish moving it."""
    if not DONE.exists():
        return
    BUILT.unlink(missing_ok=True)
    for name, old in PARTS.items():
        new = NEXT / name
        if new.exists():
            old.parent.mkdir(exist_ok=True)
            if old.exists():
                shutil.rmtree(OLD, ignore_errors=True)
                old.rename(OLD)
            new.rename(old)
    DONE.replace(BUILT)
    for folder in (OLD, NEXT):
        shutil.rmtree(folder, ignore_errors=True)


def build() -> bool:
    """Build the book unless it is up to date. A warning is an error, and leaves the existing pages unchanged."""
    place()
    start, want, have = time.monotonic(), inputs(), built()
    page = PAGES / "index.html"
    if want != have:
        shutil.rmtree(NEXT, ignore_errors=True)
        # Sphinx reads only changed pages again, and repeats warnings only for them. So start from the last good build,
        # to read every page that has failed since; or from nothing, if an input that affects all pages has changed.
        if want["shape"] == have.get("shape"):
            for name, good in PARTS.items():
                if good.exists():
                    shutil.copytree(good, NEXT / name)  # keeps the times, by which Sphinx detects changes
        print("Building the book", flush=True)
        if call([PYTHON, "-P", ROOT / "tools" / "book.py", NEXT]) != 0:
            shutil.rmtree(NEXT, ignore_errors=True)
            print("The book has errors; see the lines above.")
            if page.is_file():
                print(f"The pages are still those of the last build without errors: {page}")
            return False
        written = (NEXT / "html" / "index.html").stat().st_mtime_ns
        DONE.write_text(json.dumps({**want, "written": written}), "utf-8")
        place()
        print(f"Built in {time.monotonic() - start:.0f} s")
    print(f"The book is up to date. Open {page}\n  in a browser: {page.as_uri()}")
    if RUN[0] not in read_json(INSTALLED):
        print("To run the notebooks: python3 course.py lab, which first installs PyTorch and JupyterLab.")
    return True


def tee(command: list) -> tuple:
    """Run a command and show its output; return its exit status and its lines."""
    lines = []
    options: dict = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "encoding": "utf-8", "errors": "replace"}
    env = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    with subprocess.Popen([str(word) for word in command], cwd=ROOT, env=env, **options) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            lines.append(line.strip("= \n"))
    return process.returncode, [line for line in lines if line] or [""]


def stages(part: str) -> dict:
    """The commands of each stage of the tests. `part` is "package", or "" for everything."""
    # a file stays on one core, because its tests share a browser, a built page or a notebook's state; files run in the
    # order of their folders, with long ones early, so that no core waits for another at the end; three workers on two
    # cores take 0.85 of the time of two, because a test of a page waits for its browser
    workers = min(4, (os.cpu_count() or 1) * 3 // 2)
    pytest = ["pytest", "-n", f"{workers}", "--dist=loadfile", "--no-loadscope-reorder"]
    style = {"lint": ["ruff", "check", "."], "format": ["ruff", "format", "--check", "."], "types": ["mypy"]}
    if part == "package":
        return {**style, "package": [*pytest, "tests/package", "tests/checks"]}
    return {
        **style,
        # separate: coverage slows down all code, and the package's own tests must reach 100 %
        "package": [*pytest, "tests/package", "--cov", "--cov-fail-under=100"],
        "tests": [*pytest, "tests", "notebooks", "--ignore=tests/package"],
    }


def test(part: str) -> bool:
    """Run every stage, even after a failure; then print a table."""
    start = time.monotonic()
    rows = [] if part else [("build", build(), "book", time.monotonic() - start)]
    counts: collections.Counter = collections.Counter()
    notes = []
    for stage, words in stages(part).items():
        print(f"\n--- {stage}: {' '.join(words)}", flush=True)
        start = time.monotonic()
        status, lines = tee([PYTHON, "-m", *words])
        rows.append((stage, status == 0, lines[-1], time.monotonic() - start))
        if words[0] == "pytest":
            counts.update({name: int(n) for n, name in re.findall(r"(\d+) (passed|failed|skipped|errors?)", lines[-1])})
            notes += [line for line in lines if line.startswith(("SKIPPED [", "FAILED ", "ERROR ", "FAIL Required"))]
    print("", *notes, "", sep="\n")
    for stage, good, result, seconds in rows:
        print(f"{stage:10} {'ok' if good else 'FAILED':7} {seconds:6.1f} s  {result}")
    good = all(row[1] for row in rows)
    print(f"{'All good' if good else 'Not good'}: " + ", ".join(f"{n} {name}" for name, n in counts.items()))
    return good


@functools.lru_cache(maxsize=500)
def zipped(path: pathlib.Path, changed: int) -> bytes:
    """A file, compressed; cached until the file changes."""
    return gzip.compress(path.read_bytes())


class Pages(http.server.SimpleHTTPRequestHandler):
    """Static files, compressed if the browser accepts that, as from a real web server."""

    def guess_type(self, path) -> str:
        """The type from our own table: on Windows, Python's comes from the registry, where .js may be plain text."""
        return TYPES.get(pathlib.Path(path).suffix, "application/octet-stream")

    def send_head(self):
        name = self.translate_path(self.path)
        path = pathlib.Path(name, "index.html") if name.endswith("/") else pathlib.Path(name)
        kind = self.guess_type(str(path))
        packable = kind.startswith("text/") or kind in ("application/json", "image/svg+xml")
        if not (packable and path.is_file() and "gzip" in self.headers.get("Accept-Encoding", "")):
            return super().send_head()
        content = zipped(path, path.stat().st_mtime_ns)
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        return io.BytesIO(content)

    def end_headers(self) -> None:
        self.send_header("Vary", "Accept-Encoding")
        self.send_header("Cache-Control", "no-cache")  # show every new build at once
        super().end_headers()

    def log_request(self, code="-", size="-") -> None:
        """Do not log successful requests; errors are still shown."""


class Server(http.server.ThreadingHTTPServer):
    allow_reuse_address = os.name != "nt"  # on Windows it would let two servers share a port


def web_server(folder: pathlib.Path, port: int) -> Server:
    return Server(("127.0.0.1", port), functools.partial(Pages, directory=str(folder)))


def serve(port: int) -> bool:
    try:
        server = web_server(PAGES, port)
    except OSError as error:
        other = port + 1 if 1024 <= port < 65535 else 8000  # ports below 1024 need privileges
        sys.exit(f"Port {port} cannot be used ({error.strerror}). Choose another: --port {other}")
    with server:
        print(f"The book is at http://127.0.0.1:{server.server_port}/  (Ctrl+C stops)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("\nStopped")
    return True


def lab() -> bool:
    signal.signal(signal.SIGINT, lambda *_: None)  # leave Ctrl+C to JupyterLab, which asks before it stops
    return call([PYTHON, "-m", "jupyterlab"], cwd=ROOT / "notebooks") == 0


def refresh(notebooks: list) -> bool:
    return call([PYTHON, "-P", ROOT / "tools" / "refresh.py", *map(os.path.abspath, notebooks)]) == 0


def pack() -> bool:
    return build() and call([PYTHON, "-m", "tools.pack"]) == 0


def speed(names: list, with_install: bool) -> bool:
    signal.signal(signal.SIGINT, lambda *_: None)  # leave Ctrl+C to the measuring process, which prints what is left
    return call([PYTHON, "-m", "tools.speed", *(["--install"] if with_install else []), *names]) == 0


def mutants(names: list, survivors: bool) -> bool:
    return call([PYTHON, "-m", "tools.mutants", *(["--survivors"] if survivors else []), *names]) == 0


def port_number(text: str) -> int:
    if not re.fullmatch("[0-9]+", text) or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"a port is a number from 1 to 65535, not {text!r}; the default is 8000")
    return int(text)


def main(about: str) -> bool:
    """Run the command line; `about` is the text for --help."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["build", "test", "serve", "lab", "refresh", "pack", "speed", "mutants"])
    parser.add_argument(
        "names",
        nargs="*",
        metavar="name",
        help="test: package (a minute); refresh: only these notebooks; speed: only these measures; "
        "mutants: only these parts of the code",
    )
    parser.add_argument(
        "--torch-index",
        metavar="URL",
        help="take torch from this package index, e.g. its CPU build, now or when a command first needs it",
    )
    parser.add_argument("--install", action="store_true", help="speed: also the install, which needs the network")
    parser.add_argument("--survivors", action="store_true", help="mutants: only those that no test noticed last time")
    parser.add_argument("--port", type=port_number, help="serve: the port (default: 8000)")
    args = parser.parse_intermixed_args()
    if args.names and args.command not in ("test", "refresh", "speed", "mutants"):
        parser.error(f"{args.command} takes no names; only test, refresh, speed and mutants do")
    if args.command == "test" and args.names not in ([], ["package"]):
        parser.error(f"test takes package, or nothing for all tests; got {' '.join(args.names)}")
    if args.port and args.command != "serve":
        parser.error(f"{args.command} takes no --port; only serve does")
    if args.install and args.command != "speed":
        parser.error(f"{args.command} takes no --install; only speed does")
    if args.survivors and args.command != "mutants":
        parser.error(f"{args.command} takes no --survivors; only mutants does")
    needed = {"build": READ, "serve": READ, "lab": RUN, "refresh": RUN, "test": TEST, "pack": TEST}
    needed |= {"speed": TEST, "mutants": MUTANTS}
    install(needed[args.command], args.torch_index)
    if args.command == "serve":
        good = build()
        if not (PAGES / "index.html").is_file():
            return False
        return serve(args.port or 8000) and good
    if args.command == "refresh":
        return refresh(args.names)
    if args.command == "speed":
        return speed(args.names, args.install)
    if args.command == "mutants":
        return mutants(args.names, args.survivors)
    if args.command == "test":
        return test("".join(args.names))
    return {"build": build, "lab": lab, "pack": pack}[args.command]()


def run(about: str) -> None:
    """Run the command, and exit with its status."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # output redirected on Windows may use a code page without σ and ✓
    try:
        sys.exit(0 if main(about) else 1)
    except KeyboardInterrupt:
        sys.exit("\nInterrupted. Run the same command again to continue.")
