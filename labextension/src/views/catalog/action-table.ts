// The table of actions: tens of thousands of rows, of which only those in sight are in the page.
//
// Invariant: `shown` holds the rows that fit the search: by the ranking of a search, else by what the table is sorted
// by, else by category with the harmless ones first, each under a line that names it. The cursor stays on its action
// through search, sorting and new rows, as long as that action is shown. A row that shows what it showed stays the very
// element that it is, so that new rows take no click away.
import type { CatalogPage } from "../../protocol";
import { textOf, valueOf } from "../blocks/cells";
import { fill, formatCount, h, unique, visible } from "../dom/h";
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
  /**
   * Narrows to the rows of a category ("" for all).
   *
   * @param ranked the names of what fits the query, best first; null for the rows that have every word of it
   */
  search(query: string, category: string, ranked: readonly string[] | null): void;
  /** Puts a row in the place of the one of the same name. */
  updateRow(row: ActionRow): void;
  /** Puts the cursor on the first row, if there is none, and takes the focus. */
  focus(): void;
  /** Opens the row under the cursor, or the first one. */
  open(): void;
  readonly count: number;
  /** Whether any row of the category has every word of a query. */
  matches(query: string, category: string): boolean;
  /** Whether there is an action of this name, shown or not. */
  has(name: string): boolean;
  dispose(): void;
}

/** How texts are compared: without case, and `-`, `_` and space alike. */
export const fold = (text: string): string => text.toLowerCase().replace(/[-_ ]+/g, " ");

/** A row of the table: the place of an action in `rows`, or the line above the actions of a category. */
type Shown = number | { category: string; count: number };

const wordsOf = (query: string): string[] => query.split(/\s+/).map(fold).filter(Boolean);

export function actionTable(openAction: (name: string) => void): ActionTable {
  let rows: readonly ActionRow[] = [];
  let columns: CatalogPage["columns"] = [];
  let places = new Map<string, number>(); // of the columns, by their keys
  let searchTexts: string[] = [];
  let order: number[] = [];
  let shownRows: Shown[] = [];
  let shownCount = 0; // of actions
  let tones: CatalogPage["tones"] = {};
  let sorting: { column: number; down: boolean } | null = null;
  let query = "";
  let ranked: readonly string[] | null = null;
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
      const state = JSON.stringify(typeof row === "number" ? rows[row] : row); // its name is in it, which no other has
      const element = before.get(state) ?? (typeof row === "number" ? drawRow(rows[row]!) : drawGroup(row));
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

  function drawGroup({ category, count }: Exclude<Shown, number>): HTMLElement {
    const words = `${formatCount(count)} action${count === 1 ? "" : "s"}`;
    const name = h("strong", {}, visible(category));
    const cell = h("td", { role: "gridcell" }, name, h("span.r-quiet", {}, ` ${words}`));
    return h("tr.r-group", { role: "row" }, cell);
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

  const fits = (row: number, within: string): boolean => !within || text(rows[row]!, "category") === within;
  const hasWords = (row: number, words: readonly string[]): boolean =>
    words.every((word) => searchTexts[row]!.includes(word));

  function applySearch(): void {
    const words = wordsOf(query);
    let found = order.filter((row) => fits(row, category) && (ranked !== null || hasWords(row, words)));
    if (ranked) {
      const places = new Map(ranked.map((name, place) => [name, place]));
      found = found.filter((row) => places.has(nameAt(row)));
      if (!sorting) found.sort((a, b) => places.get(nameAt(a))! - places.get(nameAt(b))!);
    } else if (words.length && !sorting) {
      // What a name says comes before what only a description mentions.
      const named = (row: number): boolean =>
        words.every((word) => searchTexts[row]!.split("\n")[0]!.includes(word));
      const first = new Set(found.filter(named));
      found = [...first, ...found.filter((row) => !first.has(row))];
    }
    shownCount = found.length;
    shownRows = query.trim() || sorting ? found : group(found).slice(category ? 1 : 0);
    cursorPlace = cursor ? placeOf(cursor) : -1;
    table.setAttribute("aria-rowcount", String(shownRows.length + 1));
    virtual?.count(shownRows.length);
  }

  /** The rows by category, with a line above each; a category stands where its most harmful action does. */
  function group(found: readonly number[]): Shown[] {
    const harms = Object.keys(tones); // of all effects, the harmless ones first
    const harm = (row: number): number => {
      const at = harms.indexOf(text(rows[row]!, "effect"));
      return at < 0 ? harms.length : at;
    };
    const groups = new Map<string, number[]>();
    for (const row of found) {
      const name = text(rows[row]!, "category");
      const others = groups.get(name);
      if (others) others.push(row);
      else groups.set(name, [row]);
    }
    const most = (a: number, b: number): number => Math.max(a, b);
    const worst = new Map([...groups].map(([name, all]) => [name, all.map(harm).reduce(most)]));
    return [...groups]
      .sort(([a], [b]) => worst.get(a)! - worst.get(b)!)
      .flatMap(([category, all]) => [
        { category, count: all.length },
        ...all.sort((a, b) => harm(a) - harm(b) || a - b),
      ]);
  }

  const isAction = (place: number): boolean => typeof shownRows[place] === "number";
  const placeOf = (name: string): number =>
    shownRows.findIndex((row) => typeof row === "number" && nameAt(row) === name);

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

  /** Puts the cursor on the action there, or on the next one in the direction that it came from. */
  function move(place: number): void {
    if (!shownCount) return;
    const down = place >= cursorPlace;
    let to = Math.max(0, Math.min(shownRows.length - 1, place));
    while (to > 0 && !down && !isAction(to)) to -= 1;
    while (!isAction(to)) to += 1; // below a line that names a category there is an action
    cursorPlace = to;
    cursor = nameAt(shownRows[to] as number);
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
    const place = row ? Number(row.id.slice(prefix.length + 1)) : -1;
    if (!isAction(place) || getSelection()?.toString()) return;
    move(place);
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
    search(wanted, within, best) {
      if (wanted === query && within === category && best === ranked) return;
      if (wanted !== query || within !== category) element.scrollTop = 0;
      query = wanted;
      ranked = best;
      category = within;
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
    matches(query, within) {
      const words = wordsOf(query);
      return rows.some((_, row) => fits(row, within) && hasWords(row, words));
    },
    get count() {
      return shownCount;
    },
    dispose() {
      resizeObserver.disconnect();
      virtual?.dispose();
    },
  };
}
