// The script of an exported page: draws every object in it from what was saved beside it.
//
// Invariant: Python's HTML stays where an object cannot be drawn. Whoever imports this instead draws with `show`.
import { type Answers, StaticSource } from "../sources/static";
import type { Snapshot } from "../sources/source";
import { diffViewer } from "../views/diff";
import { h } from "../views/h";
import { grid } from "../views/grid";
import { inspector } from "../views/inspector";
import "../views/chart";
import { type Kinds, mount, type Mounted } from "../views/mount";
import { traceViewer } from "../views/trace";

const KINDS: Kinds = { blob: inspector(grid), trace: traceViewer(), diff: diffViewer };

/** Draws a snapshot in an element, with the answers that were recorded for it. */
export const show = (element: HTMLElement, snapshot: Snapshot, answers: Answers = {}): Mounted =>
  mount(element, snapshot, new StaticSource(answers), KINDS);

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
