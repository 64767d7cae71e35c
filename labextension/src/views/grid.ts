// A table of any size: windows of rows and columns from the kernel, sorted and filtered there.
//
// Invariant: scrolling never waits. Rows that are not there yet are drawn as "…"; a new order or filter replaces what
// is shown only when its first window has come, so that a failure loses nothing.
import type { FilterKey, FrameColumn, FrameRows, Grid, SortKey } from "../protocol";
import { RequestError, type Source, type ViewFunction } from "../sources/source";
import { type Asker, asker, ignored } from "./patience";
import { copy, copyButton, insertButton, say } from "./copy";
import { columnMenu, inWords } from "./grid-column";
import { type Query, WINDOW, Windows } from "./grid-windows";
import { fill, h, unique } from "./h";
import { virtualRows } from "./rows";
import { visible } from "./text";

/**
 * The element lies in the `.reyn-view` of what shows the blob.
 *
 * @property first the rows of the snapshot, shown until the kernel answers
 * @property row the row to begin at, from 0 (`A` of "slice:A..B")
 */
export interface GridModel {
  blob: string;
  first?: Grid | null;
  row?: number;
}

const HEIGHT = 25; // px of a row; the style sheet has the same
const HEAD = 40; // and of the heading
const PAGE = 40; // columns at once
const WIDEST = 360;
const number = (value: number): string => value.toLocaleString("en-US");

export const grid: ViewFunction<GridModel> = (element, model, source) => {
  const view = new GridView(model, source);
  fill(element, view.box);
  view.start();
  return () => {
    view.dispose();
    element.replaceChildren();
  };
};

class GridView {
  private head = h("tr", { role: "row", "aria-rowindex": 1 });
  private body = h("tbody", { role: "rowgroup" });
  private table = h(
    "table",
    { role: "grid", "aria-label": "Rows", onkeydown: (event: KeyboardEvent) => this.pressed(event) },
    h("thead", { role: "rowgroup" }, this.head),
    this.body,
  );
  private port = h("div.r-port", {}, this.table);
  private status = h("div.r-status", { role: "status" });
  private bar = h("div.r-bar", { role: "group", "aria-label": "Table" });
  private pop = h("div.r-pop", {
    role: "dialog",
    hidden: true,
    onkeydown: (event: KeyboardEvent) => this.leave(event),
  });
  private asking: Asker;
  readonly box: HTMLElement;
  private rows = virtualRows(
    this.port,
    this.table,
    this.body,
    HEIGHT,
    (first, stop) => this.draw(first, stop),
    HEAD,
  );
  private windows: Windows;
  private columns: FrameColumn[] = [];
  private labelled = true; // rows have a number for a name, not a column
  private total = 0;
  private all = 0; // rows, whatever the filters
  private width = 0; // columns beside those that name the rows
  private revision = 0;
  private lefts: number[] = [];
  private active: [row: number, column: number] = [0, 0]; // row -1 is the heading
  private changing = new AbortController();
  private figures = new AbortController();
  private closed: () => void = ignored;
  private unwatch: () => void;

  constructor(
    private model: GridModel,
    private source: Source,
  ) {
    this.asking = asker(source, this.table);
    this.box = h("div.r-grid", {}, this.bar, this.asking.box, this.port, this.status, this.pop);
    this.windows = this.made({ blob: model.blob, sort: [], filter: [], first_column: 0, column_count: PAGE });
    this.unwatch = source.watch(() => source.state === "live" && this.rows.refresh());
    if (model.first) this.showFirst(model.first);
  }

  start(): void {
    this.asking
      .ask("frame.open", { blob: this.model.blob })
      .then((opened) => {
        this.all = opened.rows;
        this.turn({}, this.model.row ?? 0);
      })
      .catch(ignored);
  }

  dispose(): void {
    this.unwatch();
    this.changing.abort();
    this.figures.abort();
    this.asking.dispose();
    this.windows.dispose();
    this.rows.dispose();
  }

  private made(query: Query): Windows {
    return new Windows(
      query,
      this.source,
      (rows) => {
        if (rows.revision !== this.revision) this.took(rows);
        this.rows.refresh();
      },
      (error) => this.tell(error instanceof RequestError ? `${error.message} ${error.hint}` : String(error)),
    );
  }

  /** The rows that the display holds, before the kernel has said anything. */
  private showFirst(first: Grid): void {
    const columns = first.columns.map((each, position) => ({ ...each, position, dtype: each.detail }));
    const cells = first.rows.map((row) => row.map((cell) => (typeof cell === "string" ? cell : cell.text)));
    const muted = first.rows.map((row) =>
      row.flatMap((cell, place) => (typeof cell !== "string" && cell.tone === "muted" ? [place] : [])),
    );
    const labels = columns.some((each) => each.header) ? [] : cells.map((_, row) => String(row));
    const width = columns.filter((each) => !each.header).length;
    this.all = cells.length;
    this.show({ start: 0, total: cells.length, width, revision: 0, columns, labels, cells, muted });
  }

  /** Another order, filter or page of columns: shown once its first window is there. */
  private turn(change: Partial<Query>, row = 0): void {
    this.changing.abort();
    this.changing = new AbortController();
    const query = { ...this.windows.query, ...change };
    const start = Math.floor(row / WINDOW) * WINDOW;
    this.asking
      .ask("frame.rows", { ...query, start, count: WINDOW }, this.changing.signal)
      .then((rows) => {
        this.windows.dispose();
        this.windows = this.made(query);
        this.show(rows);
        this.active = [
          Math.min(this.active[0], Math.max(0, rows.total - 1)),
          Math.min(this.active[1], this.columns.length),
        ];
        this.port.scrollTop = 0;
        if (row) this.go(row, this.active[1]);
      })
      .catch(ignored);
  }

  private show(rows: FrameRows): void {
    this.windows.put(rows);
    this.took(rows);
    this.rows.count(this.total);
  }

  /** Columns and counts as an answer has them. */
  private took(rows: FrameRows): void {
    this.columns = rows.columns;
    this.labelled = !rows.columns.some((each) => each.header);
    this.total = rows.total;
    this.width = rows.width;
    this.revision = rows.revision;
    this.measure(rows);
    this.drawHead();
    this.drawBar();
  }

  /** How wide the columns are, from the content of a window. */
  private measure(rows: FrameRows): void {
    const pen = document.createElement("canvas").getContext("2d")!;
    pen.font = getComputedStyle(this.table).font || "12px sans-serif";
    const longest = (texts: string[]): number =>
      texts.reduce((most, text) => Math.max(most, pen.measureText(text).width), 0);
    const widths = this.columns.map((column, place) =>
      Math.ceil(
        Math.min(
          WIDEST,
          Math.max(
            56,
            longest([column.name, column.dtype]) * 1.08 + 58,
            longest(rows.cells.map((row) => row[place]!)) + 20,
          ),
        ),
      ),
    );
    if (this.labelled) widths.unshift(Math.ceil(Math.max(36, pen.measureText(String(this.all)).width + 20)));
    if (this.active[1] < Number(this.labelled)) this.active[1] = Number(this.labelled);
    let left = 0;
    this.lefts = widths.map((width) => (left += width) - width);
    this.table.style.setProperty("--columns", widths.map((width) => `${width}px`).join(" "));
    this.table.ariaColCount = String(
      this.width + rows.columns.length - this.unnamed.length + Number(this.labelled),
    );
    this.table.ariaRowCount = String(this.total + 1);
  }

  private get unnamed(): FrameColumn[] {
    return this.columns.filter((each) => !each.header);
  }

  /** The attributes of a cell that follow from its place. */
  private place(place: number): { index: number; column: FrameColumn | undefined; sticky: boolean } {
    const column = this.columns[place - Number(this.labelled)];
    const sticky = column ? column.header : true;
    return { index: column ? column.position + 1 + Number(this.labelled) : 1, column, sticky };
  }

  private drawHead(): void {
    const { sort, filter } = this.windows.query;
    const cells = this.lefts.map((left, place) => {
      const { index, column, sticky } = this.place(place);
      const at = sort.findIndex((each) => each.column === column?.position);
      const key = sort[at];
      const name = visible(column?.name ?? "");
      return h(
        `th.r-cell${column?.right ? ".r-right" : ""}${sticky ? ".r-stick" : ""}`,
        {
          role: "columnheader",
          "aria-colindex": index,
          "aria-sort": column && (key ? (key.descending ? "descending" : "ascending") : "none"),
          "aria-label": column ? null : "Row",
          "aria-keyshortcuts": column && "Alt+ArrowDown",
          "data-row": -1,
          "data-place": place,
          tabindex: -1,
          style: sticky ? `left:${left}px` : null,
          onclick: (event: MouseEvent) => column && this.sorted(column, event.shiftKey),
        },
        column &&
          h(
            "span.r-name",
            {},
            h("bdi", {}, name),
            key &&
              h(
                "span.r-arrow",
                { "aria-hidden": "true" },
                key.descending ? "↓" : "↑",
                sort.length > 1 && at + 1,
              ),
          ),
        column &&
          h(
            `button.r-more-button${filter.some((each) => each.column === column.position) ? ".r-on" : ""}`,
            {
              type: "button",
              tabindex: -1,
              "aria-label": `Filter and figures of ${name}`,
              onclick: (event: Event) => {
                event.stopPropagation();
                this.menu(place);
              },
            },
            "▾",
          ),
        column && h("span.r-quiet", {}, visible(column.dtype)),
      );
    });
    const focused = this.head.contains(document.activeElement);
    fill(this.head, cells);
    if (focused) this.focus();
  }

  private draw(first: number, stop: number): void {
    this.windows.want(first, stop);
    const focused =
      this.table.contains(document.activeElement) && !this.head.contains(document.activeElement);
    const drawn: HTMLElement[] = [];
    for (let row = first; row < stop; row += 1) drawn.push(this.line(row));
    fill(this.body, drawn);
    this.settle();
    if (focused) this.focus();
    this.say();
  }

  private line(row: number): HTMLElement {
    const found = this.windows.of(row);
    const at = found ? row - found.start : 0;
    const cells = this.lefts.map((left, place) => {
      const { index, column, sticky } = this.place(place);
      const inner = place - Number(this.labelled);
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
          onmousedown: () => this.settle([row, place]),
          ondblclick: () => this.whole(row, place),
        },
        visible(text ?? ""),
      );
    });
    return h("tr", { role: "row", "aria-rowindex": row + 2 }, cells);
  }

  /** Where the keyboard is: one cell can be tabbed to, or the table itself while that cell is out of sight. */
  private settle(active = this.active): HTMLElement | null {
    this.table.querySelector('[tabindex="0"]')?.setAttribute("tabindex", "-1");
    this.active = active;
    const cell = this.table.querySelector<HTMLElement>(
      `[data-row="${active[0]}"][data-place="${active[1]}"]`,
    );
    this.table.tabIndex = cell ? -1 : 0;
    if (cell) cell.tabIndex = 0;
    return cell;
  }

  private focus(): void {
    (this.settle() ?? this.table).focus({ preventScroll: true });
  }

  /** Bring a cell into sight and the keyboard to it. */
  private go(row: number, place: number, focus = false): void {
    this.active = [row, place];
    if (row >= 0) this.rows.reveal(row);
    const cell = this.settle();
    const stuck = this.lefts.findLastIndex((_, each) => this.place(each).sticky) + 1;
    const edge = this.lefts[stuck] ?? 0;
    const left = this.lefts[place]!;
    if (place >= stuck) {
      const right = left + (cell?.offsetWidth ?? 0);
      if (left - edge < this.port.scrollLeft) this.port.scrollLeft = left - edge;
      else if (right > this.port.scrollLeft + this.port.clientWidth)
        this.port.scrollLeft = right - this.port.clientWidth;
    }
    if (focus) this.focus();
  }

  private pressed(event: KeyboardEvent): void {
    const [row, place] = this.active;
    const far = event.ctrlKey || event.metaKey;
    const last = this.lefts.length - 1;
    const page = Math.max(1, this.rows.visible - 1);
    const to: Record<string, [number, number]> = {
      ArrowDown: [row + 1, place],
      ArrowUp: [row - 1, place],
      ArrowRight: [row, place + 1],
      ArrowLeft: [row, place - 1],
      PageDown: [row + page, place],
      PageUp: [Math.max(row < 0 ? -1 : 0, row - page), place],
      Home: [far ? 0 : row, 0],
      End: [far ? this.total - 1 : row, last],
    };
    const wanted = to[event.key];
    if (event.altKey && event.key === "ArrowDown" && row < 0) this.menu(place);
    else if (event.altKey) return;
    else if (wanted) {
      const first = this.windows.query.first_column;
      if (wanted[1] > last && first + PAGE < this.width) this.page(first + PAGE);
      else if (event.key === "ArrowLeft" && first && !this.place(wanted[1])?.column) this.page(first - PAGE);
      else
        this.go(
          Math.max(-1, Math.min(this.total - 1, wanted[0])),
          Math.max(0, Math.min(last, wanted[1])),
          true,
        );
    } else if (event.key === "Enter" || event.key === " ") {
      if (row >= 0) this.whole(row, place);
      else if ((event.target as Element).tagName === "BUTTON") return;
      else if (this.place(place).column) this.sorted(this.place(place).column!, event.shiftKey);
    } else if (far && event.key.toLowerCase() === "c" && !getSelection()?.toString() && row >= 0)
      this.copied(row, place);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  private page(first: number): void {
    this.turn({ first_column: Math.max(0, first) }, this.rows.first);
    this.active = [this.active[0], Number(this.labelled)];
    this.port.scrollLeft = 0;
  }

  /** Ascending, descending, as stored; `more` keeps the other keys. */
  private sorted({ position }: FrameColumn, more: boolean): void {
    const { sort } = this.windows.query;
    const now = sort.find((each) => each.column === position);
    const next: SortKey[] = now?.descending ? [] : [{ column: position, descending: !!now }];
    const place = sort.findIndex((each) => each.column === position);
    this.turn({ sort: !more ? next : place < 0 ? [...sort, ...next] : sort.toSpliced(place, 1, ...next) });
  }

  private filtered(column: number, filter: FilterKey | null): void {
    this.close();
    const others = this.windows.query.filter.filter((each) => each.column !== column);
    this.turn({ filter: filter ? [...others, filter] : others });
  }

  private cell(row: number, place: number): string {
    const found = this.windows.of(row);
    const inner = place - Number(this.labelled);
    return (inner < 0 ? found?.labels[row - found.start] : found?.cells[row - found.start]?.[inner]) ?? "";
  }

  /** The text of a cell, fetched whole where it is shown cut. */
  private async text(row: number, place: number): Promise<string> {
    const shown = this.cell(row, place);
    const { column } = this.place(place);
    if (!column || !/[…⏎]/.test(shown)) return shown;
    const { blob, sort, filter } = this.windows.query;
    const whole = await this.asking.ask("frame.cell", { blob, row, column: column.position, sort, filter });
    return whole.text;
  }

  private copied(row: number, place: number): void {
    this.text(row, place)
      .then(copy)
      .then(
        () => this.tell("Copied"),
        () => this.tell("Not copied"),
      );
  }

  private whole(row: number, place: number): void {
    if (!/[…⏎]/.test(this.cell(row, place))) return;
    void this.text(row, place)
      .then((text) => {
        const pre = h("pre", { tabindex: 0, "aria-label": "Whole cell" }, visible(text));
        this.open(`Row ${number(row + 1)}`, this.settle(), [pre, copyButton(() => text)], pre);
      })
      .catch(ignored);
  }

  private menu(place: number): void {
    const { column } = this.place(place);
    if (!column) return;
    const { blob, filter } = this.windows.query;
    const now = filter.find((each) => each.column === column.position);
    const made = columnMenu(column, now, (chosen) => this.filtered(column.position, chosen));
    const head = this.head.children[place] as HTMLElement;
    this.open(`Column ${visible(column.name)}`, head, made.parts, made.parts[0]!.querySelector("input"));
    this.figures = new AbortController();
    this.asking
      .ask("frame.column", { blob, column: column.position, filter }, this.figures.signal)
      .then(made.show)
      .catch(ignored);
  }

  private take(button: HTMLElement): void {
    const { blob, sort, filter } = this.windows.query;
    const { insertCell } = this.source.host;
    this.asking
      .ask("frame.code", { blob, sort, filter })
      .then(({ code }) => {
        const copies = copyButton(() => code, "code");
        const pre = h("pre", {}, visible(code));
        this.open(
          "Take into pandas",
          button,
          [pre, copies, ...(insertCell ? [insertButton(code, insertCell)] : [])],
          copies,
        );
      })
      .catch(ignored);
  }

  /** A small dialog beside an element; Escape and a click elsewhere close it. */
  private open(
    title: string,
    beside: HTMLElement | null,
    parts: HTMLElement[],
    focus: HTMLElement | null,
  ): void {
    this.close();
    const name = unique("pop");
    this.pop.setAttribute("aria-labelledby", name);
    fill(
      this.pop,
      h(
        "div.r-bar",
        {},
        h("strong", { id: name }, title),
        h(
          "button.r-button.r-copy",
          { type: "button", "aria-label": "Close", onclick: () => this.close() },
          "✕",
        ),
      ),
      parts,
    );
    this.pop.hidden = false;
    const around = this.box.getBoundingClientRect();
    const at = (beside ?? this.port).getBoundingClientRect();
    this.pop.style.left = `${Math.max(4, Math.min(at.left - around.left, around.width - this.pop.offsetWidth - 4))}px`;
    this.pop.style.top = `${Math.max(4, Math.min(at.bottom - around.top + 2, around.height - this.pop.offsetHeight - 4))}px`;
    const outside = (event: Event): void => {
      if (!event.composedPath().includes(this.pop)) this.close(false);
    };
    document.addEventListener("pointerdown", outside);
    const back = document.activeElement;
    this.closed = () => {
      document.removeEventListener("pointerdown", outside);
      if (back instanceof HTMLElement && back.isConnected && back !== document.body)
        back.focus({ preventScroll: true });
      else this.focus();
    };
    focus?.focus({ preventScroll: true });
  }

  private close(focus = true): void {
    if (this.pop.hidden) return;
    this.figures.abort();
    this.pop.hidden = true;
    const after = this.closed;
    this.closed = ignored;
    if (focus) after();
  }

  private leave(event: KeyboardEvent): void {
    event.stopPropagation();
    if (event.key === "Escape") this.close();
  }

  private drawBar(): void {
    if (this.bar.contains(document.activeElement) && this.bar.childElementCount && !this.width) return;
    const { filter, first_column: first } = this.windows.query;
    const jump = (label: string, most: number, to: (value: number) => void): HTMLElement =>
      h(
        "label.r-line",
        {},
        h("span.r-label", {}, label),
        h("input", {
          type: "number",
          min: 1,
          max: most,
          onchange: (event: Event) => {
            const given = Math.round(Number((event.target as HTMLInputElement).value));
            if (given >= 1) to(Math.min(most, given) - 1);
          },
        }),
      );
    const turn = (label: string, text: string, to: number, there: boolean): HTMLElement =>
      h(
        "button.r-button",
        { type: "button", "aria-label": label, disabled: !there, onclick: () => this.page(to) },
        text,
      );
    fill(
      this.bar,
      jump("Row", Math.max(1, this.total), (row) => this.total && this.go(row, this.active[1])),
      this.width > PAGE && [
        jump("Column", this.width, (column) => this.page(Math.floor(column / PAGE) * PAGE)),
        turn("Columns before", "‹", first - PAGE, first > 0),
        h("span", {}, `columns ${number(first + 1)}–${number(Math.min(this.width, first + PAGE))}`),
        turn("Columns after", "›", first + PAGE, first + PAGE < this.width),
      ],
      filter.length > 0 &&
        h("button.r-button", { type: "button", onclick: () => this.turn({ filter: [] }) }, "Clear filters"),
      h(
        "button.r-button.r-take",
        { type: "button", onclick: (event: Event) => this.take(event.currentTarget as HTMLElement) },
        "Take into pandas",
      ),
    );
  }

  /** Says what is shown, once scrolling rests. */
  private say(): void {
    const { sort, filter } = this.windows.query;
    const name = (position: number): string =>
      visible(this.columns.find((each) => each.position === position)?.name ?? `column ${position + 1}`);
    const first = this.rows.first;
    const last = Math.min(this.total, first + this.rows.visible);
    const parts = [
      `${number(this.all)} ${this.all === 1 ? "row" : "rows"} × ${number(this.width)} ${this.width === 1 ? "column" : "columns"}`,
      this.total ? `rows ${number(first + 1)}–${number(last)}` : "no rows",
      sort.length &&
        `sorted by ${sort.map((each) => `${name(each.column)} ${each.descending ? "↓" : "↑"}`).join(", ")}`,
      filter.length &&
        `${number(this.total)} match ${filter.map((each) => inWords(name(each.column), each)).join(", ")}`,
    ];
    const text = parts.filter(Boolean).join(" · ");
    if (this.status.textContent !== text) this.status.textContent = text;
  }

  private tell(text: string): void {
    if (this.box.closest(".reyn-view")) say(this.box, visible(text));
    this.status.textContent = visible(text);
  }
}
