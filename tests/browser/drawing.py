"""One bare page in which a test shows any number of snapshots, and reads what stands there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser

from reyn_jupyter import Session
from reyn_jupyter.notebook.render.blocks import View
from reyn_jupyter.notebook.render.hosts.html import NOT_TYPESET
from reyn_jupyter.notebook.serving.view_json import to_snapshot
from tests.browser.browser_support import Bare, bare

# A model as anywidget gives it, whose messages are kept. Its kernel gives the code of views, and answers what a test
# put into `window.answers` by the name of the operation; nothing else.
PREPARE = """
window.widget = (await import("/static/widget.js")).default;
window.answers = {};
const answer = async (heard, { id, op, args }) => {
  const code = op === "module.open" && (await (await fetch(`/static/${args.name}.js`)).text());
  const value = code ? { code, style: "" } : window.answers[op];
  if (value) heard["msg:custom"]?.({ type: "answer", id, value }, []);
};
window.draw = (snapshot) => {
  document.getElementById("host").replaceChildren();
  const heard = {};
  const sent = [];
  let current = snapshot;
  const model = {
    get: () => current, set() {}, save_changes() {},
    send: (message) => { sent.push(message); void answer(heard, message); },
    on: (name, listener) => { heard[name] = listener; }, off: (name) => { delete heard[name]; },
  };
  const el = document.createElement("div");
  document.getElementById("host").append(el);
  const end = window.widget.render({ model, el });
  window.shown = { el, sent, end, heard, update: (now) => { current = now; heard["change:snapshot"](); },
    receive: (message) => heard["msg:custom"](message, []) };
};
// What is there, without what TypeScript alone adds: buttons, the status line, an empty line of facts.
window.outline = (node) => {
  if (node.nodeType === Node.TEXT_NODE) return node.data;
  if (node.matches("style, .r-copy, .r-said, .r-state, [hidden]")) return "";
  const inner = [...node.childNodes].map(window.outline).join("\\u0001").replace(/\\u0001+/g, "");
  if (node.matches(".r-line, .r-sort")) return inner;
  const skipped = new Set(["r-code", "r-state"]);
  const drawn = "class role aria-level aria-label scope start href rel target open tabindex " +
    "viewBox x y x1 x2 y1 y2 cx cy r width height text-anchor";
  const names = drawn.split(" ");
  const given = names.filter((name) => node.hasAttribute(name)).map((name) => {
    const value = node.getAttribute(name).split(" ").filter((each) => name !== "class" || !skipped.has(each));
    return ` ${name}=${value.join(" ")}`;
  });
  return `<${node.localName}${given.join("")}>${inner}</>`;
};
window.outlineOf = (html) =>
  window.outline(new DOMParser().parseFromString(html, "text/html").querySelector(".reyn-view"));
"""


# What an exported page draws with; it knows every kind of block, those too that no widget shows.
PAGE = """
const { show } = await import("/static/page.js");
const sheet = document.createElement("link");
await new Promise((done) => {
  Object.assign(sheet, { rel: "stylesheet", href: "/static/page.css", onload: done });
  document.head.append(sheet);
});
window.draw = (snapshot) => {
  document.getElementById("host").replaceChildren();
  const el = document.createElement("div");
  document.getElementById("host").append(el);
  window.shown = { el, ...show(el, snapshot) };
};
"""


class Drawing:
    """Shows snapshots one after the other.

    Args:
        exported: as an exported page does, which has charts; else as a widget.
    """

    def __init__(self, shown: Bare, *, exported: bool = False) -> None:
        self.page, self.shown = shown.page, shown
        self.page.evaluate(f"async () => {{ {PREPARE} {PAGE if exported else ''} }}")

    def show(self, given: View | dict[str, Any] | Any) -> None:
        self.page.evaluate("(snapshot) => window.draw(snapshot)", self._snapshot(given))

    def update(self, given: View | dict[str, Any]) -> None:
        self.page.evaluate("(snapshot) => window.shown.update(snapshot)", self._snapshot(given))

    def outline(self) -> str:
        made: str = self.page.evaluate("() => window.outline(window.shown.el.querySelector('.reyn-view'))")
        return made

    def outline_of(self, html: str) -> str:
        # What is drawn live is typeset by nobody, so it needs no word against that.
        made: str = self.page.evaluate(
            "(html) => window.outlineOf(html)", html.replace(f" {NOT_TYPESET}", "")
        )
        return made

    @staticmethod
    def _snapshot(given: Any) -> Any:
        return to_snapshot(given, "another session") if isinstance(given, View) else given


@contextmanager
def drawing(
    browser: Browser, session: Session, theme: str = "light", *, exported: bool = False
) -> Iterator[Drawing]:
    empty = {
        "protocol": 1,
        "session": "none",
        "live": None,
        "view": {"kind": "x", "title": "x", "blocks": []},
    }
    with bare(browser, session, empty, theme) as shown:
        yield Drawing(shown, exported=exported)
