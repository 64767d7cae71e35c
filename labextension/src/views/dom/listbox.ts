// A list to choose one line from: arrow keys, a filter, very many lines.
//
// Invariant: one line is chosen as long as there are lines; it stays the same when the list grows or is filtered.
import { type Child, fill, h, unique } from "./h";
import { virtualRows } from "./virtual-rows";

export interface Listbox<R> {
  readonly element: HTMLElement;
  readonly selected: R | undefined;
  show(rows: readonly R[]): void;
  select(id: string): void;
  focus(): void;
  dispose(): void;
}

export interface ListboxOptions<R> {
  label: string;
  /** px of one line, and of the whole list at most */
  height: number;
  most: number;
  draw(row: R): Child[];
  /** What the filter looks into. */
  text(row: R): string;
  /** A line was chosen; `person` tells that it was by hand. */
  onselect(row: R, person: boolean): void;
}

const FILTER_FROM = 9; // lines from which on a filter helps

export function listbox<R extends { id: string }>(options: ListboxOptions<R>): Listbox<R> {
  const { label, height, most } = options;
  const prefix = unique("option");
  const body = h("div", { role: "presentation" });
  const spacer = h("div", { role: "presentation" }, body);
  const list = h(
    "div.r-listbox",
    { role: "listbox", tabindex: 0, "aria-label": label, onkeydown: onKeydown },
    spacer,
  );
  const find = h("input.r-find", {
    type: "search",
    placeholder: "Search  /",
    "aria-label": `Search ${label.toLowerCase()}`,
    oninput: () => filter(),
    onkeydown: (event: KeyboardEvent) => {
      if (event.key === "ArrowDown" || event.key === "Enter") list.focus();
      else return;
      event.preventDefault();
      event.stopPropagation();
    },
  });
  const count = h("span.r-quiet", { role: "status" });
  const tools = h("div.r-cmd.r-bar", {}, find, count);
  const element = h("div.r-filtered", {}, tools, list);
  let rows: readonly R[] = [];
  let matches: readonly R[] = [];
  let selected: R | undefined;

  const selectedPlace = (): number => matches.findIndex((row) => row.id === selected?.id);
  const id = (at: number): string => `${prefix}-${at}`;
  const view = virtualRows(list, spacer, body, height, (first, stop) => {
    const now = selectedPlace();
    const drawn = matches.slice(first, stop).map((row, offset) =>
      h(
        "div.r-option",
        {
          role: "option",
          id: id(first + offset),
          style: `height:${height}px`,
          "aria-selected": String(first + offset === now),
          "aria-posinset": first + offset + 1,
          "aria-setsize": matches.length,
          onclick: () => selectAt(first + offset, true),
        },
        ...options.draw(row),
      ),
    );
    fill(body, ...drawn);
    if (now >= first && now < stop) list.setAttribute("aria-activedescendant", id(now));
    else list.removeAttribute("aria-activedescendant");
  });

  function selectAt(at: number, person: boolean): void {
    const row = matches[at];
    if (!row) return;
    selected = row;
    view.refresh();
    view.reveal(at);
    options.onselect(row, person);
  }
  function filter(): void {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (row: R): boolean => words.every((word) => options.text(row).toLowerCase().includes(word));
    matches = words.length ? rows.filter(fits) : rows;
    count.textContent = words.length ? `${matches.length} of ${rows.length}` : "";
    list.style.height = `${Math.min(most, Math.max(1, matches.length) * height)}px`;
    view.count(matches.length);
  }
  function onKeydown(event: KeyboardEvent): void {
    const at = selectedPlace();
    const page = Math.max(1, view.visible - 1);
    const steps: Record<string, number> = {
      ArrowDown: at + 1,
      ArrowUp: at < 0 ? 0 : at - 1,
      Home: 0,
      End: matches.length - 1,
      PageDown: at + page,
      PageUp: at - page,
    };
    const to = steps[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (to !== undefined) selectAt(Math.min(matches.length - 1, Math.max(0, to)), true);
    else if (event.key === "/" && !tools.hidden) find.focus();
    else return;
    event.preventDefault();
    event.stopPropagation(); // the notebook has keys of its own
  }
  return {
    element,
    get selected() {
      return selected;
    },
    show(now) {
      rows = now;
      selected = rows.find((row) => row.id === selected?.id);
      tools.hidden = rows.length < FILTER_FROM && !find.value;
      filter();
    },
    select: (wanted) =>
      selectAt(
        matches.findIndex((row) => row.id === wanted),
        false,
      ),
    focus: () => list.focus({ preventScroll: true }),
    dispose: () => view.dispose(),
  };
}
