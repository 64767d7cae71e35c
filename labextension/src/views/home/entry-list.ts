// A list of things to open: one line of a title and one of facts each, and arrow keys from one to the next.
//
// Invariant: an entry that shows what it showed stays the very element that it is, so that a list that comes anew takes
// no press and no focus away.
import { fill, focusedNear, h, visible } from "../dom/h";

export interface Entry {
  id: string;
  title: string;
  /** What stands below it, and as much as its tooltip says. */
  facts: Node[];
  tooltip: string;
  /** All that it shows, by which a change is seen. */
  state: string;
}

export interface EntryList<E extends Entry> {
  readonly element: HTMLElement;
  show(entries: readonly E[]): void;
}

export function entryList<E extends Entry>(label: string, open: (entry: E) => void): EntryList<E> {
  const element = h("ul.r-entries", { "aria-label": label, onkeydown: onKeydown });
  let items = new Map<string, HTMLElement>();

  const buttons = (): HTMLButtonElement[] => [...element.querySelectorAll("button")];
  const drawEntry = (entry: E): HTMLElement =>
    h(
      "li",
      {},
      h(
        "button.r-entry",
        { type: "button", "data-id": entry.id, title: entry.tooltip, onclick: () => open(entry) },
        h("span.r-entry-title", {}, visible(entry.title)),
        h("span.r-entry-facts", {}, entry.facts),
      ),
    );
  /** One entry of the list is reached by Tab, the others by arrow keys. */
  function setTabStop(at: number): void {
    buttons().forEach((each, place) => (each.tabIndex = place === at ? 0 : -1));
  }
  function onKeydown(event: KeyboardEvent): void {
    const all = buttons();
    const at = all.indexOf(event.target as HTMLButtonElement);
    const last = all.length - 1;
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: last }[event.key];
    if (at < 0 || to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    setTabStop(Math.max(0, Math.min(last, to)));
    all[Math.max(0, Math.min(last, to))]!.focus();
  }
  return {
    element,
    show(entries) {
      const focused = focusedNear(element);
      const id = element.contains(focused) ? focused?.getAttribute("data-id") : null;
      const before = items;
      items = new Map(entries.map((entry) => [entry.state, before.get(entry.state) ?? drawEntry(entry)]));
      for (const [state, item] of before) if (!items.has(state)) item.remove();
      let next = element.firstChild;
      for (const item of items.values())
        if (item === next) next = item.nextSibling;
        else element.insertBefore(item, next);
      if (!items.size) fill(element);
      const all = buttons();
      const at = id ? all.findIndex((each) => each.dataset.id === id) : -1;
      setTabStop(Math.max(0, at));
      if (at >= 0) all[at]!.focus({ preventScroll: true });
    },
  };
}
