// Rows of a table in another order, from the windows and the ranks that a page holds.
//
// Invariant: the order is the kernel's: stable, and what is missing comes last either way.
import type { AskRows, FrameRanks, FrameRows } from "../protocol";

type Lookup = (op: "frame.rows" | "frame.ranks", args: object) => unknown;

/** A window of the rows that are held, sorted as asked; null where something that it takes is not held. */
export function sortedRows(asked: AskRows, held: Lookup): FrameRows | null {
  if (asked.filter.length) return null;
  const windows: FrameRows[] = [];
  const window = (start: number): FrameRows | undefined =>
    held("frame.rows", { ...asked, sort: [], start }) as FrameRows | undefined;
  for (let start = 0, next = window(0); next; next = window((start += asked.count))) windows.push(next);
  const [first] = windows;
  const ranks =
    first && (held("frame.ranks", { blob: asked.blob, count: first.total }) as FrameRanks | undefined);
  if (!first || !ranks) return null;
  const keys = asked.sort.map(({ column, descending }) => ({
    ranks: ranks.ranks[first.columns.findIndex((each) => each.position === column)] ?? [],
    sign: descending ? -1 : 1,
  }));
  const compare = (one: number, other: number): number => {
    for (const { ranks, sign } of keys) {
      const [a, b] = [ranks[one] ?? -1, ranks[other] ?? -1];
      if (a !== b) return a < 0 || b < 0 ? b - a : sign * (a - b);
    }
    return one - other;
  };
  const all = <T>(part: (rows: FrameRows) => readonly T[]): T[] => windows.flatMap(part);
  const order = all((rows) => rows.cells)
    .map((_, row) => row)
    .toSorted(compare);
  const chosen = order.slice(asked.start, asked.start + asked.count);
  const pick = <T>(part: readonly T[]): T[] => (part.length ? chosen.map((row) => part[row]!) : []);
  return {
    ...first,
    start: asked.start,
    labels: pick(all((rows) => rows.labels)),
    cells: pick(all((rows) => rows.cells)),
    muted: pick(all((rows) => rows.muted)),
  };
}
