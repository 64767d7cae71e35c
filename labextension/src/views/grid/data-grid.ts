// A table of any size: windows of rows and columns from the kernel, sorted and filtered there.
//
// Invariant: scrolling never waits. Rows that are not there yet are drawn as "…"; a new order or filter replaces what
// is shown only when its first window has come, so that a failure loses nothing. A press on a column means that column,
// also while a snapshot is shown, whose columns stand elsewhere than the kernel's.
import type { FilterKey, FrameColumn, FrameFigures, FrameRows, Grid, OpenedFrame } from "../../protocol";
import { RequestError, type Source, type ViewFunction } from "../../sources/source";
import { copy, copyButton, insertButton, announce } from "../dom/copy";
import { fill, focusedNear, formatCount, h, visible } from "../dom/h";
import { virtualRows } from "../dom/virtual-rows";
import { type RequestProgress, requestProgress, ignore } from "../request-progress";
import { barParts, describeRows } from "./bar";
import { columnMenu, replaceFilters, toggleSort } from "./column-menu";
import { Cursor } from "./cursor";
import { firstRows, HEAD, HEIGHT, Layout } from "./layout";
import { Popover } from "./popover";
import { cellText, headCells, patchCells, drawRow } from "./rows";
import { spark } from "./spark";
import { PAGE, type Query, WINDOW, Windows } from "./windows";

/**
 * The element lies in the `.reyn-view` of what shows the blob.
 *
 * @property first the rows of the snapshot, shown until the kernel answers
 * @property row the row to begin at, from 0 (`A` of "slice:A..B")
 */
export interface DataGridModel {
  blob: string;
  first?: Grid | null;
  row?: number;
}

const MAY_BE_CUT = /[…⏎]/; // a cell that may hold more than it shows

export const dataGrid: ViewFunction<DataGridModel> = (element, model, source) => {
  const view = new DataGridView(model, source);
  fill(element, view.box);
  view.start();
  return () => {
    view.dispose();
    element.replaceChildren();
  };
};

class DataGridView {
  private head = h("tr", { role: "row", "aria-rowindex": 1 });
  private body = h("tbody", { role: "rowgroup" });
  private table = h(
    "table",
    { role: "grid", "aria-label": "Rows", onkeydown: (event: KeyboardEvent) => this.onKeydown(event) },
    h("thead", { role: "rowgroup" }, this.head),
    this.body,
  );
  private port = h("div.r-port", {}, this.table);
  private status = h("div.r-status", { role: "status" });
  private bar = h("div.r-bar", { role: "group", "aria-label": "Table" });
  private progress: RequestProgress;
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
  private popover = new Popover(
    () => this.box,
    () => this.cursor.focus(),
    () => this.figuresRequest.abort(),
  );
  private drawnBar = ""; // what the bar depends on, as it was drawn
  private windows: Windows;
  private first: Grid | null; // what the snapshot holds, while nothing else is there
  private opened: Promise<OpenedFrame> | null = null;
  private nextQuery: Query | null = null; // asked for, not shown yet
  private queryRequest = new AbortController();
  private figuresRequest = new AbortController();
  private sparks = new Map<number, FrameFigures>(); // of columns, over all rows
  private sparksRequest = new AbortController();
  private sparking = false;
  private unwatch: () => void;

  constructor(
    private model: DataGridModel,
    private source: Source,
  ) {
    this.progress = requestProgress(source, this.table);
    this.box = h("div.r-grid", {}, this.bar, this.progress.box, this.port, this.status, this.popover.element);
    this.windows = this.createWindows({
      blob: model.blob,
      sort: [],
      filter: [],
      first_column: 0,
      column_count: PAGE,
    });
    this.unwatch = source.watch(() => source.state === "live" && this.rows.refresh());
    this.first = model.first ?? null;
  }

  /** The box is in the page: what the snapshot holds is shown at once, and the kernel asked. */
  start(): void {
    if (this.first) {
      this.layout.all = this.first.rows.length;
      this.show(firstRows(this.first));
    }
    this.opened = this.progress.request("frame.open", { blob: this.model.blob });
    this.opened
      .then((opened) => {
        this.layout.all = opened.rows;
        this.changeQuery({}, this.model.row ?? 0);
      })
      .catch(ignore);
  }

  dispose(): void {
    this.unwatch();
    this.popover.close(false);
    this.queryRequest.abort();
    this.figuresRequest.abort();
    this.sparksRequest.abort();
    this.progress.dispose();
    this.windows.dispose();
    this.rows.dispose();
  }

  private createWindows(query: Query): Windows {
    return new Windows(
      query,
      this.source,
      (rows) => {
        if (rows.revision !== this.layout.revision) this.applyRows(rows);
        this.rows.refresh();
      },
      (error) =>
        this.announceText(error instanceof RequestError ? `${error.message} ${error.hint}` : String(error)),
    );
  }

  /** Another order, filter or page of columns: shown once its first window is there. */
  private changeQuery(change: Partial<Query>, row = 0): void {
    this.queryRequest.abort();
    this.queryRequest = new AbortController();
    const query = { ...this.latestQuery, ...change };
    this.nextQuery = query;
    const start = Math.floor(row / WINDOW) * WINDOW;
    this.progress
      .request("frame.rows", { ...query, start, count: WINDOW }, this.queryRequest.signal)
      .then((rows) => {
        this.windows.dispose();
        this.windows = this.createWindows(query);
        this.first = this.nextQuery = null;
        this.show(rows);
        this.cursor.returnToRows();
        this.port.scrollTop = 0;
        void this.drawSparks();
        if (row) this.cursor.moveTo(row, this.cursor.position[1]);
      })
      .catch(() => {
        if (this.nextQuery === query) this.nextQuery = null;
      });
  }

  /** What the person asked for last, shown already or on its way. */
  private get latestQuery(): Query {
    return this.nextQuery ?? this.windows.query;
  }

  private show(rows: FrameRows): void {
    this.windows.put(rows);
    this.applyRows(rows);
    this.rows.count(this.layout.total);
  }

  /** Columns and counts as an answer has them. */
  private applyRows(rows: FrameRows): void {
    this.layout.apply(rows, this.table);
    if (this.cursor.position[1] < this.layout.labelColumns)
      this.cursor.position[1] = this.layout.labelColumns;
    this.drawHead();
    this.drawBar();
  }

  private drawHead(): void {
    const cells = headCells(this.layout, this.windows.query, {
      sortBy: (column, more) => this.withColumn(column, (each) => this.sortBy(each, more)),
      openMenu: (place) => this.openMenu(place),
      choose: ({ position }, chosen) => this.choose(position, chosen),
      figuresOf: ({ position }) => (this.first ? undefined : this.sparks.get(position)),
    });
    const hasFocus = (): boolean => this.head.contains(focusedNear(this.head));
    const focused = hasFocus();
    patchCells(this.head, cells);
    if (focused && !hasFocus()) this.cursor.focus();
  }

  /** Fetches what the columns' heads draw, one after another once rows are there; nothing waits for it. */
  private async drawSparks(): Promise<void> {
    if (this.sparking || this.source.state !== "live") return;
    this.sparking = true;
    const { blob } = this.model;
    const signal = this.sparksRequest.signal;
    try {
      if (!(await this.opened)?.figures) return;
      for (const { position } of [...this.layout.columns]) {
        if (signal.aborted) return;
        if (this.sparks.has(position)) continue;
        const asked = { blob, column: position, filter: [] };
        const figures = await this.source.request("frame.column", asked, { signal });
        this.sparks.set(position, figures);
        this.addSpark(position, figures);
      }
    } catch {
      // The menu of a column says why its figures cannot be had.
    } finally {
      this.sparking = false;
    }
  }

  /** Beside what the heading holds already, so that a press on it that has begun counts. */
  private addSpark(position: number, figures: FrameFigures): void {
    const drawing = spark(position, figures, (chosen) => this.choose(position, chosen));
    const heading = this.head.querySelector(`[data-column="${position}"]`);
    if (!this.first && heading && drawing && !heading.querySelector(".r-spark")) heading.append(drawing);
  }

  private choose(column: number, chosen: FilterKey[]): void {
    this.changeQuery({ filter: replaceFilters(this.latestQuery.filter, column, chosen) });
  }

  private drawBar(): void {
    const { total, width } = this.layout;
    const { filter, first_column: first } = this.windows.query;
    const state = JSON.stringify([total, width, first, filter.length > 0]);
    if (state === this.drawnBar) return; // what is being typed into it stays
    this.drawnBar = state;
    fill(
      this.bar,
      barParts(this.layout, this.windows.query, {
        row: (row) => this.cursor.moveTo(row, this.cursor.position[1]),
        page: (first) => this.page(first),
        clear: () => this.changeQuery({ filter: [] }),
        take: (button) => this.showCode(button),
      }),
    );
  }

  private draw(first: number, stop: number): void {
    this.windows.want(first, stop);
    const active = focusedNear(this.table);
    const focused = this.table.contains(active) && !this.head.contains(active);
    const actions = {
      settle: (at: [number, number]) => this.cursor.settle(at),
      showWhole: (row: number, place: number) => this.showWhole(row, place),
    };
    const drawn: HTMLElement[] = [];
    for (let row = first; row < stop; row += 1) drawn.push(drawRow(this.layout, this.windows, row, actions));
    fill(this.body, drawn);
    this.cursor.settle();
    if (focused) this.cursor.focus();
    this.showStatus();
  }

  private onKeydown(event: KeyboardEvent): void {
    const [row, place] = this.cursor.position;
    const far = event.ctrlKey || event.metaKey;
    const target = this.cursor.targetOf(event);
    if (event.altKey && event.key === "ArrowDown" && row < 0) this.openMenu(place);
    else if (event.altKey) return;
    else if (target) this.move(target, event.key === "ArrowLeft");
    else if (event.key === "Enter" || event.key === " ") {
      if (row >= 0) this.showWhole(row, place);
      else if ((event.target as Element).tagName === "BUTTON") return;
      else this.withColumn(this.layout.place(place).column, (each) => this.sortBy(each, event.shiftKey));
    } else if (far && event.key.toLowerCase() === "c" && !getSelection()?.toString() && row >= 0)
      this.copyCell(row, place);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** To a cell; beyond the columns that are here, to the next page of them. */
  private move(to: [number, number], left: boolean): void {
    const first = this.windows.query.first_column;
    if (to[1] > this.layout.lastPlace && first + PAGE < this.layout.width) this.page(first + PAGE);
    else if (left && first && !this.layout.place(to[1]).column) this.page(first - PAGE);
    else this.cursor.moveTo(...this.cursor.clamp(to), true);
  }

  private page(first: number): void {
    this.changeQuery({ first_column: Math.max(0, first) }, this.rows.first);
    this.cursor.position = [this.cursor.position[0], this.layout.labelColumns];
    this.port.scrollLeft = 0;
  }

  /**
   * Acts on a column as the kernel counts them. In a snapshot the rows of a plain frame have their numbers in a column,
   * which is none of the stored table; the kernel's answer says whether any columns name its rows.
   */
  private withColumn(column: FrameColumn | undefined, act: (column: FrameColumn) => void): void {
    if (!column || !this.first) return void (column && act(column));
    const named = this.layout.columns.filter((each) => each.header).length;
    this.opened
      ?.then(({ headers }) => {
        const position = column.position - (headers ? 0 : named);
        if (position >= 0) act({ ...column, position });
      })
      .catch(ignore);
  }

  private sortBy({ position }: FrameColumn, more: boolean): void {
    this.changeQuery({ sort: toggleSort(this.latestQuery.sort, position, more) });
  }

  /** The text of a cell, fetched whole where it is shown cut. */
  private async fetchText(row: number, place: number): Promise<string> {
    const shown = cellText(this.layout, this.windows, row, place);
    const { column } = this.layout.place(place);
    if (!column || !MAY_BE_CUT.test(shown)) return shown;
    const { blob, sort, filter } = this.windows.query;
    const whole = await this.progress.request("frame.cell", {
      blob,
      row,
      column: column.position,
      sort,
      filter,
    });
    return whole.text;
  }

  private copyCell(row: number, place: number): void {
    this.fetchText(row, place)
      .then(copy)
      .then(
        () => this.announceText("Copied"),
        () => this.announceText("Not copied"),
      );
  }

  private showWhole(row: number, place: number): void {
    if (!MAY_BE_CUT.test(cellText(this.layout, this.windows, row, place))) return;
    void this.fetchText(row, place)
      .then((text) => {
        const pre = h("pre", { tabindex: 0, "aria-label": "Whole cell" }, visible(text));
        const beside = this.cursor.settle() ?? this.port;
        this.popover.open(`Row ${formatCount(row + 1)}`, beside, [pre, copyButton(() => text)], pre);
      })
      .catch(ignore);
  }

  private openMenu(place: number): void {
    this.withColumn(this.layout.place(place).column, (column) => this.showMenu(column, place));
  }

  private showMenu(column: FrameColumn, place: number): void {
    const { blob, filter } = this.windows.query;
    const now = filter.filter((each) => each.column === column.position);
    const { parts, show } = columnMenu(column, now, (chosen) => {
      this.popover.close();
      this.choose(column.position, chosen);
    });
    const head = this.head.children[place] as HTMLElement;
    this.popover.open(`Column ${visible(column.name)}`, head, parts, parts[0]!.querySelector("input"));
    this.figuresRequest = new AbortController();
    this.progress
      .request("frame.column", { blob, column: column.position, filter }, this.figuresRequest.signal)
      .then(show)
      .catch(ignore);
  }

  private showCode(button: HTMLElement): void {
    const { blob, sort, filter } = this.windows.query;
    const { insertCell } = this.source.host;
    this.progress
      .request("frame.code", { blob, sort, filter })
      .then(({ code }) => {
        const copies = copyButton(() => code, "code");
        const parts = [h("pre", {}, visible(code)), copies];
        if (insertCell) parts.push(insertButton(code, insertCell));
        this.popover.open("Take into pandas", button, parts, copies);
      })
      .catch(ignore);
  }

  /** Says what is shown; of the snapshot's rows in the snapshot's own words. */
  private showStatus(): void {
    const { first, layout, rows, windows } = this;
    const text = first
      ? visible([first.caption, first.more].filter(Boolean).join(" · "))
      : describeRows(layout, windows.query, rows.inSight);
    if (this.status.textContent !== text) this.status.textContent = text;
  }

  private announceText(text: string): void {
    if (this.box.closest(".reyn-view")) announce(this.box, visible(text));
    this.status.textContent = visible(text);
  }
}
