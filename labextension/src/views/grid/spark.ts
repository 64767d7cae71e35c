// The small drawing in a column's head: how its values spread, or which stand there most. A press on a bar keeps its rows.
import type { FilterKey, FrameFigures } from "../../protocol";
import { h, visible } from "../dom/h";

const WIDTH = 72;
const TALL = 18;
const BARS = 12; // of as many as the figures have, the first ones where these are values
const SVG = "http://www.w3.org/2000/svg";
const MAY_BE_CUT = /[…⏎]/; // a value that no filter can name

interface Bar {
  share: number;
  text: string;
  filter: FilterKey[] | null;
}

/** @param choose sets the filters of this column */
export function spark(
  column: number,
  figures: FrameFigures,
  choose: (filter: FilterKey[]) => void,
): HTMLElement | null {
  const bars = figures.bins.length ? rangeBars(column, figures) : valueBars(column, figures);
  if (!bars.length) return null;
  const drawing = document.createElementNS(SVG, "svg");
  drawing.setAttribute("viewBox", `0 0 ${WIDTH} ${TALL}`);
  drawing.setAttribute("preserveAspectRatio", "none");
  drawing.setAttribute("aria-hidden", "true"); // the column's menu has the figures in words, and the filter
  const wide = WIDTH / bars.length;
  bars.forEach(({ share, text, filter }, place) => {
    const tall = share && Math.max(1, TALL * share);
    const group = document.createElementNS(SVG, "g");
    const title = document.createElementNS(SVG, "title");
    title.textContent = visible(text);
    group.append(rectangle(place * wide, 0, wide, TALL, "r-room"), title);
    group.append(rectangle(place * wide + 0.5, TALL - tall, wide - 1, tall, "r-bar-of"));
    if (filter) {
      group.setAttribute("data-bar", String(place));
      group.addEventListener("click", (event) => {
        event.stopPropagation();
        choose(filter);
      });
    }
    drawing.append(group);
  });
  return h("span.r-spark", {}, drawing as unknown as HTMLElement);
}

/** Neighbouring parts joined, so that there are few enough to press. */
function rangeBars(column: number, { bins, edges }: FrameFigures): Bar[] {
  const step = Math.ceil(bins.length / BARS);
  const joined: { share: number; from: string; to: string; last: boolean }[] = [];
  for (let at = 0; at < bins.length; at += step) {
    const stop = Math.min(bins.length, at + step);
    const share = bins.slice(at, stop).reduce((sum, each) => sum + each, 0);
    joined.push({ share, from: edges[at] ?? "", to: edges[stop] ?? "", last: stop === bins.length });
  }
  const most = Math.max(...joined.map((each) => each.share)) || 1;
  return joined.map(({ share, from, to, last }) => ({
    share: share / most,
    text: `${shorten(from)} to ${shorten(to)}`,
    filter: [
      { column, op: "least", value: from },
      { column, op: last ? "most" : "less", value: to },
    ],
  }));
}

/** An edge as people read it; the filter keeps it to the last digit. */
function shorten(edge: string): string {
  const value = Number(edge);
  return edge.length > 8 && Number.isFinite(value) ? String(Number(value.toPrecision(6))) : edge;
}

const valueBars = (column: number, { top }: FrameFigures): Bar[] =>
  top.slice(0, BARS).map(([value, count, share]) => ({
    share,
    text: `${value}: ${count}`,
    filter: MAY_BE_CUT.test(value) ? null : [{ column, op: "equals", value }],
  }));

function rectangle(x: number, y: number, width: number, height: number, name: string): SVGElement {
  const bar = document.createElementNS(SVG, "rect");
  for (const [key, size] of Object.entries({ x, y, width, height })) bar.setAttribute(key, size.toFixed(2));
  bar.setAttribute("class", name);
  return bar;
}
