// Intervals and points as SVG beside the words that say the same, and two views side by side.
//
// Invariant: elements, places and words are those of the HTML that Python makes; a number that is none is refused, and
// a place is always within its axis.
import type { Interval, Intervals, Pair, Point, Scatter } from "../../protocol";
import type { Host } from "../../sources/source";
import { append, type Attributes, type Child, h, visible } from "../dom/h";
import { drawBlocks, extend } from "./blocks";
import { drawStaticTable } from "./static-table";

type Axis = readonly number[];
type Anchor = "start" | "middle" | "end";

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [480, 232, 44, 468, 24, 188] as const;

function svg(name: string, attributes: Attributes, ...children: Child[]): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes))
    element.setAttribute(key, visible(typeof value === "number" ? round(value) : value));
  append(element, children);
  return element;
}

/** Where a value lies on an axis, from 0 to 1; what lies beyond an end lies at that end. Raises where there is no axis. */
function share(value: number, [first, last]: Axis): number {
  const within = Math.min(Math.max(value, first!), last!);
  const by = Number.isFinite(last! - first!) ? 1 : 2;
  const found = (within / by - first! / by) / (last! / by - first! / by);
  if (Number.isFinite(found)) return found;
  throw RangeError();
}

/** How the text of a tick stands to its line, so that those at the ends stay within the chart. */
const anchorAt = (at: number): Anchor => (at < 0.05 ? "start" : at > 0.95 ? "end" : "middle");

const round = (value: number): number => Math.floor(value * 100 + 0.5) / 100;

/** A coordinate: a length, or a share of the width in percent. */
type Place = number | string;

const text = (x: Place, y: number, anchor: Anchor, said: string): SVGElement =>
  svg("text", { x, y, "text-anchor": anchor }, visible(said));

const line = (name: string, x1: Place, y1: number, x2: Place, y2: number): SVGElement =>
  svg("line", { class: name, x1, y1, x2, y2 });

function drawIntervals(chart: Intervals): HTMLElement[] {
  const quiet = (said: string): Child => !!said && [h("br"), h("span.r-quiet", {}, visible(said))];
  const place = (value: number): string => `${round(100 * share(value, chart.axis))}%`;
  const ticks = chart.ticks.map(([value, said]) => {
    const anchor = anchorAt(share(value, chart.axis));
    return [line("r-frame", place(value), 0, place(value), 4), text(place(value), 16, anchor, said)];
  });
  const axis = h("td.r-plot", {}, svg("svg", { class: "r-axis", "aria-hidden": "true" }, ...ticks));
  const box = h(
    "div.r-scroll.r-chart",
    { tabindex: 0, role: "region", "aria-label": chart.caption || "chart" },
    h(
      "table",
      {},
      !!(chart.caption || chart.legend) && h("caption", {}, visible(chart.caption), quiet(chart.legend)),
      h("tbody", {}, ...chart.rows.map((row) => drawRow(row, chart, place, quiet))),
      ticks.length > 0 && h("tfoot", {}, h("tr", {}, h("td"), axis, h("td"))),
    ),
  );
  return [box, ...(chart.more ? [h("p.r-more", {}, visible(chart.more))] : [])];
}

function drawRow(
  row: Interval,
  chart: Intervals,
  place: (value: number) => string,
  quiet: (said: string) => Child,
): HTMLElement {
  const [first, last] = chart.axis as [number, number];
  const within = (value: number): boolean => first <= value && value <= last;
  const estimate = row.estimate === null ? null : place(row.estimate);
  const zero = chart.zero === null ? null : place(chart.zero);
  const range = row.low === null || row.high === null ? [] : [row.low, row.high];
  const [low, high] = range.map(place);
  const values = [row.estimate, row.low, row.high, row.reference].filter((value) => value !== null);
  const before = values.some((value) => value < first);
  const after = values.some((value) => value > last);
  const said = before || after ? `${row.text}, beyond the axis` : row.text;
  const track = svg(
    "svg",
    { class: `r-track r-${row.tone}`, role: "img", "aria-label": `${row.label}: ${said}` },
    chart.bars && estimate && svg("rect", { class: "r-fill", y: 4, width: estimate, height: 14 }),
    zero && line("r-zero", zero, 0, zero, 22),
    low && line("r-range", low, 11, high!, 11),
    range.filter(within).map((end) => line("r-range", place(end), 7, place(end), 15)),
    estimate && within(row.estimate!) && line("r-estimate", estimate, 4, estimate, 18),
    row.reference !== null &&
      within(row.reference) &&
      svg("circle", { class: "r-reference", cx: place(row.reference), cy: 11, r: 4 }),
    before && text("0%", 15, "start", "◂"),
    after && text("100%", 15, "end", "▸"),
  );
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, visible(row.label), quiet(row.detail)),
    h("td.r-plot", {}, track),
    h("td", {}, visible(said)),
  );
}

function drawScatter(chart: Scatter): HTMLElement[] {
  const x = (value: number): number => LEFT + share(value, chart.x_axis) * (RIGHT - LEFT);
  const y = (value: number): number => BOTTOM - share(value, chart.y_axis) * (BOTTOM - TOP);
  const below = chart.figures ? "" : "; the table below has the figures";
  const name = `${chart.y_name} against ${chart.x_name}, ${chart.points.length.toLocaleString("en")} points${below}`;
  const drawn = svg(
    "svg",
    {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      role: "img",
      "aria-label": chart.caption ? `${chart.caption}: ${name}` : name,
    },
    line("r-frame", LEFT, BOTTOM, RIGHT, BOTTOM),
    line("r-frame", LEFT, TOP, LEFT, BOTTOM),
    ...chart.x_ticks.map(([value, said]) => [
      line("r-frame", x(value), BOTTOM, x(value), BOTTOM + 4),
      text(x(value), BOTTOM + 16, anchorAt(share(value, chart.x_axis)), said),
    ]),
    ...chart.y_ticks.map(([value, said]) => [
      line("r-rule", LEFT, y(value), RIGHT, y(value)),
      text(LEFT - 5, y(value) + 4, "end", said),
    ]),
    text(LEFT, 12, "start", chart.y_name),
    text((LEFT + RIGHT) / 2, HEIGHT - 8, "middle", chart.x_name),
    ...drawPoints(chart.points, x, y),
  );
  const caption = !!chart.caption && h("p.r-label", {}, h("strong", {}, visible(chart.caption)));
  const box = h("div.r-scatter", { tabindex: 0, role: "region", "aria-label": "chart" }, caption, drawn);
  if (!chart.figures) return [box];
  const column = { name: "", detail: "", right: false, header: true, wide: false, whole: false };
  const figures = drawStaticTable({
    type: "grid",
    caption: "",
    columns: [column, { ...column, name: `${chart.y_name}, ${chart.x_name}`, header: false, wide: true }],
    rows: chart.points.map((point) => [point.label, point.text]),
    more: "",
  });
  return [
    box,
    h(
      "details.r-fold",
      {},
      h("summary", {}, " ", h("span.r-what", {}, "In figures"), " "),
      h("div.r-in", {}, figures),
    ),
  ];
}

type Box = readonly [left: number, top: number, right: number, bottom: number];

const apart = (one: Box, other: Box): boolean =>
  one[2] <= other[0] || other[2] <= one[0] || one[3] <= other[1] || other[3] <= one[1];

function drawPoints(
  points: readonly Point[],
  x: (value: number) => number,
  y: (value: number) => number,
): SVGElement[] {
  const places = points.map((point) => {
    const at = y(point.y);
    return [
      x(point.x),
      at,
      point.low === null ? at : y(point.low),
      point.high === null ? at : y(point.high),
    ] as const;
  });
  const taken = places.map(([at, middle, low, high]): Box => [
    at - 5,
    Math.min(middle, high) - 5,
    at + 5,
    Math.max(middle, low) + 5,
  ]);
  return places.map(([at, middle, low, high], place) => {
    const point = points[place]!;
    const range = low !== high && [
      line("r-range", at, low, at, high),
      line("r-range", at - 3, low, at + 3, low),
      line("r-range", at - 3, high, at + 3, high),
    ];
    const dot = svg("circle", { class: "r-point", cx: at, cy: middle, r: 4 });
    const named = place < 40 && label(at, middle, visible(point.label), taken);
    return svg("g", { class: `r-${point.tone}` }, range, dot, named);
  });
}

/** The label at the first place that no other label and no point takes. */
function label(x: number, y: number, whole: string, taken: Box[]): SVGElement | null {
  const letters = [...whole];
  const shown = letters.length <= 28 ? letters : [...letters.slice(0, 27), "…"];
  const wide = shown.reduce((sum, letter) => sum + (letter.codePointAt(0)! < 0x2e80 ? 6 : 11), 0);
  for (const base of [y + 4, y - 9, y + 17, y - 22, y + 30]) {
    for (const after of [true, false]) {
      const left = after ? x + 8 : x - 8 - wide;
      const box: Box = [left, base - 10, left + wide, base + 2];
      if (left < LEFT || box[2] > WIDTH || box[1] < TOP - 12 || box[3] > BOTTOM) continue;
      if (!taken.every((other) => apart(box, other))) continue;
      taken.push(box);
      return text(after ? x + 8 : x - 8, base, after ? "start" : "end", shown.join(""));
    }
  }
  return null;
}

const drawPair = (pair: Pair, host?: Host): HTMLElement[] => {
  const side = (title: string, blocks: Pair["left_blocks"]) => ({ type: "section" as const, title, blocks });
  const sides = [side(pair.left, pair.left_blocks), side(pair.right, pair.right_blocks)];
  return [h("div.r-pair", {}, ...drawBlocks(sides, host))];
};

extend("intervals", drawIntervals);
extend("scatter", drawScatter);
extend("pair", drawPair);
