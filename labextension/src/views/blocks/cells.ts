// The cells of a table, as they travel: in short, since a table has many.
import type { CellFields, Grid } from "../../protocol";

/** A text, with the number that it is sorted by where it has one. */
export type SortedText = string | [text: string, value: number];

/** A cell with everything that it is drawn and sorted by; one that is missing comes last. */
export type Cell = Required<Omit<CellFields, "value">> & { value: number | null };

export const textOf = (cell: SortedText | undefined): string =>
  Array.isArray(cell) ? cell[0] : (cell ?? "");

export const valueOf = (cell: SortedText | undefined): number | null =>
  Array.isArray(cell) ? cell[1] : null;

export function unpackCell(cell: Grid["rows"][number][number]): Cell {
  const short = typeof cell === "string" || Array.isArray(cell);
  const fields = short ? { text: textOf(cell), value: valueOf(cell) } : cell;
  return { tone: "plain", face: "text", value: null, missing: !fields.text, ...fields };
}
