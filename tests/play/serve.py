"""A headless browser for local pages, which post their results back."""

from __future__ import annotations

import json
import mimetypes
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

CHROMIUM = next(
    (program for name in ("chromium", "chromium-browser", "google-chrome") if (program := shutil.which(name))), None
)
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run")


def dump_page(url: str, profile: Path, seconds: float = 15) -> str:
    """Return the document of a page after some seconds of the page's virtual time."""
    words = [
        CHROMIUM,
        *FLAGS,
        f"--user-data-dir={profile}",
        f"--virtual-time-budget={1000 * seconds:.0f}",
        "--dump-dom",
    ]
    return subprocess.run([*words, url], capture_output=True, text=True, check=True, timeout=120).stdout


@contextmanager
def browser(url: str, profile: Path) -> Iterator[None]:
    """Show a page within the block."""
    words = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", url]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


class Answer:
    """A server of files on a free local port, which waits for the post of a page."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.posted: bytes | None = None
        self._done = threading.Event()
        answer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                content = files.get(self.path)
                self.send_response(200 if content is not None else 404)
                kind = mimetypes.guess_type(self.path)[0] or "text/javascript"
                self.send_header("Content-Type", f"{kind}; charset=utf-8")
                self.end_headers()
                self.wfile.write(content or b"")

            def do_POST(self) -> None:
                answer.posted = self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(204)
                self.end_headers()
                answer._done.set()

            def log_message(self, *words: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def wait(self, seconds: float) -> bytes:
        """Return the post of the page."""
        assert self._done.wait(seconds), "the page posted nothing"
        self._server.shutdown()
        self._server.server_close()
        assert self.posted is not None
        return self.posted


def ask_page(page: Path, script: str, profile: Path, seconds: float = 60) -> Any:
    """Return the result of a script as JSON. The script runs a second after a page on the disk was opened.

    The script may use `all(selector)`, `find(selector)` and `await until(condition)`.
    """
    answer = Answer({})
    running = f"""
        const all = (selector) => [...document.querySelectorAll(selector)], find = (selector) => all(selector)[0];
        const wait = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
        const until = async (holds) => {{ while (!holds()) await wait(20); }};
        wait(1000).then(async () => {{{script}}}).catch((error) => error.stack).then((said) =>
          fetch("{answer.url}", {{method: "POST", mode: "no-cors", body: JSON.stringify(said)}}));
    """
    text = page.read_text(encoding="utf-8").replace("</body>", f"<script>{{{running}}}</script></body>")
    page.write_text(text, encoding="utf-8")
    with browser(page.as_uri(), profile):
        return json.loads(answer.wait(seconds))


def ask_narrow_page(folder: Path, page: str, width: int, script: str, profile: Path, seconds: float = 60) -> Any:
    """Return, as JSON, the result of a script about a page of a folder, shown in a frame that is `width` pixels wide.

    A window of a browser without a screen cannot be that narrow. The script may use `page`, the document of the frame,
    and `wait`.
    """
    files = {f"/{path.relative_to(folder)}": path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    frame = f"""<body><iframe src="/{page}" style="border: 0; width: {width}px; height: 900px"></iframe><script>
        const wait = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
        document.querySelector("iframe").onload = ({{ target }}) => (async () => {{
          const page = target.contentDocument;
          {script}
        }})().catch((error) => error.stack).then((said) =>
          fetch("/", {{method: "POST", body: JSON.stringify(said)}}));
    </script></body>"""
    answer = Answer({**files, "/frame.html": frame.encode()})
    with browser(f"{answer.url}/frame.html", profile):
        return json.loads(answer.wait(seconds))
