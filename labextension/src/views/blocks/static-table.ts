// A grid as a table; the rows that are there can be sorted by a click on a heading.
//
// Invariant: sorting only moves rows that are in the page; a third click brings back the order they came in.
import type { Column, Grid } from "../../protocol";
import { type Child, h, visible } from "../dom/h";
import { type Cell, unpackCell } from "./cells";

const byText = new Intl.Collator(undefined, { numeric: true });

interface Row {
  element: HTMLElement;
  cells: Cell[];
}

interface TableState {
  body: HTMLElement;
  rows: Row[];
  heads: (HTMLElement | null)[];
  by: [place: number, order: "ascending" | "descending"] | null;
  sorting: ((sorted: boolean) => void) | undefined;
}

const states = new WeakMap<Element, TableState>();

/** @param sorting is told when the order of the rows becomes another one than they came in, or theirs again */
export function drawStaticTable(grid: Grid, sorting?: (sorted: boolean) => void): HTMLElement {
  const rows = grid.rows.map((row): Row => {
    const cells = row.slice(0, grid.columns.length).map(unpackCell);
    return {
      element: h("tr", {}, ...cells.map((cell, place) => drawCell(cell, grid.columns[place]!))),
      cells,
    };
  });
  const sortable = rows.length > 1;
  const heads = grid.columns.map((column, place) =>
    heading(column, sortable && (() => toggleSort(box, place))),
  );
  const body = h("tbody", {}, ...elementsOf(rows));
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
  states.set(box, {
    body,
    rows,
    heads: heads.map((each) => (each.tagName === "TH" ? each : null)),
    by: null,
    sorting,
  });
  return box;
}

/** Sorts a table as the one that it replaces was sorted. */
export function copySorting(box: Element, before: Element): void {
  const by = states.get(before)?.by;
  if (by) sort(box, by);
}

function toggleSort(box: Element, place: number): void {
  const by = states.get(box)!.by;
  const order = by?.[0] === place ? by[1] : null;
  sort(box, order === "descending" ? null : [place, order ? "descending" : "ascending"]);
}

function sort(box: Element, by: TableState["by"]): void {
  const it = states.get(box);
  if (!it || (by && !it.heads[by[0]])) return;
  it.by = by;
  it.sorting?.(by !== null);
  it.heads.forEach((head, place) => head?.setAttribute("aria-sort", by?.[0] === place ? by[1] : "none"));
  it.body.append(...elementsOf(by ? sortRows(it.rows, by[0], by[1] === "ascending" ? 1 : -1) : it.rows));
}

const elementsOf = (rows: readonly Row[]): HTMLElement[] => rows.map((row) => row.element);

/** By value where every cell that is not missing has one, else by text; what is missing comes last either way. */
function sortRows(rows: readonly Row[], place: number, sign: number): Row[] {
  const cells = new Map(rows.map((row) => [row, row.cells[place] ?? unpackCell("")]));
  const there = [...cells.values()].filter((cell) => !cell.missing);
  const valued = there.every((cell) => cell.value !== null);
  return rows.toSorted((one, other) => {
    const [a, b] = [cells.get(one)!, cells.get(other)!];
    if (a.missing || b.missing) return Number(a.missing) - Number(b.missing);
    // Values beyond what a number holds exactly are told apart by their digits.
    return sign * ((valued && a.value! - b.value!) || byText.compare(a.text, b.text));
  });
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

function drawCell(cell: Cell, column: Column): HTMLElement {
  let text: Child = visible(cell.text);
  const classes = [column.right && "r-right", column.wide && "r-wide"];
  if (cell.face === "badge") text = h(`span.r-badge.r-${cell.tone}`, {}, text);
  else if (cell.face === "code") text = h("code", {}, text);
  else if (cell.tone === "muted") classes.push("r-quiet");
  const named = classes.filter(Boolean).join(" ") || null;
  return h(column.header ? "th" : "td", { scope: column.header && "row", class: named }, text);
}
