// Choosing another run, and both side by side in the place of one.
import type { Source } from "../../sources/source";
import { button, fill, h, visible } from "../dom/h";
import { errorCard } from "../requests";
import { diffViewer } from "./diff-viewer";

const MOST_RUNS = 60;

/**
 * @param bar gets the choice, `box` the two runs
 * @param shown called when both are shown, `ended` when the person leaves them or the choice
 */
export function compareWith(
  run: string,
  bar: HTMLElement,
  box: HTMLElement,
  source: Source,
  shown: () => void,
  ended: () => void,
): () => void {
  let leave: (() => void) | null = null;
  let closed = false;
  const close = (text: string, ...before: HTMLElement[]): void => {
    const end = button(text, ended);
    fill(bar, ...before, end);
    (before[0] ?? end).focus();
  };
  const compare = (other: string): void => {
    close("Back to the run");
    shown();
    leave = diffViewer(box, { type: "diff", a: run, b: other }, source);
  };
  source.request("runs.list", { limit: MOST_RUNS }).then(
    ({ rows, more }) => {
      if (closed) return;
      const others = rows.filter((row) => row.run !== run);
      const choice = h(
        "select.r-select",
        { "aria-label": "The run to compare with" },
        ...others.map(({ run: id, title, facts, when, state }) =>
          h("option", { value: id }, visible([title, facts, when, state.text].join(" · "))),
        ),
      );
      const note = more || (others.length ? "" : "There is no other run yet.");
      const go = button("Compare", () => compare(choice.value));
      close("Cancel", ...(others.length ? [choice, go] : []));
      bar.append(h("span.r-quiet", {}, visible(note)));
    },
    (error) => closed || close("Cancel", errorCard(error)),
  );
  return () => {
    closed = true;
    leave?.();
    fill(box);
  };
}
