"""Measure Python in the page, in a browser: `python -m tools.in_page.measure [chromium | firefox]`.

It opens a sheet from a local server, then over 10 Mbit/s, and prints what is loaded and how long a result takes. Then
it runs the right answer and every named mistake of all exercises in that browser, and compares what the checks say with
what they say here. Chromium needs Playwright. Firefox needs only itself; FIREFOX may name its command.
"""

import argparse
import functools
import http.server
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from tools import course

PAGE = "notebooks/exercises/ex02-layer-norm.html"
SLOW = 10e6 / 8  # bytes a second

#: Press Check, six times; then once more after Stop.
TIMES = """async () => {
  const box = document.querySelector("[data-exercise=layer_norm]");
  const check = () => new Promise((resolve) => {
    const begun = performance.now();
    box.querySelector("[data-check]").click();
    const look = () => {
      if (box.querySelector("[data-verdict]").textContent) resolve(performance.now() - begun);
      else setTimeout(look, 2);
    };
    setTimeout(look);
  });
  const times = [];
  for (let k = 0; k < 6; k++) times.push(await check());
  box.querySelector("[data-stop]").disabled = false;
  box.querySelector("[data-stop]").click();
  return [...times, await check()];
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
from subnorm.checks import SETS
from subnorm.checks.collect import collect
from subnorm.checks.exercise import CLASS_SEED

exercises = {ex.name: ex for sheet in SETS.values() for ex in sheet if ex.way == "function"}

def verdicts(name):
    """What the check of an exercise says of its right answer, and of each mistake."""
    exercise = exercises[name]
    cases = exercise.cases(np.random.default_rng(CLASS_SEED))
    answers = {"right": exercise.reference} | {mistake.tag: mistake.answer for mistake in exercise.mistakes}
    return {tag: str(exercise.judge(cases, collect(answer, cases, exercise.way))) for tag, answer in answers.items()}
'''


class Tab(Protocol):
    def open(self, address: str) -> None: ...
    def evaluate(self, function: str, *arguments: str) -> Any: ...


class Counting(course.Pages):
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
    def __init__(self, page: Any) -> None:
        self.page = page

    def open(self, address: str) -> None:
        self.page.goto(address, wait_until="load")

    def evaluate(self, function: str, *arguments: str) -> Any:
        return self.page.evaluate(function, *arguments)


@contextmanager
def chromium() -> Iterator[Tab]:
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page()
        page.set_default_timeout(300_000)
        yield Chromium(page)
        browser.close()


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
        self.say("WebDriver:NewSession", {})
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
        """What a function in the page gives. Marionette's own scripts do not see what the page's have declared."""
        call = f"({function})(...{json.dumps(arguments)})"
        inside = f"{call}.then((value) => dispatchEvent(new CustomEvent('told', {{ detail: JSON.stringify(value) }})))"
        script = """
            const [inside, done] = arguments;
            addEventListener("told", (event) => done(event.detail), { once: true });
            document.head.append(Object.assign(document.createElement("script"), { textContent: inside }));
        """
        return json.loads(self.say("WebDriver:ExecuteAsyncScript", {"script": script, "args": [inside]})["value"])


@contextmanager
def firefox() -> Iterator[Tab]:
    command = os.environ.get("FIREFOX") or shutil.which("firefox-esr") or shutil.which("firefox")
    if not command:
        sys.exit("There is no Firefox: install it, or name its command in the environment variable FIREFOX.")
    with tempfile.TemporaryDirectory() as profile, socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
        free.close()
        Path(profile, "user.js").write_text(f'user_pref("marionette.port", {port});\n', "utf-8")
        words = [command, "-headless", "-marionette", "-no-remote", "-profile", profile]
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # its log
        try:
            yield Firefox(port)
        finally:
            process.terminate()
            process.wait()


def first_results(tab: Tab, base: str, rate: float) -> None:
    """Print what a page loads and how long its results take. A new query keeps the cache of the last page out of it."""
    Counting.rate, Counting.sent = rate, 0
    tab.open(f"{base}{PAGE}?{rate}")
    time.sleep(1)  # what the page loads late
    before = Counting.sent
    first, *later, anew = tab.evaluate(TIMES)
    print(f"  the page {before / 1e6:.2f} MB; after the click {(Counting.sent - before) / 1e6:.2f} MB (at most 9)")
    print(f"  first result {first / 1e3:.2f} s; later {sorted(later)[2]:.0f} ms; after Stop {anew / 1e3:.2f} s")


def compared(tab: Tab, base: str) -> bool:
    """Whether all checks say in the browser what they say here."""
    Counting.rate = float("inf")
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
    return not different


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("browser", nargs="?", choices=["chromium", "firefox"], default="chromium")
    started = {"chromium": chromium, "firefox": firefox}[parser.parse_args().browser]
    handler = functools.partial(Counting, directory=str(course.PAGES))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_port}/"
        for name, rate in (("From this machine", float("inf")), ("Over 10 Mbit/s", SLOW)):
            print(f"{name} (at most {2 if rate > SLOW else 10} s, then 100 ms):")
            with started() as tab:  # a new browser, whose cache is empty
                first_results(tab, base, rate)
        print("All exercises:")
        with started() as tab:
            same = compared(tab, base)
        server.shutdown()
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
