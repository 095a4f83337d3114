"""Measure Python in the page, in browsers: `python -m tools.in_page.measure [chromium] [firefox] [webkit]`.

It opens a sheet from a local server, then over 10 Mbit/s, and prints what is loaded and how long a result takes. Then
it types into an editor as a person does (keys.py), and runs the right answer and every named mistake of all exercises
in that browser, compares what the checks say with what they say here, and reads the story that the model tells. It runs
every cell of the chapters that has *Try it*, too, and compares what it prints with the book. `python3 course.py speed
in-page` stores the times.

Chromium needs Playwright. Firefox needs only itself; FIREFOX may name its command. WebKit is Safari's engine: on Debian
it comes with `apt install webkit2gtk-driver xvfb`. Safari itself needs a Mac, and is not driven.
"""

import argparse
import contextlib
import functools
import http.server
import importlib.util
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from tools import checkout, serve
from tools.browser import FIX, OPTIONS, chromium_path
from tools.in_page.keys import actions, as_typed, keys

PAGE = "notebooks/exercises/ex02-layer-norm.html"
LAST = "notebooks/exercises/ex06-make-it-speak.html"
SLOW = 10e6 / 8  # bytes a second

#: Press Check; then five times more, and once after Stop.
FIRST = """async () => {
  const box = document.querySelector("[data-exercise=layer_norm]");
  globalThis.check = () => new Promise((resolve) => {
    const begun = performance.now();
    box.querySelector("[data-check]").click();
    const look = () => {
      if (box.querySelector("[data-verdict]").textContent) resolve((performance.now() - begun) / 1000);
      else setTimeout(look, 2);
    };
    setTimeout(look);
  });
  return check();
}"""
LATER = """async () => {
  const box = document.querySelector("[data-exercise=layer_norm]"), times = [];
  for (let k = 0; k < 5; k++) times.push(await check());
  box.querySelector("[data-stop]").disabled = false;
  box.querySelector("[data-stop]").click();
  return [times, await check()];
}"""

#: Run code in a Python of its own, with the settings of the page; what it prints.
RUN = """async (code) => {
  const settings = JSON.parse(document.querySelector("[data-in-page]").dataset.inPage);
  globalThis.python ??= new SubnormPython(settings, () => {});
  let printed = "";
  const { error } = await python.run({ cell: "test", code, check: "" }, (text) => { printed += text; });
  return error || printed;
}"""

VERDICTS = '''
import json
import numpy as np
from subnorm_lab.checks import SETS
from subnorm_lab.checks.collect import outcomes_of
from subnorm_lab.checks.exercise import CLASS_SEED

exercises = {ex.name: ex for sheet in SETS.values() for ex in sheet if ex.way == "function"}

def verdicts(name):
    """What the check of an exercise says of its right answer, and of each mistake."""
    exercise = exercises[name]
    cases = exercise.cases(np.random.default_rng(CLASS_SEED))
    answers = {"right": exercise.reference} | {mistake.tag: mistake.answer for mistake in exercise.mistakes}
    found = {tag: outcomes_of(answer, cases, exercise.way) for tag, answer in answers.items()}
    return {tag: str(exercise.judge(cases, outcomes)) for tag, outcomes in found.items()}
'''


STORY = """
from subnorm_lab import checks
checks.story(**{exercise.name: exercise.reference for exercise in checks.SETS["ex06"]})
"""

#: A Python with what the cells of all chapters need.
ALL = """async (settings) => {
  globalThis.python = new SubnormPython(JSON.parse(settings), () => {});
  return true;
}"""
#: One Python for all chapters, so that the model tells its texts once; in the page each chapter has its own.
OUTPUTS = """
import json
from subnorm_book.in_page.cells import Cells

def outputs(cells, tries):
    session, found = Cells(cells), {}
    for name, then in tries:
        sent = []
        error = json.loads(session.run(name, "{}", json.dumps(then), sent.append))["error"]
        found[name] = ["".join(sent).rstrip(), error]
    return found
"""


class BrowserNotFound(Exception):
    """A browser is not on this machine; the message says what to install."""


class Tab(Protocol):
    version: str

    def open(self, address: str) -> None: ...
    def evaluate(self, function: str, *arguments: str) -> Any: ...
    def press(self, strokes: Iterable[str]) -> None: ...


class Counting(serve.Pages):
    """The server of the course, which counts what it sends, at a limited rate."""

    sent = 0
    rate = float("inf")  # bytes a second, all connections together
    lock = threading.Lock()

    def copyfile(self, source: Any, outputfile: Any) -> None:
        while piece := source.read(1 << 14):
            with Counting.lock:
                Counting.sent += len(piece)
                time.sleep(len(piece) / Counting.rate)
            outputfile.write(piece)


class Chromium:
    def __init__(self, page: Any, version: str) -> None:
        self.page, self.version = page, version

    def open(self, address: str) -> None:
        self.page.goto(address, wait_until="load")

    def evaluate(self, function: str, *arguments: str) -> Any:
        return self.page.evaluate(function, *arguments)

    def press(self, strokes: Iterable[str]) -> None:
        for *held, key in map(keys, strokes):
            for one in held:
                self.page.keyboard.down(one)
            self.page.keyboard.press(key)
            for one in reversed(held):
                self.page.keyboard.up(one)


@contextmanager
def chromium() -> Iterator[Tab]:
    path = chromium_path()
    if not path or not importlib.util.find_spec("playwright"):
        raise BrowserNotFound(f"There is no Chromium, or no Playwright to drive it. {FIX}.")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=OPTIONS)
        page = browser.new_page()
        page.set_default_timeout(300_000)
        yield Chromium(page, browser.version)
        browser.close()


def inside(function: str, arguments: tuple[str, ...]) -> str:
    """A script that calls a function in the page, and tells the page what comes out."""
    call = f"({function})(...{json.dumps(arguments)})"
    return f"{call}.then((value) => dispatchEvent(new CustomEvent('told', {{ detail: JSON.stringify(value) }})))"


#: A driver's own scripts may not see what the scripts of the page have declared; one in the page does.
TELL = """
    const [inside, done] = arguments;
    addEventListener("told", (event) => done(event.detail), { once: true });
    document.head.append(Object.assign(document.createElement("script"), { textContent: inside }));
"""


class Firefox:
    """Firefox by Marionette, the protocol that it brings: https://firefox-source-docs.mozilla.org/testing/marionette/"""

    def __init__(self, port: int) -> None:
        for _ in range(600):
            try:
                self.socket = socket.create_connection(("127.0.0.1", port))
                break
            except OSError:
                time.sleep(0.1)
        self.hear()
        self.version = self.say("WebDriver:NewSession", {})["capabilities"]["browserVersion"]
        self.say("WebDriver:SetTimeouts", {"script": 600_000, "pageLoad": 600_000})

    def hear(self) -> Any:
        size = b""
        while (byte := self.socket.recv(1)) != b":":
            size += byte
        text = b""
        while len(text) < int(size):
            text += self.socket.recv(int(size) - len(text))
        return json.loads(text)

    def say(self, command: str, arguments: dict[str, Any]) -> Any:
        text = json.dumps([0, 1, command, arguments]).encode()
        self.socket.sendall(b"%d:%b" % (len(text), text))
        _, _, error, result = self.hear()
        if error:
            raise RuntimeError(f"Firefox: {error['message']}")
        return result

    def open(self, address: str) -> None:
        self.say("WebDriver:Navigate", {"url": address})

    def evaluate(self, function: str, *arguments: str) -> Any:
        arguments_ = {"script": TELL, "args": [inside(function, arguments)]}
        return json.loads(self.say("WebDriver:ExecuteAsyncScript", arguments_)["value"])

    def press(self, strokes: Iterable[str]) -> None:
        self.say("WebDriver:PerformActions", {"actions": actions(strokes)})


@contextmanager
def firefox() -> Iterator[Tab]:
    command = os.environ.get("FIREFOX") or shutil.which("firefox-esr") or shutil.which("firefox")
    if not command:
        raise BrowserNotFound("There is no Firefox: install it, or set FIREFOX to its command.")
    with tempfile.TemporaryDirectory() as profile:
        port = free_port()
        Path(profile, "user.js").write_text(f'user_pref("marionette.port", {port});\n', "utf-8")
        words = [command, "-headless", "-marionette", "-no-remote", "-profile", profile]
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # its log
        try:
            tab = Firefox(port)
            with tab.socket:
                yield tab
        finally:
            process.terminate()
            process.wait()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


class WebKit:
    """WebKitGTK's MiniBrowser by its driver: https://www.w3.org/TR/webdriver2/"""

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}/session"
        wanted = {"alwaysMatch": {"timeouts": {"script": 600_000, "pageLoad": 600_000}}}
        for _ in range(600):
            try:
                made = self.say("", {"capabilities": wanted})
                break
            except urllib.error.URLError as error:
                if isinstance(error, urllib.error.HTTPError):
                    raise RuntimeError(f"WebKit: {error.read().decode()}") from None
                time.sleep(0.1)  # the driver is starting
        self.version = made["capabilities"]["browserVersion"]
        self.address += f"/{made['sessionId']}"

    def say(self, path: str, arguments: dict[str, Any], method: str = "POST") -> Any:
        data = json.dumps(arguments).encode() if method == "POST" else None
        request = urllib.request.Request(self.address + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)["value"]

    def open(self, address: str) -> None:
        self.say("/url", {"url": address})

    def evaluate(self, function: str, *arguments: str) -> Any:
        return json.loads(self.say("/execute/async", {"script": TELL, "args": [inside(function, arguments)]}))

    def press(self, strokes: Iterable[str]) -> None:
        self.say("/actions", {"actions": actions(strokes)})


@contextmanager
def webkit() -> Iterator[Tab]:
    driver, screen = shutil.which("WebKitWebDriver"), shutil.which("xvfb-run")
    if not driver or not (screen or os.environ.get("DISPLAY")):
        raise BrowserNotFound("There is no WebKit: on Debian, apt install webkit2gtk-driver xvfb.")
    port = free_port()
    words = [] if os.environ.get("DISPLAY") else [str(screen), "-a"]
    process = subprocess.Popen([*words, driver, f"--port={port}"], stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        tab = WebKit(port)
        yield tab
        tab.say("", {}, "DELETE")
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


BROWSERS = {"chromium": chromium, "firefox": firefox, "webkit": webkit}


def memory() -> int:
    """Bytes of memory of all processes that this one has started, shared pages in shares; 0 except on Linux."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    found, size = {os.getpid()}, 0
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    for pid in found - {os.getpid()}:
        with contextlib.suppress(OSError):
            size += 1024 * int(re.findall(r"^Pss: +(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M)[0])
    return size


def times(browser: str, rounds: int) -> dict[str, Any]:
    """Rows for the table of tools/speed.py: what a page loads and how long its results take, in new browsers."""
    rows: dict[str, Any] = {}

    def add(name: str, seconds: float) -> None:
        rows.setdefault(name, {"seconds": [], "cpu": None})["seconds"].append(float(f"{seconds:.3g}"))

    with served() as base:
        for k in range(2 * rounds):
            Counting.rate = (float("inf"), SLOW)[k % 2]
            with BROWSERS[browser]() as tab:  # its cache is empty
                tab.open(base + PAGE)
                time.sleep(1)  # what the page loads late
                before, Counting.sent = memory(), 0
                first = tab.evaluate(FIRST)
                if Counting.rate == SLOW:
                    add("over 10 Mbit/s", first)
                    continue
                add("first result", first)
                rows["first result"] |= {"bytes": Counting.sent, "version": tab.version}
                if before:
                    rows["memory"] = {"bytes": memory() - before}
                later, anew = tab.evaluate(LATER)
                add("next results", sorted(later)[2])
                add("after Stop", anew)
    return rows


@contextmanager
def served() -> Iterator[str]:
    """The address of the book, from a server that counts."""
    handler = functools.partial(Counting, directory=str(checkout.PAGES))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def compared(tab: Tab, base: str) -> bool:
    """Whether all checks say in the browser what they say here, and the model tells the same story."""
    here: dict[str, Any] = {}
    exec(VERDICTS, here)
    tab.open(base + PAGE)
    tab.evaluate(RUN, VERDICTS)
    same = different = 0
    for name in here["exercises"]:
        there = json.loads(tab.evaluate(RUN, f"print(json.dumps(verdicts({name!r})))"))
        wanted = here["verdicts"](name)
        for tag in wanted:
            if there.get(tag) == wanted[tag]:
                same += 1
            else:
                different += 1
                print(f"  {name}, {tag}:\n{there.get(tag)}\n  but here\n{wanted[tag]}")
    print(f"  {len(here['exercises'])} exercises, {same} verdicts as here, {different} others")
    tab.open(base + LAST)
    told = "✓ story" in tab.evaluate(RUN, STORY)
    print(f"  the model {'tells its story' if told else 'tells another story than here'}")
    return not different and told


def tried(tab: Tab, base: str) -> Iterator[tuple[str, str, str]]:
    """Each cell that has *Try it*: its name, what it prints in the page, and in the book; of an error, the message.

    A hidden cell that runs after another one is not run once more.
    """
    books = {path.stem: path.read_text("utf-8") for path in sorted((checkout.PAGES / "_static" / "try").glob("*.json"))}
    tab.open(base + PAGE)
    tab.evaluate(ALL, books.pop("settings"))
    tab.evaluate(RUN, OUTPUTS)
    for chapter, about in ((name, json.loads(text)) for name, text in books.items()):
        after = {name for one in about["tries"].values() for name in one["then"]}
        tries = {name: one for name, one in about["tries"].items() if name not in after}
        names = [[name, one["then"]] for name, one in tries.items()]
        call = f"print(json.dumps(outputs({json.dumps(about['cells'])!r}, {names!r})))"
        for name, (printed, error) in json.loads(tab.evaluate(RUN, call)).items():
            said = tries[name]["said"]
            if error:
                printed, said = printed + error.split("\n")[-1].partition(": ")[2], said.partition(": ")[2]
            yield f"{chapter}, {name}", printed, said


def as_in_the_book(tab: Tab, base: str) -> bool:
    """Whether all cells that have *Try it* print in the browser what they print in the book."""
    found = list(tried(tab, base))
    different = [(cell, printed, said) for cell, printed, said in found if printed != said]
    for cell, printed, said in different:
        print(f"  {cell}:\n{printed}\n  but in the book\n{said}")
    print(
        f"  {len(found)} cells of the chapters, {len(found) - len(different)} as in the book, {len(different)} others"
    )
    return not different


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("browsers", nargs="*", choices=[*BROWSERS, []], default=["chromium"])
    same = True
    for browser in parser.parse_args(words).browsers:
        try:
            rows = times(browser, 1)
        except BrowserNotFound as error:
            sys.exit(str(error))
        print(f"{browser} {rows['first result']['version']}:")
        for name, row in rows.items():
            shown = f"  {row['seconds'][0]:.3g} s" if "seconds" in row else ""
            print(f"  {name:16}{shown:>10}" + (f"  {row['bytes'] / 1e6:.2f} MB" if "bytes" in row else ""), flush=True)
        Counting.rate = float("inf")
        with served() as base, BROWSERS[browser]() as tab:
            same &= as_typed(tab, base) & compared(tab, base) & as_in_the_book(tab, base)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
