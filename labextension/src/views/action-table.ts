// The table of actions: tens of thousands of rows, of which only those in sight are in the page.
//
// Invariant: `shown` holds the rows that fit the search, in the order that the table is sorted by; the cursor stays on
// its action through search, sorting and new rows, as long as that action is shown. A row that shows what it showed
// stays the very element that it is, so that new rows take no click away.
import type { CatalogPage } from "../protocol";
import { textOf, valueOf } from "./cells";
import { fill, h, unique } from "./h";
import { visible } from "./text";
import { type VirtualRows, virtualRows } from "./rows";

const WIDE = 660; // px from which a row is one line with all columns
const LINE = 30;
const LINES = 50; // px of a row on two lines
const LONG = new Set(["category", "description", "arguments"]); // columns whose texts may be cut short

export type ActionRow = CatalogPage["rows"][number];

export interface ActionTable {
  element: HTMLElement;
  /** What is shown from now on: these rows, in the catalog's order. */
  load(page: Pick<CatalogPage, "columns" | "tones">, rows: readonly ActionRow[]): void;
  /** Narrows to the rows of a category ("" for all) that have every word. */
  search(words: string, category: string): void;
  /** Puts a row in the place of the one of the same name. */
  renew(row: ActionRow): void;
  /** Puts the cursor on the first row, if there is none, and takes the focus. */
  focus(): void;
  /** Opens the row under the cursor, or the first one. */
  open(): void;
  readonly count: number;
  /** Whether there is an action of this name, shown or not. */
  has(name: string): boolean;
  dispose(): void;
}

/** How texts are compared: without case, and `-`, `_` and space alike. */
export const fold = (text: string): string => text.toLowerCase().replace(/[-_ ]+/g, " ");

export function actionTable(opened: (name: string) => void): ActionTable {
  let rows: readonly ActionRow[] = [];
  let columns: CatalogPage["columns"] = [];
  let places = new Map<string, number>(); // of the columns, by their keys
  let folded: string[] = [];
  let order: number[] = [];
  let shown: number[] = [];
  let tones: CatalogPage["tones"] = {};
  let sorted: { column: number; down: boolean } | null = null;
  let said = "";
  let sought: string[] = [];
  let category = "";
  let cursor = "";
  let at = -1; // the cursor's place in `shown`
  let narrow = false;
  let drawn = new Map<string, HTMLElement>(); // the rows in the page, by what they show
  let virtual: VirtualRows | null = null;

  const text = (row: ActionRow, key: string): string => textOf(row[places.get(key) ?? -1]);
  const nameAt = (row: number): string => text(rows[row]!, "name");
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
    const before = drawn;
    drawn = new Map();
    shown.slice(first, stop).forEach((row, offset) => {
      const state = JSON.stringify([first + offset, rows[row]]);
      drawn.set(state, before.get(state) ?? drawRow(rows[row]!, first + offset));
    });
    for (const [state, row] of before) if (!drawn.has(state)) row.remove();
    // Only what is not there yet is put in: a row that is moved loses the press that was begun on it.
    let next = body.firstChild;
    for (const row of drawn.values())
      if (row === next) next = row.nextSibling;
      else body.insertBefore(row, next);
    mark();
  }

  function drawRow(row: ActionRow, place: number): HTMLElement {
    return h(
      "tr",
      {
        role: "row",
        id: `${prefix}-${place}`,
        "aria-rowindex": place + 2,
        "aria-selected": String(place === at),
      },
      columns.map(({ key }, column) => {
        const text = textOf(row[column]);
        const seen = visible(text);
        if (key === "name")
          return h("th", { role: "rowheader", scope: "row", title: seen }, h("code", {}, seen));
        return h(
          "td",
          { role: "gridcell", title: LONG.has(key) ? seen : null },
          key === "effect" ? h(`span.r-badge.r-${tones[text] ?? "muted"}`, {}, seen) : seen,
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
        (!category || text(rows[row]!, "category") === category) &&
        sought.every((word) => folded[row]!.includes(word)),
    );
    if (sought.length && !sorted) {
      // What a name says comes before what only a description mentions.
      const named = (row: number): boolean =>
        sought.every((word) => folded[row]!.split("\n")[0]!.includes(word));
      const first = new Set(shown.filter(named));
      shown = [...first, ...shown.filter((row) => !first.has(row))];
    }
    at = cursor ? shown.findIndex((row) => nameAt(row) === cursor) : -1;
    table.setAttribute("aria-rowcount", String(shown.length + 1));
    virtual?.count(shown.length);
  }

  function reorder(): void {
    order = rows.map((_, place) => place);
    if (!sorted) return;
    const { column, down } = sorted;
    const sign = down ? -1 : 1;
    if (columns[column]!.numeric) {
      // What has no value, such as an action that was never used, comes after everything, whichever way.
      const values = rows.map((row) => valueOf(row[column]));
      const key = values.map((value) => (value === null ? Infinity : value * sign));
      order.sort((a, b) => (key[a] === key[b] ? a - b : key[a]! - key[b]!));
    } else {
      const texts = rows.map((row) => textOf(row[column]).toLowerCase());
      order.sort((a, b) => (texts[a] === texts[b] ? a - b : texts[a]! < texts[b]! ? -sign : sign));
    }
  }

  function sort(column: number): void {
    const first = columns[column]!.numeric; // figures begin with the largest
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
    cursor = nameAt(shown[at]!);
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
      columns = page.columns;
      places = new Map(columns.map(({ key }, place) => [key, place]));
      folded = rows.map((row) => fold(`${text(row, "name")}\n${text(row, "description")}`));
      if (head.children.length !== columns.length)
        fill(
          head,
          columns.map(({ title }, column) =>
            h(
              "th",
              { role: "columnheader", scope: "col" },
              h("button.r-sort", { type: "button", onclick: () => sort(column) }, visible(title)),
            ),
          ),
        );
      headings();
      reorder();
      narrowed();
    },
    search(words, within) {
      if (words === said && within === category) return;
      said = words;
      sought = words.split(/\s+/).map(fold).filter(Boolean);
      category = within;
      element.scrollTop = 0;
      narrowed();
      if (at >= 0) virtual?.reveal(at);
    },
    renew(row) {
      const place = rows.findIndex((each) => text(each, "name") === text(row, "name"));
      if (place < 0) return;
      rows = rows.with(place, row);
      virtual?.refresh();
    },
    focus() {
      table.focus();
      if (at < 0) move(0);
    },
    open,
    has: (name) => rows.some((row) => text(row, "name") === name),
    get count() {
      return shown.length;
    },
    dispose() {
      resized.disconnect();
      virtual?.dispose();
    },
  };
}
