// What a viewer of runs draws of a line, and of each side of what stands behind it.
import type { Operations } from "../../protocol";
import type { Source } from "../../sources/source";
import { badges } from "../blocks/text";
import { type Child, fill, h, visible } from "../dom/h";
import { showBlocks } from "../blocks/patch";

export type OpenTrace = Operations["trace.open"]["answer"];
export type Part = Operations["trace.part"]["answer"];
export type Row = OpenTrace["steps"][number];

/** What of a line changes what stands behind it; its place in the time of a run does not. */
export const rowState = (row: Row): string => [row.id, row.state, row.seconds, row.about].join(" ");

/** What is looked at first: what failed, the newest of a run that goes on, else the beginning. */
export const firstRow = (run: OpenTrace): Row | undefined =>
  run.running ? run.steps.at(-1) : (run.steps.find((row) => row.tone === "bad") ?? run.steps[0]);

export function drawRow(row: Row): Child[] {
  const bar = `left:${row.start * 100}%;width:${row.share * 100}%`;
  return [
    h(
      `div.r-deep${row.depth}` as "div",
      {},
      h(
        "div.r-row",
        {},
        h("span.r-name", {}, visible(row.title)),
        " ",
        ...badges([{ text: row.state, tone: row.tone }]),
        " ",
        h("span.r-aside", {}, [row.seconds, row.size, row.cost].filter(Boolean).map(visible).join(" · ")),
      ),
      h("div.r-about", {}, visible(row.about)),
    ),
    h("i", { class: `r-time r-${row.tone}`, style: bar, "aria-hidden": "true" }),
  ];
}

/**
 * One side of a line: what was asked, or what came back.
 *
 * @param again it shows an earlier state of the same line: what the person opened in it stays open
 */
export function drawSide(box: HTMLElement, view: Part["request"], source: Source, again = false): void {
  const facts = view.facts.map(visible).join(" · ");
  const body = (again && box.querySelector<HTMLElement>(":scope > .r-sec")) || h("div.r-sec");
  showBlocks(body, view.blocks, source.host);
  fill(
    box,
    h("p", {}, h("strong", {}, visible(view.title)), " ", ...badges(view.badges)),
    !!facts && h("p.r-facts", {}, facts),
    body,
  );
}
