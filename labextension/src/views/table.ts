// A grid as a table; the rows that are there can be sorted by a click on a heading.
//
// Invariant: sorting only moves rows that are in the page; a third click brings back the order they came in.
import type { Cell, Column, Grid } from "../protocol";
import { type Child, h } from "./h";
import { visible } from "./text";

const UNITS: Record<string, number> = {
  "": 1, byte: 1, bytes: 1, KB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12, PB: 1e15,
  ms: 1e-3, s: 1, min: 60, h: 3600, d: 86400, "%": 1,
}; // prettier-ignore
const NOTHING = new Set(["", "–", "—", "null", "None", "NaN", "NaT", "<NA>"]);
const byText = new Intl.Collator(undefined, { numeric: true });

/** The value that a cell's text stands for ("1,234", "1.2 KB", "2 min 5 s", "$0.31", a moment); NaN where none. */
export function valueOf(text: string): number {
  const moment = /(?<!\d)\d{4}-\d\d-\d\d(?:[ T].*)?$/.exec(text);
  if (moment) return Date.parse(moment[0]);
  const plain = text.replace(/^< /, "").replace(/[$,]/g, "");
  if (/^-?Infinity$/.test(plain)) return Number(plain);
  let sum = 0;
  let parts = 0;
  const rest = plain.replace(/(-?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?) ?([a-z%]*) ?/gi, (_, digits, unit) => {
    // Only figures with units add up: "2 min 5 s" is a value, "1.2.3" is none.
    const factor = (parts && !unit) || !Object.hasOwn(UNITS, unit) ? NaN : UNITS[unit]!;
    parts += 1;
    sum += Number(digits) * factor;
    return "";
  });
  return parts && !rest ? sum : NaN;
}

interface Kept {
  body: HTMLElement;
  rows: HTMLElement[];
  heads: (HTMLElement | null)[];
  by: [place: number, order: "ascending" | "descending"] | null;
  sorting: ((sorted: boolean) => void) | undefined;
}

const kept = new WeakMap<Element, Kept>();

/** @param sorting is told when the order of the rows becomes another one than they came in, or theirs again */
export function drawGrid(grid: Grid, sorting?: (sorted: boolean) => void): HTMLElement {
  const rows = grid.rows.map((row) =>
    h(
      "tr",
      {},
      ...row.slice(0, grid.columns.length).map((cell, place) => drawCell(cell, grid.columns[place]!)),
    ),
  );
  const sortable = rows.length > 1;
  const heads = grid.columns.map((column, place) => heading(column, sortable && (() => turn(box, place))));
  const body = h("tbody", {}, ...rows);
  const box = h(
    "div.r-scroll",
    { tabindex: 0, role: "region", "aria-label": "table" },
    h(
      "table",
      {},
      !!grid.caption && h("caption", {}, visible(grid.caption)),
      h("thead", {}, h("tr", {}, ...heads)),
      body,
    ),
  );
  kept.set(box, {
    body,
    rows,
    heads: heads.map((each) => (each.tagName === "TH" ? each : null)),
    by: null,
    sorting,
  });
  return box;
}

/** Sorts a table as the one that it replaces was sorted. */
export function sortAlike(box: Element, before: Element): void {
  const by = kept.get(before)?.by;
  if (by) sort(box, by);
}

function turn(box: Element, place: number): void {
  const by = kept.get(box)!.by;
  const order = by?.[0] === place ? by[1] : null;
  sort(box, order === "descending" ? null : [place, order ? "descending" : "ascending"]);
}

function sort(box: Element, by: Kept["by"]): void {
  const it = kept.get(box);
  if (!it || (by && !it.heads[by[0]])) return;
  it.by = by;
  it.sorting?.(by !== null);
  it.heads.forEach((head, place) => head?.setAttribute("aria-sort", by?.[0] === place ? by[1] : "none"));
  it.body.append(...(by ? ordered(it.rows, by[0], by[1] === "ascending" ? 1 : -1) : it.rows));
}

/** Numbers by value where all cells are, else by their text; what is missing comes last either way. */
function ordered(rows: HTMLElement[], place: number, sign: number): HTMLElement[] {
  const keys = rows.map((row) => row.children[place]?.textContent ?? "");
  const there = keys.filter((key) => !NOTHING.has(key));
  const values = there.every((key) => !Number.isNaN(valueOf(key))) ? keys.map(valueOf) : null;
  const order = (a: number, b: number): number => {
    const [first, second] = [keys[a]!, keys[b]!];
    const missing = Number(NOTHING.has(first)) - Number(NOTHING.has(second));
    if (missing || NOTHING.has(first)) return missing || a - b;
    // Values beyond what a number holds exactly are told apart by their digits.
    const apart = values && values[a] !== values[b] ? values[a]! - values[b]! : byText.compare(first, second);
    return sign * apart || a - b;
  };
  return rows.map((_, at) => at).sort(order).map((at) => rows[at]!); // prettier-ignore
}

function heading(column: Column, sort: (() => void) | false): HTMLElement {
  if (!column.name && !column.detail) return h("td");
  const name = visible(column.name);
  return h(
    column.right ? "th.r-right" : "th",
    { scope: "col", "aria-sort": sort && "none" },
    sort ? h("button.r-sort", { type: "button", onclick: sort }, name) : name,
    !!column.detail && [h("br"), h("span.r-quiet", {}, visible(column.detail))],
  );
}

export function drawCell(given: Cell | string, column: Column): HTMLElement {
  const cell: Cell = typeof given === "string" ? { text: given, tone: "plain", face: "text" } : given;
  let text: Child = visible(cell.text);
  const classes = [column.right && "r-right", column.wide && "r-wide"];
  if (cell.face === "badge") text = h(`span.r-badge.r-${cell.tone}`, {}, text);
  else if (cell.face === "code") text = h("code", {}, text);
  else if (cell.tone === "muted") classes.push("r-quiet");
  const named = classes.filter(Boolean).join(" ") || null;
  return h(column.header ? "th" : "td", { scope: column.header && "row", class: named }, text);
}
