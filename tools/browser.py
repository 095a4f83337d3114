"""The Chromium of this machine, and how the course starts it: for the tests, and to print the book."""

import os
import shutil
import sys
from pathlib import Path

OPTIONS = [
    f"--{name}"
    for name in (
        "headless",
        "no-sandbox",
        "disable-gpu",
        "disable-quic",
        "no-first-run",
        "disable-background-networking",
        "disable-component-update",
        "disable-sync",
    )
]
FIX = "Chromium: apt install chromium-headless-shell, or set CHROMIUM to the path of Chrome"


def chromium_path() -> str | None:
    """Chromium or Chrome on this machine; the environment variable CHROMIUM names another one."""
    if named := os.environ.get("CHROMIUM"):
        return named
    usual: list[Path] = []
    # the first is Chromium without its window, which takes half the time of the others
    names = "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome"
    on_path = (shutil.which(name) for name in names)
    if sys.platform == "darwin":
        usual = [Path("/Applications", f"{app}.app/Contents/MacOS", app) for app in ("Chromium", "Google Chrome")]
    elif sys.platform == "win32":
        roots = [os.environ.get(name, "") for name in ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA")]
        usual = [Path(root, app, "Application/chrome.exe") for root in roots for app in ("Google/Chrome", "Chromium")]
    return next(filter(None, on_path), None) or next((str(path) for path in usual if path.is_file()), None)
