// The head and the rows of a grid as elements.
//
// Invariant: every cell carries its row (-1 in the head) and its place, by which the keyboard finds it.
import type { FilterKey, FrameColumn, FrameFigures } from "../../protocol";
import { fill, h, visible } from "../dom/h";
import type { Layout } from "./layout";
import { spark } from "./spark";
import type { Query, Windows } from "./windows";

export interface HeadActions {
  /** Sort by a column; `more` keeps the other keys. */
  sortBy(column: FrameColumn, more: boolean): void;
  openMenu(place: number): void;
  /** Keep the rows of a bar in a column's head. */
  choose(column: FrameColumn, filter: FilterKey[]): void;
  /** What is known of a column for the drawing in its head. */
  figuresOf(column: FrameColumn): FrameFigures | undefined;
}

export interface CellActions {
  settle(at: [row: number, place: number]): void;
  showWhole(row: number, place: number): void;
}

export const headCells = (layout: Layout, query: Query, actions: HeadActions): HTMLElement[] =>
  layout.lefts.map((left, place) => heading(layout, query, place, left, actions));

/**
 * Draws cells in a row and leaves alone those that are as they were, so that a press that has begun on one counts. What a
 * cell does is told apart by `data-column`.
 */
export function patchCells(row: Element, cells: HTMLElement[]): void {
  const there = [...row.children] as HTMLElement[];
  if (there.length !== cells.length) return fill(row, cells);
  there.forEach((old, place) => {
    const cell = cells[place]!;
    cell.tabIndex = old.tabIndex; // the cursor's
    if (!cell.isEqualNode(old)) old.replaceWith(cell);
  });
}

function heading(
  layout: Layout,
  { sort, filter }: Query,
  place: number,
  left: number,
  { sortBy, openMenu, choose, figuresOf }: HeadActions,
): HTMLElement {
  const { index, column, sticky } = layout.place(place);
  const key = sort.find((each) => each.column === column?.position);
  const order = column && (key ? (key.descending ? "descending" : "ascending") : "none");
  const figures = column && figuresOf(column);
  const filtered = filter.some((each) => each.column === column?.position);
  return h(
    `th.r-cell${column?.right ? ".r-right" : ""}${sticky ? ".r-stick" : ""}`,
    {
      role: "columnheader",
      "aria-colindex": index,
      "aria-sort": order,
      "aria-label": column ? null : "Row",
      "aria-keyshortcuts": column && "Alt+ArrowDown",
      "data-row": -1,
      "data-place": place,
      "data-column": column?.position,
      tabindex: -1,
      style: sticky ? `left:${left}px` : null,
      onclick: (event: MouseEvent) => column && sortBy(column, event.shiftKey),
    },
    column && [
      name(column, key && `${key.descending ? "↓" : "↑"}${sort.length > 1 ? sort.indexOf(key) + 1 : ""}`),
      more(column, filtered, () => openMenu(place)),
      h("span.r-quiet", {}, visible(column.dtype)),
      figures && spark(column.position, figures, (filter) => choose(column, filter)),
    ],
  );
}

const name = (column: FrameColumn, arrow: string | undefined): HTMLElement =>
  h(
    "span.r-name",
    {},
    h("bdi", {}, visible(column.name)),
    arrow && h("span.r-arrow", { "aria-hidden": "true" }, arrow),
  );

const more = (column: FrameColumn, on: boolean, openMenu: () => void): HTMLElement =>
  h(
    `button.r-more-button${on ? ".r-on" : ""}`,
    {
      type: "button",
      tabindex: -1,
      "aria-label": `Filter and figures of ${visible(column.name)}`,
      onclick: (event: Event) => {
        event.stopPropagation();
        openMenu();
      },
    },
    "▾",
  );

/** One row; "…" in every cell while it is not there. */
export function drawRow(layout: Layout, windows: Windows, row: number, actions: CellActions): HTMLElement {
  const found = windows.of(row);
  const at = found ? row - found.start : 0;
  const cells = layout.lefts.map((left, place) => {
    const { index, column, sticky } = layout.place(place);
    const inner = place - layout.labelColumns;
    const text = !found ? "…" : column ? found.cells[at]?.[inner] : found.labels[at];
    const quiet = !found || (column && found.muted[at]?.includes(inner));
    return h(
      `${sticky ? "th" : "td"}.r-cell${sticky ? ".r-stick" : ""}${column?.right ? ".r-right" : ""}${quiet ? ".r-quiet" : ""}` as "td",
      {
        role: sticky ? "rowheader" : "gridcell",
        "aria-colindex": index,
        "data-row": row,
        "data-place": place,
        tabindex: -1,
        style: sticky ? `left:${left}px` : null,
        onmousedown: () => actions.settle([row, place]),
        ondblclick: () => actions.showWhole(row, place),
      },
      visible(text ?? ""),
    );
  });
  return h("tr", { role: "row", "aria-rowindex": row + 2 }, cells);
}

/** What a cell shows; "" while it is not there. */
export function cellText(layout: Layout, windows: Windows, row: number, place: number): string {
  const found = windows.of(row);
  const at = found ? row - found.start : 0;
  const inner = place - layout.labelColumns;
  return (inner < 0 ? found?.labels[at] : found?.cells[at]?.[inner]) ?? "";
}
