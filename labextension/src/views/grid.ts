// A table of any size: windows of rows and columns from the kernel, sorted and filtered there.
//
// Invariant: scrolling never waits. Rows that are not there yet are drawn as "…"; a new order or filter replaces what
// is shown only when its first window has come, so that a failure loses nothing.
import type { FrameColumn, FrameRows, Grid } from "../protocol";
import { RequestError, type Source, type ViewFunction } from "../sources/source";
import { copy, copyButton, insertButton, say } from "./copy";
import { barParts, number, shownInWords } from "./grid-bar";
import { columnMenu, filteredBy, sortedBy } from "./grid-column";
import { Cursor } from "./grid-cursor";
import { firstRows, HEAD, HEIGHT, Layout } from "./grid-layout";
import { Popover } from "./grid-pop";
import { cellText, headCells, keepAlike, line } from "./grid-table";
import { PAGE, type Query, WINDOW, Windows } from "./grid-windows";
import { fill, h } from "./h";
import { type Asker, asker, ignored } from "./patience";
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

const CUT = /[…⏎]/; // a cell that may hold more than it shows

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
  private layout = new Layout();
  private cursor = new Cursor(this.table, this.port, this.layout, this.rows);
  private pop = new Popover(
    () => this.box,
    () => this.cursor.focus(),
    () => this.figures.abort(),
  );
  private windows: Windows;
  private first: Grid | null; // what the snapshot holds, while nothing else is there
  private coming: Query | null = null; // asked for, not shown yet
  private changing = new AbortController();
  private figures = new AbortController();
  private unwatch: () => void;

  constructor(
    private model: GridModel,
    private source: Source,
  ) {
    this.asking = asker(source, this.table);
    this.box = h("div.r-grid", {}, this.bar, this.asking.box, this.port, this.status, this.pop.element);
    this.windows = this.made({ blob: model.blob, sort: [], filter: [], first_column: 0, column_count: PAGE });
    this.unwatch = source.watch(() => source.state === "live" && this.rows.refresh());
    this.first = model.first ?? null;
  }

  /** The box is in the page: what the snapshot holds is shown at once, and the kernel asked. */
  start(): void {
    if (this.first) {
      this.layout.all = this.first.rows.length;
      this.show(firstRows(this.first));
    }
    this.asking
      .ask("frame.open", { blob: this.model.blob })
      .then((opened) => {
        this.layout.all = opened.rows;
        this.turn({}, this.model.row ?? 0);
      })
      .catch(ignored);
  }

  dispose(): void {
    this.unwatch();
    this.pop.close(false);
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
        if (rows.revision !== this.layout.revision) this.took(rows);
        this.rows.refresh();
      },
      (error) => this.tell(error instanceof RequestError ? `${error.message} ${error.hint}` : String(error)),
    );
  }

  /** Another order, filter or page of columns: shown once its first window is there. */
  private turn(change: Partial<Query>, row = 0): void {
    this.changing.abort();
    this.changing = new AbortController();
    const query = { ...this.wanted, ...change };
    this.coming = query;
    const start = Math.floor(row / WINDOW) * WINDOW;
    this.asking
      .ask("frame.rows", { ...query, start, count: WINDOW }, this.changing.signal)
      .then((rows) => {
        this.windows.dispose();
        this.windows = this.made(query);
        this.first = this.coming = null;
        this.show(rows);
        this.cursor.stay();
        this.port.scrollTop = 0;
        if (row) this.cursor.go(row, this.cursor.at[1]);
      })
      .catch(() => {
        if (this.coming === query) this.coming = null;
      });
  }

  /** What the person asked for last, shown already or on its way. */
  private get wanted(): Query {
    return this.coming ?? this.windows.query;
  }

  private show(rows: FrameRows): void {
    this.windows.put(rows);
    this.took(rows);
    this.rows.count(this.layout.total);
  }

  /** Columns and counts as an answer has them. */
  private took(rows: FrameRows): void {
    this.layout.take(rows, this.table);
    if (this.cursor.at[1] < this.layout.labelled) this.cursor.at[1] = this.layout.labelled;
    const cells = headCells(this.layout, this.windows.query, {
      sorted: (column, more) => this.sorted(column, more),
      menu: (place) => this.menu(place),
    });
    const focused = this.head.contains(document.activeElement);
    keepAlike(this.head, cells);
    if (focused && !this.head.contains(document.activeElement)) this.cursor.focus();
    this.drawBar();
  }

  private drawBar(): void {
    fill(
      this.bar,
      barParts(this.layout, this.windows.query, {
        row: (row) => this.cursor.go(row, this.cursor.at[1]),
        page: (first) => this.page(first),
        clear: () => this.turn({ filter: [] }),
        take: (button) => this.take(button),
      }),
    );
  }

  private draw(first: number, stop: number): void {
    this.windows.want(first, stop);
    const active = document.activeElement;
    const focused = this.table.contains(active) && !this.head.contains(active);
    const actions = {
      settle: (at: [number, number]) => this.cursor.settle(at),
      whole: (row: number, place: number) => this.whole(row, place),
    };
    const drawn: HTMLElement[] = [];
    for (let row = first; row < stop; row += 1) drawn.push(line(this.layout, this.windows, row, actions));
    fill(this.body, drawn);
    this.cursor.settle();
    if (focused) this.cursor.focus();
    this.say();
  }

  private pressed(event: KeyboardEvent): void {
    const [row, place] = this.cursor.at;
    const far = event.ctrlKey || event.metaKey;
    const wanted = this.cursor.led(event);
    if (event.altKey && event.key === "ArrowDown" && row < 0) this.menu(place);
    else if (event.altKey) return;
    else if (wanted) this.move(wanted, event.key === "ArrowLeft");
    else if (event.key === "Enter" || event.key === " ") {
      if (row >= 0) this.whole(row, place);
      else if ((event.target as Element).tagName === "BUTTON") return;
      else if (this.layout.place(place).column) this.sorted(this.layout.place(place).column!, event.shiftKey);
    } else if (far && event.key.toLowerCase() === "c" && !getSelection()?.toString() && row >= 0)
      this.copied(row, place);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** To a cell; beyond the columns that are here, to the next page of them. */
  private move(to: [number, number], left: boolean): void {
    const first = this.windows.query.first_column;
    if (to[1] > this.layout.last && first + PAGE < this.layout.width) this.page(first + PAGE);
    else if (left && first && !this.layout.place(to[1]).column) this.page(first - PAGE);
    else this.cursor.go(...this.cursor.within(to), true);
  }

  private page(first: number): void {
    this.turn({ first_column: Math.max(0, first) }, this.rows.first);
    this.cursor.at = [this.cursor.at[0], this.layout.labelled];
    this.port.scrollLeft = 0;
  }

  private sorted({ position }: FrameColumn, more: boolean): void {
    this.turn({ sort: sortedBy(this.wanted.sort, position, more) });
  }

  /** The text of a cell, fetched whole where it is shown cut. */
  private async text(row: number, place: number): Promise<string> {
    const shown = cellText(this.layout, this.windows, row, place);
    const { column } = this.layout.place(place);
    if (!column || !CUT.test(shown)) return shown;
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
    if (!CUT.test(cellText(this.layout, this.windows, row, place))) return;
    void this.text(row, place)
      .then((text) => {
        const pre = h("pre", { tabindex: 0, "aria-label": "Whole cell" }, visible(text));
        const beside = this.cursor.settle() ?? this.port;
        this.pop.open(`Row ${number(row + 1)}`, beside, [pre, copyButton(() => text)], pre);
      })
      .catch(ignored);
  }

  private menu(place: number): void {
    const { column } = this.layout.place(place);
    if (!column) return;
    const { blob, filter } = this.windows.query;
    const now = filter.find((each) => each.column === column.position);
    const { parts, show } = columnMenu(column, now, (chosen) => {
      this.pop.close();
      this.turn({ filter: filteredBy(filter, column.position, chosen) });
    });
    const head = this.head.children[place] as HTMLElement;
    this.pop.open(`Column ${visible(column.name)}`, head, parts, parts[0]!.querySelector("input"));
    this.figures = new AbortController();
    this.asking
      .ask("frame.column", { blob, column: column.position, filter }, this.figures.signal)
      .then(show)
      .catch(ignored);
  }

  private take(button: HTMLElement): void {
    const { blob, sort, filter } = this.windows.query;
    const { insertCell } = this.source.host;
    this.asking
      .ask("frame.code", { blob, sort, filter })
      .then(({ code }) => {
        const copies = copyButton(() => code, "code");
        const parts = [h("pre", {}, visible(code)), copies];
        if (insertCell) parts.push(insertButton(code, insertCell));
        this.pop.open("Take into pandas", button, parts, copies);
      })
      .catch(ignored);
  }

  /** Says what is shown; of the snapshot's rows in the snapshot's own words. */
  private say(): void {
    const { first, layout, rows, windows } = this;
    const text = first
      ? visible([first.caption, first.more].filter(Boolean).join(" · "))
      : shownInWords(layout, windows.query, rows.first, rows.visible);
    if (this.status.textContent !== text) this.status.textContent = text;
  }

  private tell(text: string): void {
    if (this.box.closest(".reyn-view")) say(this.box, visible(text));
    this.status.textContent = visible(text);
  }
}
