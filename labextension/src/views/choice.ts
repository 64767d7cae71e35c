// A list to choose one line from: arrow keys, a filter, very many lines.
//
// Invariant: one line is chosen as long as there are lines; it stays the same when the list grows or is filtered.
import { type Child, fill, h, unique } from "./h";
import { virtualRows } from "./rows";

export interface ChoiceList<R> {
  readonly element: HTMLElement;
  readonly chosen: R | undefined;
  show(rows: readonly R[]): void;
  choose(id: string): void;
  focus(): void;
  dispose(): void;
}

export interface ChoiceOptions<R> {
  label: string;
  /** px of one line, and of the whole list at most */
  height: number;
  most: number;
  draw(row: R): Child[];
  /** What the filter looks into. */
  text(row: R): string;
  /** A line was chosen; `person` tells that it was by hand. */
  onchoose(row: R, person: boolean): void;
}

const SEARCHED = 9; // lines from which on a filter helps

export function choiceList<R extends { id: string }>(options: ChoiceOptions<R>): ChoiceList<R> {
  const { label, height, most } = options;
  const prefix = unique("choice");
  const body = h("div", { role: "presentation" });
  const spacer = h("div", { role: "presentation" }, body);
  const list = h(
    "div.r-choice",
    { role: "listbox", tabindex: 0, "aria-label": label, onkeydown: pressed },
    spacer,
  );
  const find = h("input.r-find", {
    type: "search",
    placeholder: "Search  /",
    "aria-label": `Search ${label.toLowerCase()}`,
    oninput: () => sift(),
    onkeydown: (event: KeyboardEvent) => {
      if (event.key === "ArrowDown" || event.key === "Enter") list.focus();
      else return;
      event.preventDefault();
      event.stopPropagation();
    },
  });
  const count = h("span.r-quiet", { role: "status" });
  const tools = h("div.r-cmd.r-bar", {}, find, count);
  const element = h("div.r-choices", {}, tools, list);
  let rows: readonly R[] = [];
  let fitting: readonly R[] = [];
  let chosen: R | undefined;

  const place = (): number => fitting.findIndex((row) => row.id === chosen?.id);
  const id = (at: number): string => `${prefix}-${at}`;
  const view = virtualRows(list, spacer, body, height, (first, stop) => {
    const now = place();
    const drawn = fitting.slice(first, stop).map((row, offset) =>
      h(
        "div.r-option",
        {
          role: "option",
          id: id(first + offset),
          style: `height:${height}px`,
          "aria-selected": String(first + offset === now),
          "aria-posinset": first + offset + 1,
          "aria-setsize": fitting.length,
          onclick: () => take(first + offset, true),
        },
        ...options.draw(row),
      ),
    );
    fill(body, ...drawn);
    if (now >= first && now < stop) list.setAttribute("aria-activedescendant", id(now));
    else list.removeAttribute("aria-activedescendant");
  });

  function take(at: number, person: boolean): void {
    const row = fitting[at];
    if (!row) return;
    chosen = row;
    view.refresh();
    view.reveal(at);
    options.onchoose(row, person);
  }
  function sift(): void {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (row: R): boolean => words.every((word) => options.text(row).toLowerCase().includes(word));
    fitting = words.length ? rows.filter(fits) : rows;
    count.textContent = words.length ? `${fitting.length} of ${rows.length}` : "";
    list.style.height = `${Math.min(most, Math.max(1, fitting.length) * height)}px`;
    view.count(fitting.length);
  }
  function pressed(event: KeyboardEvent): void {
    const at = place();
    const page = Math.max(1, view.visible - 1);
    const steps: Record<string, number> = {
      ArrowDown: at + 1,
      ArrowUp: at < 0 ? 0 : at - 1,
      Home: 0,
      End: fitting.length - 1,
      PageDown: at + page,
      PageUp: at - page,
    };
    const to = steps[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (to !== undefined) take(Math.min(fitting.length - 1, Math.max(0, to)), true);
    else if (event.key === "/" && !tools.hidden) find.focus();
    else return;
    event.preventDefault();
    event.stopPropagation(); // the notebook has keys of its own
  }
  return {
    element,
    get chosen() {
      return chosen;
    },
    show(now) {
      rows = now;
      chosen = rows.find((row) => row.id === chosen?.id);
      tools.hidden = rows.length < SEARCHED && !find.value;
      sift();
    },
    choose: (wanted) =>
      take(
        fitting.findIndex((row) => row.id === wanted),
        false,
      ),
    focus: () => list.focus({ preventScroll: true }),
    dispose: () => view.dispose(),
  };
}

export const button = (text: string, onclick: () => void): HTMLButtonElement =>
  h("button.r-button", { type: "button", onclick }, text);
