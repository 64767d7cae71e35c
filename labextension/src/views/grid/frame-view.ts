// A frame in the kernel's memory: its head as it was drawn, and the grid below it.
import type { Grid, LiveFrame } from "../../protocol";
import type { ViewFunction } from "../../sources/source";
import { fill, h } from "../dom/h";
import type { DataGridModel } from "./data-grid";

export const frameView =
  (grid: ViewFunction<DataGridModel>): ViewFunction<LiveFrame> =>
  (element, { frame }, source, before, saved) => {
    const body = h("div.r-body");
    const head = before?.querySelector(":scope > .r-head") ?? null;
    const view = h(
      "div.reyn-view.r-inspector",
      { role: "group", "aria-label": saved?.title ?? "Table", "data-lm-suppress-shortcuts": "true" },
      head,
      body,
    );
    fill(element, view);
    const first = saved?.blocks.find((block): block is Grid => block.type === "grid") ?? null;
    const end = grid(body, { blob: frame, first }, source);
    return () => {
      end();
      element.replaceChildren();
    };
  };
