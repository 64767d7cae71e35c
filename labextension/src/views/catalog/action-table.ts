// The table of actions: tens of thousands of rows, of which only those in sight are in the page.
//
// Invariant: `shown` holds the rows that fit the search, in the order that the table is sorted by; the cursor stays on
// its action through search, sorting and new rows, as long as that action is shown. A row that shows what it showed
// stays the very element that it is, so that new rows take no click away.
import type { CatalogPage } from "../../protocol";
import { textOf, valueOf } from "../blocks/cells";
import { fill, h, unique, visible } from "../dom/h";
import { type VirtualRows, virtualRows } from "../dom/virtual-rows";

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
  search(query: string, category: string): void;
  /** Puts a row in the place of the one of the same name. */
  updateRow(row: ActionRow): void;
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

export function actionTable(openAction: (name: string) => void): ActionTable {
  let rows: readonly ActionRow[] = [];
  let columns: CatalogPage["columns"] = [];
  let places = new Map<string, number>(); // of the columns, by their keys
  let searchTexts: string[] = [];
  let order: number[] = [];
  let shownRows: number[] = [];
  let tones: CatalogPage["tones"] = {};
  let sorting: { column: number; down: boolean } | null = null;
  let query = "";
  let words: string[] = [];
  let category = "";
  let cursor = "";
  let cursorPlace = -1; // the cursor's place in `shown`
  let isNarrow = false;
  let rowElements = new Map<string, HTMLElement>(); // the rows in the page, by what they show
  let virtual: VirtualRows | null = null;

  const text = (row: ActionRow, key: string): string => textOf(row[places.get(key) ?? -1]);
  const nameAt = (row: number): string => text(rows[row]!, "name");
  const prefix = unique("action");
  const body = h("tbody", { role: "rowgroup", onclick: onClick });
  const head = h("tr", { role: "row", "aria-rowindex": 1 });
  const table = h(
    "table.r-actions",
    { role: "grid", tabindex: 0, "aria-label": "Actions", onkeydown: onKeydown },
    h("thead", { role: "rowgroup" }, head),
    body,
  );
  const element = h("div.r-scroll.r-pick", {}, table);
  const resizeObserver = new ResizeObserver(() => {
    if (element.clientWidth && (!virtual || isNarrow !== element.clientWidth < WIDE)) lay();
  });
  resizeObserver.observe(element);

  function lay(): void {
    virtual?.dispose();
    isNarrow = element.clientWidth < WIDE;
    element.classList.toggle("r-narrow", isNarrow);
    virtual = virtualRows(element, table, body, isNarrow ? LINES : LINE, draw, LINE);
    virtual.count(shownRows.length);
    if (cursorPlace >= 0) virtual.reveal(cursorPlace);
  }

  function draw(first: number, stop: number): void {
    const before = rowElements;
    rowElements = new Map();
    shownRows.slice(first, stop).forEach((row, offset) => {
      const state = JSON.stringify(rows[row]); // its name is in it, which no other has
      const element = before.get(state) ?? drawRow(rows[row]!);
      element.id = `${prefix}-${first + offset}`;
      element.setAttribute("aria-rowindex", String(first + offset + 2));
      rowElements.set(state, element);
    });
    for (const [state, row] of before) if (!rowElements.has(state)) row.remove();
    // Only what is not there yet is put in: a row that is moved loses the press that was begun on it.
    let next = body.firstChild;
    for (const row of rowElements.values())
      if (row === next) next = row.nextSibling;
      else body.insertBefore(row, next);
    mark();
  }

  function drawRow(row: ActionRow): HTMLElement {
    return h(
      "tr",
      { role: "row" },
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
    for (const row of body.children)
      row.setAttribute("aria-selected", String(row.id === `${prefix}-${cursorPlace}`));
    const there = cursorPlace >= 0 && body.querySelector(`#${prefix}-${cursorPlace}`);
    if (there) table.setAttribute("aria-activedescendant", there.id);
    else table.removeAttribute("aria-activedescendant");
  }

  function applySearch(): void {
    shownRows = order.filter(
      (row) =>
        (!category || text(rows[row]!, "category") === category) &&
        words.every((word) => searchTexts[row]!.includes(word)),
    );
    if (words.length && !sorting) {
      // What a name says comes before what only a description mentions.
      const named = (row: number): boolean =>
        words.every((word) => searchTexts[row]!.split("\n")[0]!.includes(word));
      const first = new Set(shownRows.filter(named));
      shownRows = [...first, ...shownRows.filter((row) => !first.has(row))];
    }
    cursorPlace = cursor ? shownRows.findIndex((row) => nameAt(row) === cursor) : -1;
    table.setAttribute("aria-rowcount", String(shownRows.length + 1));
    virtual?.count(shownRows.length);
  }

  function applySorting(): void {
    order = rows.map((_, place) => place);
    if (!sorting) return;
    const { column, down } = sorting;
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
    if (sorting?.column !== column) sorting = { column, down: first };
    else sorting = sorting.down === first ? { column, down: !first } : null;
    applySorting();
    applySearch();
    headings();
    element.scrollTop = 0;
  }

  function headings(): void {
    [...head.children].forEach((heading, column) =>
      heading.setAttribute(
        "aria-sort",
        sorting?.column === column ? (sorting.down ? "descending" : "ascending") : "none",
      ),
    );
  }

  function move(place: number): void {
    if (!shownRows.length) return;
    cursorPlace = Math.max(0, Math.min(shownRows.length - 1, place));
    cursor = nameAt(shownRows[cursorPlace]!);
    virtual?.reveal(cursorPlace);
    mark();
  }

  function onKeydown(event: KeyboardEvent): void {
    if (event.target !== table || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = virtual?.visible ?? 10;
    const wanted = {
      ArrowDown: cursorPlace + 1,
      ArrowUp: Math.max(0, cursorPlace - 1),
      PageDown: cursorPlace + page,
      PageUp: Math.max(0, cursorPlace - page),
      Home: 0,
      End: shownRows.length - 1,
    }[event.key];
    if (wanted !== undefined) move(wanted);
    else if (event.key === "Enter" || event.key === " ") open();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  function onClick(event: MouseEvent): void {
    const row = (event.target as Element).closest("tr");
    if (!row || getSelection()?.toString()) return;
    move(Number(row.id.slice(prefix.length + 1)));
    open();
  }

  function open(): void {
    if (cursorPlace < 0) move(0);
    if (cursorPlace >= 0) openAction(cursor);
  }

  return {
    element,
    load(page, now) {
      rows = now;
      tones = page.tones;
      columns = page.columns;
      places = new Map(columns.map(({ key }, place) => [key, place]));
      searchTexts = rows.map((row) => fold(`${text(row, "name")}\n${text(row, "description")}`));
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
      applySorting();
      applySearch();
    },
    search(wanted, within) {
      if (wanted === query && within === category) return;
      query = wanted;
      words = wanted.split(/\s+/).map(fold).filter(Boolean);
      category = within;
      element.scrollTop = 0;
      applySearch();
      if (cursorPlace >= 0) virtual?.reveal(cursorPlace);
    },
    updateRow(row) {
      const place = rows.findIndex((each) => text(each, "name") === text(row, "name"));
      if (place < 0) return;
      rows = rows.with(place, row);
      virtual?.refresh();
    },
    focus() {
      table.focus();
      if (cursorPlace < 0) move(0);
    },
    open,
    has: (name) => rows.some((row) => text(row, "name") === name),
    get count() {
      return shownRows.length;
    },
    dispose() {
      resizeObserver.disconnect();
      virtual?.dispose();
    },
  };
}
