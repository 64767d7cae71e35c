// The table of actions: tens of thousands of rows, of which only those in sight are in the page.
//
// Invariant: `shown` holds the rows that fit the search, in the order that the table is sorted by; the cursor stays on
// its action through search, sorting and new rows, as long as that action is shown.
import type { CatalogPage } from "../protocol";
import { fill, h, unique } from "./h";
import { visible } from "./text";
import { type VirtualRows, virtualRows } from "./rows";

const WIDE = 660; // px from which a row is one line with all columns
const LINE = 30;
const LINES = 50; // px of a row on two lines
const FIGURES = 6; // the columns from here on hold figures
const BADGE = 4;

export interface ActionTable {
  element: HTMLElement;
  /** What is shown from now on: these rows, in the catalog's order. */
  load(page: Pick<CatalogPage, "columns" | "tones">, rows: readonly string[][]): void;
  /** Narrows to the rows of a category ("" for all) that have every word. */
  search(words: string, category: string): void;
  /** Puts a row in the place of the one of the same name. */
  renew(row: string[]): void;
  /** Puts the cursor on the first row, if there is none, and takes the focus. */
  focus(): void;
  /** Opens the row under the cursor, or the first one. */
  open(): void;
  readonly count: number;
  dispose(): void;
}

/** How texts are compared: without case, and `-`, `_` and space alike. */
export const fold = (text: string): string => text.toLowerCase().replace(/[-_ ]+/g, " ");

export function actionTable(opened: (name: string) => void): ActionTable {
  let rows: readonly string[][] = [];
  let folded: string[] = [];
  let order: number[] = [];
  let shown: number[] = [];
  let tones: CatalogPage["tones"] = {};
  let sorted: { column: number; down: boolean } | null = null;
  let sought: string[] = [];
  let category = "";
  let cursor = "";
  let at = -1; // the cursor's place in `shown`
  let narrow = false;
  let virtual: VirtualRows | null = null;

  const prefix = unique("action");
  const body = h("tbody", { role: "rowgroup", onclick: clicked });
  const head = h("tr", { role: "row", "aria-rowindex": 1 });
  const table = h(
    "table.r-actions",
    { role: "grid", tabindex: 0, "aria-label": "Actions", onkeydown: pressed },
    h("thead", { role: "rowgroup" }, head),
    body,
  );
  const element = h("div.r-scroll.r-pick", {}, table);
  const resized = new ResizeObserver(() => {
    if (element.clientWidth && (!virtual || narrow !== element.clientWidth < WIDE)) lay();
  });
  resized.observe(element);

  function lay(): void {
    virtual?.dispose();
    narrow = element.clientWidth < WIDE;
    element.classList.toggle("r-narrow", narrow);
    virtual = virtualRows(element, table, body, narrow ? LINES : LINE, draw, LINE);
    virtual.count(shown.length);
    if (at >= 0) virtual.reveal(at);
  }

  function draw(first: number, stop: number): void {
    fill(
      body,
      shown.slice(first, stop).map((row, place) => drawRow(rows[row]!, first + place)),
    );
    mark();
  }

  function drawRow(row: string[], place: number): HTMLElement {
    return h(
      "tr",
      {
        role: "row",
        id: `${prefix}-${place}`,
        "aria-rowindex": place + 2,
        "aria-selected": String(place === at),
      },
      row.map((text, column) => {
        const seen = visible(text);
        if (!column) return h("th", { role: "rowheader", scope: "row", title: seen }, h("code", {}, seen));
        const tone = tones[text] ?? "muted";
        return h(
          "td",
          { role: "gridcell", title: column < BADGE ? seen : null },
          column === BADGE ? h(`span.r-badge.r-${tone}`, {}, seen) : seen,
        );
      }),
    );
  }

  /** Tells assistive technology and the eye where the cursor is. */
  function mark(): void {
    for (const row of body.children) row.setAttribute("aria-selected", String(row.id === `${prefix}-${at}`));
    const there = at >= 0 && body.querySelector(`#${prefix}-${at}`);
    if (there) table.setAttribute("aria-activedescendant", there.id);
    else table.removeAttribute("aria-activedescendant");
  }

  function narrowed(): void {
    shown = order.filter(
      (row) =>
        (!category || rows[row]![1] === category) && sought.every((word) => folded[row]!.includes(word)),
    );
    if (sought.length && !sorted) {
      // What a name says comes before what only a description mentions.
      const named = (row: number): boolean =>
        sought.every((word) => folded[row]!.split("\n")[0]!.includes(word));
      const first = new Set(shown.filter(named));
      shown = [...first, ...shown.filter((row) => !first.has(row))];
    }
    at = cursor ? shown.findIndex((row) => rows[row]![0] === cursor) : -1;
    table.setAttribute("aria-rowcount", String(shown.length + 1));
    virtual?.count(shown.length);
  }

  function reorder(): void {
    order = rows.map((_, place) => place);
    if (!sorted) return;
    const { column, down } = sorted;
    const sign = down ? -1 : 1;
    if (column >= FIGURES) {
      const figures = rows.map((row) => Number(row[column]!.replace(/,/g, "")));
      // "–" is no number: never used comes after everything, whichever way.
      const key = figures.map((value) => (Number.isNaN(value) ? Infinity : value * sign));
      order.sort((a, b) => (key[a] === key[b] ? a - b : key[a]! - key[b]!));
    } else {
      const texts = rows.map((row) => row[column]!.toLowerCase());
      order.sort((a, b) => (texts[a] === texts[b] ? a - b : texts[a]! < texts[b]! ? -sign : sign));
    }
  }

  function sort(column: number): void {
    const first = column >= FIGURES; // figures begin with the largest
    if (sorted?.column !== column) sorted = { column, down: first };
    else sorted = sorted.down === first ? { column, down: !first } : null;
    reorder();
    narrowed();
    headings();
    element.scrollTop = 0;
  }

  function headings(): void {
    [...head.children].forEach((heading, column) =>
      heading.setAttribute(
        "aria-sort",
        sorted?.column === column ? (sorted.down ? "descending" : "ascending") : "none",
      ),
    );
  }

  function move(place: number): void {
    if (!shown.length) return;
    at = Math.max(0, Math.min(shown.length - 1, place));
    cursor = rows[shown[at]!]![0]!;
    virtual?.reveal(at);
    mark();
  }

  function pressed(event: KeyboardEvent): void {
    if (event.target !== table || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = virtual?.visible ?? 10;
    const wanted = {
      ArrowDown: at + 1,
      ArrowUp: Math.max(0, at - 1),
      PageDown: at + page,
      PageUp: Math.max(0, at - page),
      Home: 0,
      End: shown.length - 1,
    }[event.key];
    if (wanted !== undefined) move(wanted);
    else if (event.key === "Enter" || event.key === " ") open();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  function clicked(event: MouseEvent): void {
    const row = (event.target as Element).closest("tr");
    if (!row || getSelection()?.toString()) return;
    move(Number(row.id.slice(prefix.length + 1)));
    open();
  }

  function open(): void {
    if (at < 0) move(0);
    if (at >= 0) opened(cursor);
  }

  return {
    element,
    load(page, now) {
      rows = now;
      tones = page.tones;
      folded = rows.map((row) => fold(`${row[0]}\n${row[2]}`));
      if (head.children.length !== page.columns.length)
        fill(
          head,
          page.columns.map((name, column) =>
            h(
              "th",
              { role: "columnheader", scope: "col" },
              h("button.r-sort", { type: "button", onclick: () => sort(column) }, visible(name)),
            ),
          ),
        );
      headings();
      reorder();
      narrowed();
    },
    search(words, within) {
      sought = words.split(/\s+/).map(fold).filter(Boolean);
      category = within;
      element.scrollTop = 0;
      narrowed();
      if (at >= 0) virtual?.reveal(at);
    },
    renew(row) {
      const place = rows.findIndex((each) => each[0] === row[0]);
      if (place < 0) return;
      rows = rows.with(place, row);
      virtual?.refresh();
    },
    focus() {
      table.focus();
      if (at < 0) move(0);
    },
    open,
    get count() {
      return shown.length;
    },
    dispose() {
      resized.disconnect();
      virtual?.dispose();
    },
  };
}
