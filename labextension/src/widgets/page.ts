// The script of an exported page: draws every object in it from what was saved beside it.
//
// Invariant: Python's HTML stays where an object cannot be drawn. Whoever imports this instead draws with `show`.
import type { Snapshot } from "../protocol";
import { type Answers, StaticSource } from "../sources/static";
import { inspector } from "../views/blob/inspector";
import { type LiveViews, createDisplay, type Display } from "../views/display";
import { h } from "../views/dom/h";
import { dataGrid } from "../views/grid/data-grid";
import { diffViewer } from "../views/trace/diff-viewer";
import { traceViewer } from "../views/trace/trace-viewer";
import "../views/blocks/chart";

const LIVE_VIEWS: LiveViews = { blob: inspector(dataGrid), trace: traceViewer(), diff: diffViewer };

/** Draws a snapshot in an element, with the answers that were recorded for it. */
export const show = (element: HTMLElement, snapshot: Snapshot, answers: Answers = {}): Display =>
  createDisplay(element, snapshot, new StaticSource(answers), LIVE_VIEWS);

for (const place of document.querySelectorAll<HTMLElement>("[data-reyn]")) {
  try {
    const data = place.querySelector('script[type="application/json"]')?.textContent ?? "";
    const { snapshot, answers } = JSON.parse(data) as { snapshot: Snapshot; answers: Answers };
    const box = h("div");
    show(box, snapshot, answers);
    place.querySelector(".reyn-saved")?.replaceWith(box);
  } catch (error) {
    console.error("an object of this page could not be drawn", error);
  }
}
