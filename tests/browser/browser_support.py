"""A bare page that hosts a view as any anywidget host does, over real HTTP to a handler in this process.

The page has nothing but the module and the style sheet that the package carries; messages go by POST, one after the
other as a comm carries them, answers come by server-sent events. What Chromium complains about and every request that
leaves the machine is kept.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Locator, Page

import reyn_jupyter
from reyn_jupyter.notebook.serving.connection import Connection
from reyn_jupyter.notebook.serving.hub import Hub
from reyn_jupyter.sessions.session import Session

# Chromium without windows, as Playwright itself takes it: the full one opens and frames a window for every page.
CHROMIUM = "/usr/bin/chromium-headless-shell"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-quic",
    "--disable-sync",
]
# REYN_STATIC tries a build that lies elsewhere.
STATIC = Path(os.environ.get("REYN_STATIC") or Path(reyn_jupyter.__file__).parent / "static")

# JupyterLab's own values of the variables that the style reads.
THEMES = {
    "light": "--jp-layout-color0:white;--jp-ui-font-color1:rgba(0,0,0,.87);--jp-success-color1:#388e3c;"
    "--jp-error-color1:#d32f2f;--jp-warn-color1:#f57c00;--jp-brand-color1:#1976d2;--jp-content-link-color:#1565c0",
    "dark": "--jp-layout-color0:#111;--jp-ui-font-color1:rgba(255,255,255,1);--jp-success-color1:#4caf50;"
    "--jp-error-color1:#f44336;--jp-warn-color1:#ff9800;--jp-brand-color1:#2196f3;--jp-content-link-color:#64b5f6",
}

PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>view</title><link rel="icon" href="data:,">
<link rel="stylesheet" href="/static/widget.css"></head>
<body data-jp-theme-light="{light}" style="margin:16px;background:var(--jp-layout-color0);{theme}">
<main id="host"></main>
<script type="module">
import widget from "/static/widget.js";
const listeners = new Set();
window.sent = Promise.resolve();  // settled once the server has every message that was sent until now
const traits = {{ snapshot: await (await fetch("/snapshot")).json() }};
const model = {{
  get: (name) => traits[name], set() {{}}, save_changes() {{}},
  on(name, listener) {{ if (name === "msg:custom") listeners.add(listener); }},
  off(name, listener) {{ listeners.delete(listener); }},
  send(content) {{
    const post = () => fetch("/send", {{ method: "POST", body: JSON.stringify(content) }});
    window.sent = window.sent.then(post).then(() => undefined, () => undefined);
  }},
}};
const events = new EventSource("/events");
events.onmessage = (event) => {{ for (const each of [...listeners]) each(JSON.parse(event.data), []); }};
events.onopen = async () => {{
  if (window.cleanup) return;
  const made = typeof widget === "function" ? await widget() : widget;
  let el = document.getElementById("host");
  if ({shadow}) {{
    const root = el.attachShadow({{ mode: "open" }});
    el = document.createElement("div");
    root.append(document.querySelector("link[rel=stylesheet]").cloneNode(), el);
  }}
  window.cleanup = (await made.render({{ model, el }})) ?? (() => {{}});
  document.body.dataset.ready = "yes";
}};
</script></body></html>"""


@dataclass
class Bare:
    """A page with one view in it.

    Attributes:
        page: the Playwright page.
        complaints: errors and warnings of the console, and uncaught ones.
        elsewhere: addresses asked for that are not this server's.
    """

    page: Page
    server: Served
    complaints: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)

    def requests(self) -> list[dict[str, Any]]:
        """Every message that the page has sent until now, once the server has them all."""
        self.page.evaluate("() => window.sent")
        return list(self.server.requests)


class Served:
    """The server behind one page: its snapshot, and the connection to the session."""

    def __init__(self, session: Session, snapshot: dict[str, Any], theme: str, shadow: bool = False) -> None:
        self.snapshot, self.theme, self.shadow = snapshot, theme, shadow
        self.outgoing: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        self.requests: list[dict[str, Any]] = []
        self.silent = threading.Event()  # set: the kernel does not answer any more
        self.mute: set[str] = set()  # operations that it does not answer
        self.slow = 0.0  # seconds that it takes to hear a message
        self.held: dict[
            str, list[dict[str, Any]]
        ] = {}  # operations that wait for `release`, and what was asked
        self.hub = Hub(lambda: session)
        self.connection = Connection(self.hub, self._put, None)
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def _put(self, message: dict[str, Any]) -> None:
        if not self.silent.is_set():
            self.outgoing.put(message)

    def hold(self, op: str) -> None:
        """Answer an operation no more, until `release`."""
        self.held[op] = []

    def release(self, op: str) -> None:
        """Answer what was asked since `hold`."""
        for message in self.held.pop(op):
            self.connection.receive(message)

    def close(self) -> None:
        self.connection.close()
        self.outgoing.put(None)
        self._http.shutdown()
        self._http.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        served = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path == "/snapshot":
                    self._send("application/json", json.dumps(served.snapshot).encode())
                elif self.path == "/events":
                    self._events()
                elif self.path.startswith("/static/"):
                    name = Path(urlsplit(self.path).path).name
                    kind = "text/css" if name.endswith(".css") else "text/javascript"
                    self._send(kind, (STATIC / name).read_bytes())
                else:
                    made = PAGE.format(
                        theme=THEMES[served.theme],
                        light=str(served.theme == "light").lower(),
                        shadow=str(served.shadow).lower(),
                    )
                    self._send("text/html; charset=utf-8", made.encode())

            def do_POST(self) -> None:
                message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                served.requests.append(message)
                time.sleep(served.slow)
                if message.get("op") in served.held:
                    served.held[message["op"]].append(message)
                elif not served.silent.is_set() and message.get("op") not in served.mute:
                    served.connection.receive(message)
                self._send("text/plain", b"ok")

            def _events(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                self.wfile.write(b": hello\n\n")
                self.wfile.flush()
                while True:
                    try:
                        message = served.outgoing.get(timeout=30)
                    except Empty:
                        return
                    if message is None:
                        return
                    try:
                        self.wfile.write(f"data: {json.dumps(message)}\n\n".encode())
                        self.wfile.flush()
                    except OSError:
                        return

            def _send(self, kind: str, body: bytes) -> None:
                with suppress(ConnectionError):  # the page is closed
                    self.send_response(200)
                    self.send_header("Content-Type", kind)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, *arguments: Any) -> None:
                return

        return Handler


def open_details(place: Page | Locator) -> None:
    """Press what the steps of a run stand behind."""
    summary = place.locator("summary", has_text="Details")
    summary.click()
    # The live card may come between press and release.
    if not summary.evaluate("(each) => each.parentElement.open"):
        summary.click()


@contextmanager
def bare(
    browser: Browser,
    session: Session,
    snapshot: dict[str, Any],
    theme: str = "light",
    *,
    silent: bool = False,
    hold: Sequence[str] = (),
    shadow: bool = False,
) -> Iterator[Bare]:
    """Show a snapshot in a bare page, by the module that every widget carries.

    Args:
        silent: the kernel does not answer.
        hold: operations that it does not answer before `release`.
        shadow: the view stands in a shadow tree, as in marimo.
    """
    server = Served(session, snapshot, theme, shadow)
    for each in hold:
        server.hold(each)
    if silent:
        server.silent.set()
    page = browser.new_page(viewport={"width": 1100, "height": 900})
    shown = Bare(page, server)
    page.on(
        "console",
        lambda each: shown.complaints.append(each.text) if each.type in ("error", "warning") else None,
    )
    page.on("pageerror", lambda error: shown.complaints.append(str(error)))
    page.on(
        "request",
        lambda each: (
            None
            if each.url.startswith(server.url) or each.url.startswith(("data:", "blob:"))
            else shown.elsewhere.append(each.url)
        ),
    )
    try:
        page.goto(server.url)
        page.wait_for_selector("body[data-ready=yes]")
        yield shown
    finally:
        page.close()
        server.close()
