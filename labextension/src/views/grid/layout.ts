// How the columns of a grid lie side by side: those that name the rows first, and stuck to the left edge.
//
// Invariant: a place counts what is drawn, a column's position counts what is stored; rows without a column that names
// them have their number at place 0.
import type { FrameColumn, FrameRows, Grid } from "../../protocol";
import { unpackCell } from "../blocks/cells";

export const HEIGHT = 25; // px of a row; the style sheet has the same
export const HEAD = 62; // and of the heading
const LEAST = 90; // room for the drawing in the head
const WIDEST = 360;

export interface Place {
  /** aria-colindex */
  index: number;
  /** Left out where the row's number stands. */
  column: FrameColumn | undefined;
  sticky: boolean;
}

export class Layout {
  columns: FrameColumn[] = [];
  lefts: number[] = [];
  /** 1 where rows have a number for a name, which takes the first place; else 0. */
  labelColumns = 1;
  /** Rows that match the filters; `all` are those without any. */
  total = 0;
  all = 0;
  /** Columns beside those that name the rows. */
  width = 0;
  revision = 0;

  get lastPlace(): number {
    return this.lefts.length - 1;
  }

  /** Columns and counts as an answer has them, as wide as the content of its window needs. */
  apply(rows: FrameRows, table: HTMLTableElement): void {
    this.columns = rows.columns;
    this.labelColumns = rows.columns.some((each) => each.header) ? 0 : 1;
    this.total = rows.total;
    this.width = rows.width;
    this.revision = rows.revision;
    const widths = this.measureWidths(rows, getComputedStyle(table).font);
    let left = 0;
    this.lefts = widths.map((width) => (left += width) - width);
    table.style.setProperty("--columns", widths.map((width) => `${width}px`).join(" "));
    const headers = rows.columns.filter((each) => each.header).length;
    table.ariaColCount = String(this.width + headers + this.labelColumns);
    table.ariaRowCount = String(this.total + 1);
  }

  place(place: number): Place {
    const column = this.columns[place - this.labelColumns];
    return {
      index: column ? column.position + 1 + this.labelColumns : 1,
      column,
      sticky: column ? column.header : true,
    };
  }

  private measureWidths(rows: FrameRows, font: string): number[] {
    const pen = document.createElement("canvas").getContext("2d")!;
    pen.font = font || "12px sans-serif";
    const longest = (texts: string[]): number =>
      texts.reduce((most, text) => Math.max(most, pen.measureText(text).width), 0);
    const widths = this.columns.map((column, place) => {
      const heading = longest([column.name, column.dtype]) * 1.08 + 58;
      const cells = longest(rows.cells.map((row) => row[place]!)) + 20;
      return Math.ceil(Math.min(WIDEST, Math.max(LEAST, heading, cells)));
    });
    if (this.labelColumns)
      widths.unshift(Math.ceil(Math.max(36, pen.measureText(String(this.all)).width + 20)));
    return widths;
  }
}

/** The rows that a display holds, as a window: what is shown before the kernel has said anything. */
export function firstRows(grid: Grid): FrameRows {
  const columns = grid.columns.map((each, position) => ({ ...each, position, dtype: each.detail }));
  const drawn = grid.rows.map((row) => row.map(unpackCell));
  const cells = drawn.map((row) => row.map((cell) => cell.text));
  const muted = drawn.map((row) => row.flatMap((cell, place) => (cell.tone === "muted" ? [place] : [])));
  const labels = columns.some((each) => each.header) ? [] : cells.map((_, row) => String(row));
  const width = columns.filter((each) => !each.header).length;
  return { start: 0, total: cells.length, width, revision: 0, columns, labels, cells, muted };
}
