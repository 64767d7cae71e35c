// The catalog explorer: search, categories and the table; beside it the action that is open, its form and its result.
//
// Invariant: what a person typed (the search, a form) and what a call gave stay on the page through everything that
// the catalog and the kernel do meanwhile; until the catalog is there the snapshot stays.
import type { CatalogPage } from "../protocol";
import type { LiveBlob, LiveCatalog } from "../sources/messages";
import { RequestError, type Source, type ViewFunction } from "../sources/source";
import { actionDetail, type Detail } from "./action-detail";
import { actionTable } from "./action-table";
import { catalogPages, PAGE } from "./catalog-pages";
import { categoryChips } from "./categories";
import { say } from "./copy";
import { fill, framed, h } from "./h";
import { asker } from "./patience";
import { visible } from "./text";

const KEPT = 12; // opened actions whose form and result are kept

const figure = (count: number): string => count.toLocaleString("en-US");
const counted = (count: number): string => `${figure(count)} action${count === 1 ? "" : "s"}`;

/** @param inspect shows a stored result inline, where the host has no tabs */
export const explorer =
  (inspect?: ViewFunction<LiveBlob>): ViewFunction<LiveCatalog> =>
  (element, model, source, before) => {
    const view = new Explorer(element, model.query, source, inspect, before ?? null);
    return () => view.dispose();
  };

class Explorer {
  private details = new Map<string, Detail>();
  private loading = new AbortController();
  private loaded: CatalogPage | null = null;
  private opened = "";
  private telling = 0;
  private away = false;

  private table = actionTable((name) => this.open(name));
  private categories = categoryChips(() => this.narrow());
  private search = h("input", {
    type: "search",
    "aria-label": "Search actions",
    placeholder: "Search actions  /",
    autocomplete: "off",
    spellcheck: "false",
    oninput: () => this.narrow(),
    onkeydown: (event: KeyboardEvent) => this.searching(event),
  });
  private count = h("span.r-facts", {});
  private notes = h("div.r-notes");
  private pane = h("section.r-detail", { "aria-label": "Action", hidden: true });
  private panes = h("div.r-panes", {}, h("div.r-found", {}, this.table.element, this.notes), this.pane);
  private root = h(
    "div.reyn-view.r-explorer",
    // JupyterLab's single-key shortcuts would eat what is typed here.
    {
      role: "group",
      "aria-label": "Catalog",
      "data-lm-suppress-shortcuts": "true",
      onkeydown: (event: KeyboardEvent) => this.pressed(event),
    },
    h(
      "div.r-head",
      {},
      h("div.r-top", {}, this.search, this.count),
      this.categories.chips,
      this.categories.sentence,
    ),
    this.panes,
  );
  private asking;
  private ends: (() => void)[];
  private narrow = framed(() => this.seek());

  constructor(
    private element: HTMLElement,
    query: string,
    private source: Source,
    private inspect: ViewFunction<LiveBlob> | undefined,
    before: HTMLElement | null,
  ) {
    this.asking = asker(source, before ?? element);
    this.asking.box.classList.add("reyn-view", "r-alone");
    this.search.value = query;
    fill(element, this.asking.box, before);
    this.ends = [this.hear(), this.follow()];
    void this.load();
  }

  dispose(): void {
    for (const end of this.ends) end();
    this.loading.abort();
    this.asking.dispose();
    this.narrow.cancel();
    clearTimeout(this.telling);
    for (const detail of this.details.values()) detail.dispose();
    this.table.dispose();
    this.element.replaceChildren();
  }

  private hear(): () => void {
    return this.source.subscribe((event) => {
      if (event.name === "catalog" && event.revision !== this.loaded?.revision) void this.load();
      // A run elsewhere counts in the column of uses; that is worth one page, and not many.
      else if (event.name === "run" && event.ended && (this.loaded?.total ?? 0) <= PAGE) void this.load();
    });
  }

  private follow(): () => void {
    return this.source.watch((state) => {
      const back = this.away && state === "live";
      this.away = state !== "live" && (this.away || state !== "busy");
      if (back) void this.load();
    });
  }

  private pressed(event: KeyboardEvent): void {
    const typing = (event.target as Element).closest("input, textarea, select");
    if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.search.focus();
    this.search.select();
  }

  private searching(event: KeyboardEvent): void {
    if (event.key === "Escape" && this.search.value) this.search.value = "";
    else if (event.key !== "ArrowDown" && event.key !== "Enter") return;
    event.preventDefault();
    // What was typed in this frame counts already.
    this.seek();
    if (event.key === "ArrowDown") this.table.focus();
    if (event.key === "Enter") this.table.open();
  }

  private seek(): void {
    this.table.search(this.search.value, this.categories.chosen);
    this.counts();
  }

  private counts(): void {
    const all = this.loaded?.total ?? 0;
    const { table, count } = this;
    count.textContent = table.count < all ? `${figure(table.count)} of ${counted(all)}` : counted(all);
    // Read out once the typing pauses.
    clearTimeout(this.telling);
    if (this.search.value || this.categories.chosen)
      this.telling = window.setTimeout(() => say(this.root, count.textContent!), 600);
  }

  private open(name: string): void {
    const detail = this.details.get(name) ?? this.made(name);
    this.details.delete(name);
    this.details.set(name, detail);
    this.opened = name;
    this.pane.hidden = false;
    this.panes.classList.add("r-opened");
    this.pane.setAttribute("aria-label", visible(name));
    if (this.pane.firstChild !== detail.element) fill(this.pane, detail.element);
    detail.show();
  }

  /** An action that was not open yet, in the place of those that were looked at longest ago. */
  private made(name: string): Detail {
    for (const [other, old] of this.details)
      if (this.details.size >= KEPT && !old.running) {
        old.dispose();
        this.details.delete(other);
      }
    return actionDetail(name, this.source, {
      inspect: this.inspect,
      close: () => this.close(),
      renewed: (row) => this.table.renew(row),
    });
  }

  private close(): void {
    this.opened = "";
    this.pane.hidden = true;
    this.panes.classList.remove("r-opened");
    this.table.focus();
  }

  private async load(): Promise<void> {
    this.loading.abort();
    const { signal } = (this.loading = new AbortController());
    const again = this.loaded !== null;
    try {
      await catalogPages(
        (args) =>
          this.loaded
            ? this.source.request("catalog.page", args, { signal })
            : this.asking.ask("catalog.page", args, signal),
        // What is shown stays until all of what comes in its place is there.
        (page, rows, done) => (!again || done) && this.take(page, rows, done),
      );
    } catch (error) {
      if (signal.aborted || !this.loaded) return; // the first request's failure stands beside the snapshot
      const [message, hint] =
        error instanceof RequestError ? [error.message, error.hint] : [String(error), ""];
      this.note("bad", `The catalog cannot be read: ${message} ${hint}`.trim(), true);
    }
  }

  private take(page: CatalogPage, rows: CatalogPage["rows"], done: boolean): void {
    if (!this.loaded) fill(this.element, this.root);
    const fresh = this.loaded?.revision !== page.revision;
    this.loaded = page;
    this.table.load(page, [...rows]);
    if (fresh) this.categories.show(page.categories, page.total);
    this.seek();
    const said = counted(rows.length);
    if (!done) this.note("muted", `${said} of ${figure(page.total)} so far …`);
    else if (rows.length < page.total)
      this.note(
        "warn",
        `These are the first ${said} of ${figure(page.total)}; %reyn list --filter TEXT finds the others.`,
      );
    else if (this.opened && !this.table.has(this.opened))
      this.note("warn", `${this.opened} is no longer in the catalog.`);
    else fill(this.notes);
  }

  private note(tone: string, text: string, again = false): void {
    const retry = h("button.r-button", { type: "button", onclick: () => void this.load() }, "Try again");
    fill(this.notes, h(`div.r-msg.r-${tone}`, { role: "status" }, visible(text), again && [" ", retry]));
  }
}
