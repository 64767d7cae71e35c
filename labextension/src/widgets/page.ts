// The script of an exported page: draws every object in it from what was saved beside it.
//
// Invariant: Python's HTML stays where an object cannot be drawn.
import { type Answers, StaticSource } from "../sources/static";
import type { Snapshot } from "../sources/source";
import { diffViewer } from "../views/diff";
import { h } from "../views/h";
import { grid } from "../views/grid";
import { inspector } from "../views/inspector";
import "../views/chart";
import { type Kinds, mount } from "../views/mount";
import { traceViewer } from "../views/trace";

const KINDS: Kinds = { blob: inspector(grid), trace: traceViewer(), diff: diffViewer };

for (const place of document.querySelectorAll<HTMLElement>("[data-reyn]")) {
  try {
    const data = place.querySelector('script[type="application/json"]')?.textContent ?? "";
    const { snapshot, answers } = JSON.parse(data) as { snapshot: Snapshot; answers: Answers };
    const box = h("div");
    mount(box, snapshot, new StaticSource(answers), KINDS);
    place.querySelector(".reyn-saved")?.replaceWith(box);
  } catch (error) {
    console.error("an object of this page could not be drawn", error);
  }
}
