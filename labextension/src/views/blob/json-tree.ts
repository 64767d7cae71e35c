// A JSON value as a tree whose children are fetched when they are looked at.
//
// Invariant: the page holds only the rows in sight, side by side and not inside each other, so neither a million
// children nor ten thousand levels cost more than a screen of them. More children than a page stand in ranges.
import type { TreeChild } from "../../protocol";
import type { Source, ViewFunction } from "../../sources/source";
import { copy, announce } from "../dom/copy";
import { button, fill, formatCount, h, unique, visible } from "../dom/h";
import { virtualRows } from "../dom/virtual-rows";
import { requestProgress, ignore } from "../request-progress";

export interface JsonTreeModel {
  blob: string;
  /** Keys and numbers from the root to what is shown first. */
  path?: readonly (string | number)[];
  /** The Python expression of the root, to which steps are appended. */
  value: string;
  /** Shows a byte of the document in the text pane. */
  text?: (byte: number) => void;
}

interface Item {
  parent: Item | null;
  level: number;
  /** Which children of `owner` it stands for: one, or a range of them. */
  from: number;
  to: number;
  size: number;
  place: number;
  child: TreeChild | null;
  items: Item[] | null;
  open: boolean;
  loading: boolean;
}

const ROW = 22;
const PAGE = 100;
const TALL = 20 * ROW + 2;
const DEEPEST = 24; // levels that are still indented

export const jsonTree: ViewFunction<JsonTreeModel> = (element, model, source: Source) => {
  const { blob } = model;
  const name = unique("tree");
  const body = h("div", { role: "presentation" });
  const spacer = h("div", { role: "presentation" }, body);
  const box = h("div.r-nodes", { role: "tree", tabindex: 0, "aria-label": "JSON" }, spacer);
  const progress = requestProgress(source, box);
  const find = h("input.r-find", {
    type: "search",
    placeholder: "Search keys and values  /",
    "aria-label": "Search keys and values",
  });
  const status = h("span.r-quiet", { role: "status" });
  const pathLine = h("code.r-where");
  const actions = h("span.r-bar");
  let rows: Item[] = [];
  let active = 0;
  let next = 0;

  const isFoldable = (item: Item): boolean => item.to - item.from > 1 || Boolean(item.child?.count);
  const owner = (item: Item): Item => (item.child ? item : owner(item.parent!));

  const draw = (first: number, stop: number): void =>
    fill(body, ...rows.slice(first, stop).map((item, place) => row(item, first + place)));
  const virtual = virtualRows(box, spacer, body, ROW, draw);

  function row(item: Item, number: number): HTMLElement {
    const { child, level } = item;
    return h(
      "div.r-node",
      {
        id: `${name}-${number}`,
        role: "treeitem",
        "aria-level": level,
        "aria-setsize": item.size,
        "aria-posinset": item.place + 1,
        "aria-expanded": isFoldable(item) && String(item.open),
        "aria-selected": String(number === active),
        style: `padding-left:${Math.min(level, DEEPEST) * 14 - 8}px`,
        onclick: () => {
          select(number);
          if (!getSelection()?.toString()) toggle(item);
        },
      },
      level > DEEPEST && h("span.r-quiet", {}, `${level} `),
      h("span.r-twist", { "aria-hidden": "true" }, !isFoldable(item) ? "" : item.open ? "⌄" : "›"),
      child
        ? [
            child.key !== null && level > 1 && [h("span.r-key", {}, visible(child.key)), ": "],
            h(`span.r-${child.kind}`, {}, visible(child.text)),
          ]
        : h("span.r-quiet", {}, `${formatCount(item.from)} … ${formatCount(item.to - 1)}`),
      item.loading && h("span.r-quiet", {}, " loading …"),
    );
  }

  function refresh(): void {
    box.style.height = `${Math.min(TALL, rows.length * ROW + 2)}px`;
    virtual.count(rows.length);
  }

  function select(number: number): void {
    active = Math.max(0, Math.min(number, rows.length - 1));
    box.setAttribute("aria-activedescendant", `${name}-${active}`);
    virtual.reveal(active);
    virtual.refresh();
    const { child } = rows[active]!;
    const path = child && steps(rows[active]!);
    fill(pathLine, path === null ? "" : path || "the whole value");
    fill(
      actions,
      path !== null && button("Copy path", () => copyText(model.value + path)),
      child && button("Copy value", () => void value(child).then(copyText).catch(ignore)),
      child && model.text && button("In text", () => model.text!(child.place.start)),
    );
  }
  const copyText = (text: string): void =>
    void copy(text).then(
      () => announce(box, "Copied"),
      () => announce(box, "Not copied"),
    );
  const value = async (child: TreeChild): Promise<string> =>
    (await progress.request("tree.value", { blob, place: child.place })).text;

  /** What Python appends to reach a value; null where a key on the way cannot be written. */
  function steps(item: Item): string | null {
    const parts: string[] = [];
    for (let each: Item | null = item; each?.parent; each = each.parent) {
      if (!each.child) continue;
      if (!each.child.step) return null;
      parts.unshift(each.child.step);
    }
    return visible(parts.join(""));
  }

  /** The places of the children of an item: itself where they are few, a page and ranges where they are many. */
  async function load(item: Item): Promise<void> {
    if (item.items) return;
    const holder = owner(item);
    const [from, to] = item.child ? [0, item.child.count!] : [item.from, item.to];
    const fetched = to - from <= 2 * PAGE ? to : item.child ? from + PAGE : from;
    const made: [number, number, TreeChild | null][] = [];
    if (fetched > from) {
      const page = await progress.request("tree.children", {
        blob,
        path: [],
        place: holder.child!.place,
        offset: from,
        limit: fetched - from,
      });
      for (const child of page.children) made.push([child.position, child.position + 1, child]);
    }
    let step = PAGE;
    while ((to - fetched) / step > PAGE) step *= PAGE;
    for (let start = fetched; start < to;) {
      const stop = Math.min(to, start - (start % step) + step);
      made.push([start, stop, null]);
      start = stop;
    }
    item.items = made.map(([from, to, child], place) => ({
      parent: item,
      level: item.level + 1,
      from,
      to,
      size: made.length,
      place,
      child,
      items: null,
      open: false,
      loading: false,
    }));
  }

  async function expand(item: Item): Promise<void> {
    if (item.open || item.loading || !isFoldable(item)) return;
    item.loading = true;
    virtual.refresh();
    try {
      await load(item);
    } finally {
      item.loading = false;
      virtual.refresh();
    }
    item.open = true;
    const at = rows.indexOf(item);
    if (at < 0) return;
    const shown: Item[] = [];
    const waiting = [...item.items!].reverse();
    for (let each = waiting.pop(); each; each = waiting.pop()) {
      shown.push(each);
      if (each.open) waiting.push(...[...each.items!].reverse());
    }
    rows = rows.slice(0, at + 1).concat(shown, rows.slice(at + 1));
    if (active > at) active += shown.length;
    refresh();
  }

  function collapse(item: Item): void {
    const at = rows.indexOf(item);
    let end = at + 1;
    while (end < rows.length && rows[end]!.level > item.level) end += 1;
    rows.splice(at + 1, end - at - 1);
    item.open = false;
    if (active >= end) active -= end - at - 1;
    else if (active > at) active = at;
    refresh();
  }
  const toggle = (item: Item): void => (item.open ? collapse(item) : void expand(item).catch(ignore));

  /** Opens the way to a value and selects it. */
  async function reveal(way: readonly number[]): Promise<void> {
    let item = rows[0]!;
    for (const position of way) {
      do {
        await expand(item);
        const within: Item | undefined = item.items?.find(
          (each) => each.from <= position && position < each.to,
        );
        if (!within) return select(rows.indexOf(item));
        item = within;
      } while (!item.child);
    }
    virtual.reveal(Math.min(rows.length - 1, rows.indexOf(item) + Math.floor(virtual.visible / 2)));
    select(rows.indexOf(item));
  }

  async function search(): Promise<void> {
    const text = find.value;
    if (!text) return;
    const found = await progress.request("tree.find", { blob, text, after: next });
    if (!found.found) {
      fill(status, next ? "No more; Enter starts again" : "Not found");
      next = 0;
      return;
    }
    next = found.next;
    fill(status, "Enter finds the next");
    await reveal(found.way);
  }

  const keys: Record<string, () => void> = {
    ArrowDown: () => select(active + 1),
    ArrowUp: () => select(active - 1),
    Home: () => select(0),
    End: () => select(rows.length - 1),
    PageDown: () => select(active + virtual.visible - 1),
    PageUp: () => select(active - virtual.visible + 1),
    Enter: () => toggle(rows[active]!),
    " ": () => toggle(rows[active]!),
    ArrowRight: () => (rows[active]!.open ? select(active + 1) : toggle(rows[active]!)),
    ArrowLeft: () => {
      const item = rows[active]!;
      if (item.open) collapse(item);
      else if (item.parent) select(rows.indexOf(item.parent));
    },
    "*": () => void Promise.all((rows[active]!.parent?.items ?? []).map(expand)).catch(ignore),
    "/": () => find.focus(),
  };
  box.addEventListener("keydown", (event) => {
    const act = keys[event.key];
    if (!act || !rows.length || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  });
  find.addEventListener("input", () => {
    next = 0;
    fill(status);
  });
  find.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "Enter") void search().catch(ignore);
    else if (event.key === "Escape") box.focus();
  });

  async function start(): Promise<void> {
    const page = await progress.request("tree.children", {
      blob,
      path: [],
      place: null,
      offset: 0,
      limit: 1,
    });
    const root = { parent: null, level: 1, from: 0, to: 1, size: 1, place: 0, items: null, open: false };
    rows = [{ ...root, child: page.value, loading: false }];
    refresh();
    await expand(rows[0]!);
    select(0);
    if (!model.path?.length) return;
    const way = await progress.request("tree.way", { blob, path: [...model.path] });
    fill(status, visible(way.note));
    await reveal(way.way);
    await expand(rows[active]!);
  }

  element.append(h("div.r-bar", {}, find, status), progress.box, box, h("div.r-bar", {}, pathLine, actions));
  void start().catch(ignore);
  return () => {
    progress.dispose();
    virtual.dispose();
    element.replaceChildren();
  };
};
