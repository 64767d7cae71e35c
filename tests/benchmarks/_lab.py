"""JupyterLab in Chromium for measurements: one notebook of two cells, and a probe in the page.

The probe is in the page before anything of JupyterLab's runs. It keeps when each message of the kernel arrived at the
socket, before it is parsed, and when a text was first painted: it must stand in a cell's output, in a box of some size
that is in sight, or be drawn on a canvas; the time is taken after the frame that shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Error, Page, sync_playwright

from tests.browser.browser_support import CHROMIUM, FLAGS
from tests.browser.lab_support import JupyterServer, LabPage

PATIENCE = 300_000  # ms for a cell
KEPT, MEASURED = 0, 1  # the two cells

PROBE = r"""
(() => {
  const arrived = [];
  let watch = null;

  // A kernel's message over version 1 of the socket's protocol: offsets, channel, header, parent, metadata, content.
  const kind = (data) => {
    if (!(data instanceof ArrayBuffer)) return null;
    const view = new DataView(data);
    const at = (place) => Number(view.getBigUint64(8 * (place + 1), true));
    return JSON.parse(new TextDecoder().decode(new Uint8Array(data, at(1), at(2) - at(1)))).msg_type;
  };
  const Native = window.WebSocket;
  window.WebSocket = class extends Native {
    constructor(...given) {
      super(...given);
      this.addEventListener("message", ({ data }) => {
        if (watch) arrived.push({ type: kind(data), size: data.byteLength ?? data.length, at: performance.now() });
      });
    }
  };

  const painted = (target) => {
    if (target.found) return;
    target.found = true;
    requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => {
        target.at = performance.now();
        if (watch && watch.targets.every((each) => each.at)) watch.done();
      };
      port2.postMessage(0);
    });
  };
  const seen = (element) => {
    const box = element.getBoundingClientRect();
    if (!box.width || !box.height) return false;
    // All layers at its middle: what is scrolled out of sight is in none of them.
    const layers = document.elementsFromPoint(box.left + Math.min(box.width / 2, 20), box.top + box.height / 2);
    return layers.includes(element);
  };
  const inPage = (target) => {
    for (const output of document.querySelectorAll(target.within || ".jp-OutputArea-output")) {
      if (!output.textContent.includes(target.text)) continue;
      const walker = document.createTreeWalker(output, NodeFilter.SHOW_TEXT);
      for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        if (node.data.includes(target.text) && seen(node.parentElement)) return true;
      }
    }
    return false;
  };
  const look = () => {
    for (const target of watch?.targets ?? []) if (!target.found && inPage(target)) painted(target);
  };
  const fillText = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (text, ...given) {
    for (const target of watch?.targets ?? []) {
      if (!target.within && String(text).includes(target.text)) painted(target);
    }
    return fillText.call(this, text, ...given);
  };
  const frame = () => {
    look();
    if (watch) requestAnimationFrame(frame);
  };
  for (const type of ["pointerup", "keydown", "input"]) {
    addEventListener(type, (event) => { if (watch?.byInput) watch.start = event.timeStamp; }, true);
  }

  window.probe = {
    /** Wait for texts from now on; with `byInput`, time runs from the last key or click. */
    begin(targets, byInput = false) {
      arrived.length = 0;
      const made = { targets: targets.map((target) => ({ ...target })), byInput, start: performance.now() };
      made.finished = new Promise((resolve) => { made.done = resolve; });
      made.observer = new MutationObserver(look);
      made.observer.observe(document.body, { childList: true, subtree: true, characterData: true });
      watch = made;
      requestAnimationFrame(frame);
    },
    start() { watch.start = performance.now(); },
    /** Milliseconds from the start to each text; null for one that did not come in time. */
    async end(limit) {
      const made = watch;
      await Promise.race([made.finished, new Promise((resolve) => setTimeout(resolve, limit))]);
      made.observer.disconnect();
      watch = null;
      const display = arrived.find(({ type }) => type === "display_data" || type === "execute_result");
      return {
        texts: made.targets.map(({ at }) => (at ? at - made.start : null)),
        display: display ? display.at - made.start : null,
        bytes: arrived.reduce((sum, { size }) => sum + size, 0),
      };
    },
  };

  const panel = () => window.jupyterapp.shell.currentWidget;
  window.lab = {
    put(index, source) {
      const { content } = panel();
      content.activeCellIndex = index;
      content.deselectAll();
      content.activeCell.model.clearExecution();
      content.activeCell.model.sharedModel.setSource(source);
    },
    run: () => window.jupyterapp.commands.execute("notebook:run-cell"),
    outputs: () => panel().content.activeCell.model.outputs.toJSON(),
  };
})();
"""


@dataclass(frozen=True)
class Times:
    """Milliseconds from the start to the display message and to each text waited for; None: it did not come.

    Attributes:
        bytes: what came over the kernel's socket until then.
    """

    texts: tuple[float | None, ...]
    display: float | None
    bytes: int


class Lab:
    """A notebook in a running JupyterLab, with one cell whose output stays and one that is measured."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.on("console", lambda each: self.complaints.append(each.text) if each.type == "error" else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def run(self, source: str, cell: int = MEASURED) -> str:
        """Run code to its end, and give what it printed.

        Raises:
            RuntimeError: it failed.
        """
        self.page.evaluate("given => lab.put(...given)", [cell, source])
        self.page.evaluate("() => lab.run()")
        outputs: list[dict[str, Any]] = self.page.evaluate("() => lab.outputs()")
        for output in outputs:
            if output["output_type"] == "error":
                raise RuntimeError(f"{output['ename']}: {output['evalue']}")
        texts = (output["text"] for output in outputs if output.get("name") == "stdout")
        return "".join(text if isinstance(text, str) else "".join(text) for text in texts)

    def show(self, source: str, text: str, within: str = "", limit: float = 180) -> Times:
        """Run a cell and wait until a text is painted, anywhere and, with `within`, in such an element too."""
        self.page.evaluate("given => lab.put(...given)", [MEASURED, source])
        self.settle()
        targets = [{"text": text}, *([{"text": text, "within": within}] if within else [])]
        self.page.evaluate(
            "targets => { probe.begin(targets); probe.start(); window.ran = lab.run(); }", targets
        )
        times = self._end(limit)
        self.page.evaluate("() => window.ran")
        return times

    def until_painted(self, text: str, act: str | Callable[[Page], None], limit: float = 30) -> float | None:
        """Milliseconds from what is done to a text painted: a script, or the last key or click of a function."""
        by_input = not isinstance(act, str)
        self.settle()
        self.page.evaluate("([text, byInput]) => probe.begin([{ text }], byInput)", [text, by_input])
        if isinstance(act, str):
            self.page.evaluate(f"() => {{ probe.start(); {act} }}")
        else:
            act(self.page)
        return self._end(limit).texts[0]

    def settle(self) -> None:
        """Wait until the page has nothing left to do for what came last."""
        self.page.evaluate(
            "() => new Promise((done) => requestIdleCallback(() => setTimeout(done, 300), { timeout: 10000 }))"
        )

    def _end(self, limit: float) -> Times:
        made: dict[str, Any] = self.page.evaluate("limit => probe.end(limit)", 1000 * limit)
        return Times(tuple(made["texts"]), made["display"], made["bytes"])


@contextmanager
def lab(folder: Path) -> Iterator[Lab]:
    """A JupyterLab of its own, with an empty notebook open that is not saved meanwhile."""
    settings = folder / "settings" / "@jupyterlab" / "docmanager-extension"
    settings.mkdir(parents=True)
    (settings / "plugin.jupyterlab-settings").write_text('{"autosave": false}')
    server = JupyterServer(folder)
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            page = browser.new_page(viewport={"width": 1500, "height": 1000})
            page.add_init_script(PROBE)
            LabPage(page, server, "lab").open("", "")
            page.set_default_timeout(PATIENCE)
            try:
                yield Lab(page)
            finally:
                # When it ended by itself, its measurements are over; others have a new one.
                with suppress(Error):
                    browser.close()
    finally:
        server.stop()
