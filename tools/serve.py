"""A web server for the built book. Standard library only."""

import functools
import gzip
import http.server
import io
import os
import pathlib
import sys

from tools import checkout

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


def serve(port: int) -> None:
    """Serve the built pages until Ctrl+C."""
    try:
        server = web_server(checkout.PAGES, port)
    except OSError as error:
        other = port + 1 if 1024 <= port < 65535 else 8000  # ports below 1024 need privileges
        sys.exit(f"Port {port} cannot be used ({error.strerror}). Choose another: --port {other}")
    with server:
        print(f"The book is at http://127.0.0.1:{server.server_port}/  (Ctrl+C stops)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("\nStopped")


class Server(http.server.ThreadingHTTPServer):
    """One thread a request: a browser asks for a page's files at once."""

    allow_reuse_address = os.name != "nt"  # on Windows it would let two servers share a port


def web_server(folder: pathlib.Path, port: int) -> Server:
    """A server for the files of a folder; port 0 takes any that is free."""
    return Server(("127.0.0.1", port), functools.partial(Pages, directory=str(folder)))


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
        content = compressed(path, path.stat().st_mtime_ns)
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


@functools.lru_cache(maxsize=500)
def compressed(path: pathlib.Path, changed: int) -> bytes:
    """A file, compressed; cached until the file changes."""
    return gzip.compress(path.read_bytes())
