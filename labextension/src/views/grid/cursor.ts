// Where the keyboard is in a grid.
//
// Invariant: exactly one thing can be tabbed to, a cell or, while that cell is out of sight, the table itself; moving
// brings the cell into sight.
import type { VirtualRows } from "../dom/virtual-rows";
import type { Layout } from "./layout";

/** Row -1 is the heading. */
export type CellPosition = [row: number, place: number];

export class Cursor {
  position: CellPosition = [0, 0];

  constructor(
    private table: HTMLTableElement,
    private port: HTMLElement,
    private layout: Layout,
    private rows: VirtualRows,
  ) {}

  /** Lets the cell there be tabbed to; null while it is out of sight. */
  settle(position: CellPosition = this.position): HTMLElement | null {
    this.table.querySelector('[tabindex="0"]')?.setAttribute("tabindex", "-1");
    this.position = position;
    const cell = this.table.querySelector<HTMLElement>(
      `[data-row="${position[0]}"][data-place="${position[1]}"]`,
    );
    this.table.tabIndex = cell ? -1 : 0;
    if (cell) cell.tabIndex = 0;
    return cell;
  }

  focus(): void {
    (this.settle() ?? this.table).focus({ preventScroll: true });
  }

  /** Bring a cell into sight, and with `focus` the keyboard to it. */
  moveTo(row: number, place: number, focus = false): void {
    const { layout, port } = this;
    this.position = [row, place];
    if (row >= 0) this.rows.reveal(row);
    const cell = this.settle();
    const stuck = layout.lefts.findLastIndex((_, each) => layout.place(each).sticky) + 1;
    const edge = layout.lefts[stuck] ?? 0;
    const left = layout.lefts[place]!;
    if (place >= stuck) {
      const right = left + (cell?.offsetWidth ?? 0);
      if (left - edge < port.scrollLeft) port.scrollLeft = left - edge;
      else if (right > port.scrollLeft + port.clientWidth) port.scrollLeft = right - port.clientWidth;
    } else port.scrollLeft = 0; // a label stays in sight anyway; what belongs beside it is the first column
    if (focus) this.focus();
  }

  /** Back to a cell that is there, when rows or columns went. */
  returnToRows(): void {
    const [row, place] = this.position;
    const { total, columns, labelColumns: labelled } = this.layout;
    this.position = [
      Math.min(row, Math.max(0, total - 1)),
      Math.max(labelled, Math.min(place, columns.length)),
    ];
  }

  /** Where a key leads from here, be it beyond the edge; undefined for a key that moves nothing. */
  targetOf({ key, ctrlKey, metaKey }: KeyboardEvent): CellPosition | undefined {
    const [row, place] = this.position;
    const { total, lastPlace: last } = this.layout;
    const far = ctrlKey || metaKey;
    const page = Math.max(1, this.rows.visible - 1);
    const to: Record<string, CellPosition> = {
      ArrowDown: [row + 1, place],
      ArrowUp: [row - 1, place],
      ArrowRight: [row, place + 1],
      ArrowLeft: [row, place - 1],
      PageDown: [row + page, place],
      PageUp: [Math.max(row < 0 ? -1 : 0, row - page), place],
      Home: [far ? 0 : row, 0],
      End: [far ? total - 1 : row, last],
    };
    return to[key];
  }

  /** The nearest cell that there is. */
  clamp([row, place]: CellPosition): CellPosition {
    const { total, lastPlace: last } = this.layout;
    return [Math.max(-1, Math.min(total - 1, row)), Math.max(0, Math.min(last, place))];
  }
}
