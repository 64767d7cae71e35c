// The catalog explorer: search, categories and the table; beside it the action that is open, its form and its result.
//
// Invariant: what a person typed (the search, a form) and what a call gave stay on the page through everything that
// the catalog and the kernel do meanwhile; until the catalog is there the snapshot stays.
import type { CatalogPage, LiveBlob, LiveCatalog, Operations } from "../../protocol";
import { RequestError, type Source, type ViewFunction } from "../../sources/source";
import { announce } from "../dom/copy";
import { fill, focusedNear, formatCount, framed, h, visible } from "../dom/h";
import { requestProgress } from "../request-progress";
import { actionDetail, type ActionDetail } from "./action-detail";
import { actionTable } from "./action-table";
import { categoryChips } from "./categories";
import { kernelRanking } from "./ranking";

const PAGE = 2_000;
const MOST_ACTIONS = 50_000;
const MOST_DETAILS = 12; // opened actions whose form and result are kept

const countActions = (count: number): string => `${formatCount(count)} action${count === 1 ? "" : "s"}`;

/** @param inspect shows a blob inline, where the host has no tabs */
export const explorer =
  (inspect?: ViewFunction<LiveBlob>): ViewFunction<LiveCatalog> =>
  (element, model, source, before) => {
    const view = new Explorer(element, model.query, source, inspect, before ?? null);
    return () => view.dispose();
  };

class Explorer {
  private details = new Map<string, ActionDetail>();
  private loading = new AbortController();
  private page: CatalogPage | null = null;
  private openName = "";
  private announceTimer = 0;
  private wasAway = false;
  private opensFirst = false; // Enter was pressed before the ranking came

  private ranking;
  private table = actionTable((name) => this.open(name));
  private categories = categoryChips(() => this.applySearchSoon());
  private search = h("input", {
    type: "search",
    "aria-label": "Search actions",
    placeholder: "Search actions  /",
    autocomplete: "off",
    spellcheck: "false",
    oninput: () => {
      this.opensFirst = false;
      this.applySearchSoon();
    },
    onkeydown: (event: KeyboardEvent) => this.onSearchKeydown(event),
  });
  private count = h("span.r-facts", {});
  private remark = h("p.r-remark", { hidden: true });
  private notes = h("div.r-notes");
  private pane = h("section.r-detail", { "aria-label": "Action", hidden: true });
  private panes = h(
    "div.r-panes",
    {},
    h("div.r-found", {}, this.remark, this.table.element, this.notes),
    this.pane,
  );
  private root = h(
    "div.reyn-view.r-explorer",
    // JupyterLab's single-key shortcuts would eat what is typed here.
    {
      role: "group",
      "aria-label": "Catalog",
      "data-lm-suppress-shortcuts": "true",
      onkeydown: (event: KeyboardEvent) => this.onKeydown(event),
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
  private progress;
  private ends: (() => void)[];
  private applySearchSoon = framed(() => this.applySearch());

  constructor(
    private element: HTMLElement,
    query: string,
    private source: Source,
    private inspect: ViewFunction<LiveBlob> | undefined,
    before: HTMLElement | null,
  ) {
    this.ranking = kernelRanking(source, () => this.onRanking());
    this.progress = requestProgress(source, before ?? element);
    this.progress.box.classList.add("reyn-view", "r-alone");
    this.search.value = query;
    fill(element, this.progress.box, before);
    this.ends = [this.subscribe(), this.watchState()];
    void this.load();
  }

  dispose(): void {
    for (const end of this.ends) end();
    this.loading.abort();
    this.progress.dispose();
    this.applySearchSoon.cancel();
    this.ranking.dispose();
    clearTimeout(this.announceTimer);
    for (const detail of this.details.values()) detail.dispose();
    this.table.dispose();
    this.element.replaceChildren();
  }

  private subscribe(): () => void {
    return this.source.subscribe((event) => {
      if (event.name === "catalog" && event.revision !== this.page?.revision) void this.load();
      // A run elsewhere counts in the column of uses; that is worth one page, and not many.
      else if (event.name === "run" && event.ended && (this.page?.total ?? 0) <= PAGE) void this.load();
    });
  }

  private watchState(): () => void {
    return this.source.watch((state) => {
      const back = this.wasAway && state === "live";
      this.wasAway = state !== "live" && (this.wasAway || state !== "busy");
      if (back) void this.load();
    });
  }

  private onKeydown(event: KeyboardEvent): void {
    const target = event.target as Element;
    if (event.key === "Escape" && !event.isComposing && this.pane.contains(target)) return this.close();
    const typing = target.closest("input, textarea, select");
    if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.search.focus();
    this.search.select();
  }

  private onSearchKeydown(event: KeyboardEvent): void {
    if (event.key === "Escape" && this.search.value) this.search.value = "";
    else if (event.key !== "ArrowDown" && event.key !== "Enter") return;
    event.preventDefault();
    // What was typed in this frame counts already.
    this.applySearch();
    if (event.key === "ArrowDown") this.table.focus();
    if (event.key !== "Enter") return;
    this.opensFirst = this.ranking.pending;
    if (!this.opensFirst) this.table.open();
  }

  private applySearch(): void {
    const { table, ranking } = this;
    const [query, category] = [this.search.value, this.categories.selected];
    if (this.page) ranking.want(query, category, table.matches(query, category));
    table.search(query, category, ranking.names);
    this.remark.textContent = visible(ranking.remark);
    this.remark.hidden = !ranking.remark;
    this.showCount();
  }

  private onRanking(): void {
    this.applySearch();
    if (this.opensFirst && focusedNear(this.search) === this.search) this.table.open();
    this.opensFirst = false;
  }

  private showCount(): void {
    const all = this.page?.total ?? 0;
    const { table, count, ranking } = this;
    const order = ranking.names ? ", best first" : "";
    count.textContent =
      table.count < all || order
        ? `${formatCount(table.count)} of ${countActions(all)}${order}`
        : countActions(all);
    // Read out once the typing pauses.
    clearTimeout(this.announceTimer);
    if (this.search.value || this.categories.selected)
      this.announceTimer = window.setTimeout(() => announce(this.root, count.textContent!), 600);
  }

  private open(name: string): void {
    const detail = this.details.get(name) ?? this.createDetail(name);
    this.details.delete(name);
    this.details.set(name, detail);
    this.openName = name;
    this.pane.hidden = false;
    this.panes.classList.add("r-opened");
    this.pane.setAttribute("aria-label", visible(name));
    if (this.pane.firstChild !== detail.element) fill(this.pane, detail.element);
    detail.show();
    announce(this.root, `${name} is open`);
  }

  /** An action that was not open yet, in the place of those that were looked at longest ago. */
  private createDetail(name: string): ActionDetail {
    for (const [other, old] of this.details)
      if (this.details.size >= MOST_DETAILS && !old.running) {
        old.dispose();
        this.details.delete(other);
      }
    return actionDetail(name, this.source, {
      inspect: this.inspect,
      close: () => this.close(),
      updateRow: (row) => this.table.updateRow(row),
    });
  }

  private close(): void {
    this.openName = "";
    this.pane.hidden = true;
    this.panes.classList.remove("r-opened");
    this.table.focus();
  }

  private async load(): Promise<void> {
    this.loading.abort();
    const { signal } = (this.loading = new AbortController());
    const again = this.page !== null;
    try {
      await fetchCatalog(
        (args) =>
          this.page
            ? this.source.request("catalog.page", args, { signal })
            : this.progress.request("catalog.page", args, signal),
        // What is shown stays until all of what comes in its place is there.
        (page, rows, done) => (!again || done) && this.showPage(page, rows, done),
      );
    } catch (error) {
      if (signal.aborted || !this.page) return; // the first request's failure stands beside the snapshot
      const [message, hint] =
        error instanceof RequestError ? [error.message, error.hint] : [String(error), ""];
      this.showNote("bad", `The catalog cannot be read: ${message} ${hint}`.trim(), true);
    }
  }

  private showPage(page: CatalogPage, rows: CatalogPage["rows"], done: boolean): void {
    if (!this.page) fill(this.element, this.root);
    const fresh = this.page?.revision !== page.revision;
    this.page = page;
    this.table.load(page, [...rows]);
    if (fresh) {
      this.categories.show(page.categories, page.total);
      this.ranking.forget();
    }
    this.applySearch();
    const said = countActions(rows.length);
    if (!done) this.showNote("muted", `${said} of ${formatCount(page.total)} so far …`);
    else if (rows.length < page.total)
      this.showNote(
        "warn",
        `These are the first ${said} of ${formatCount(page.total)}; %reyn list --filter TEXT finds the others.`,
      );
    else if (this.openName && !this.table.has(this.openName))
      this.showNote("warn", `${this.openName} is no longer in the catalog.`);
    else this.fillNotes();
  }

  private showNote(tone: string, text: string, again = false): void {
    const retry = h("button.r-button", { type: "button", onclick: () => void this.load() }, "Try again");
    this.fillNotes(h(`div.r-msg.r-${tone}`, { role: "status" }, visible(text), again && [" ", retry]));
  }

  /** The keyboard that was at the button of a note goes on at the button of the next one, else in the table. */
  private fillNotes(note?: HTMLElement): void {
    const hadFocus = this.notes.contains(focusedNear(this.notes));
    fill(this.notes, note);
    if (hadFocus) (note?.querySelector("button") ?? this.table).focus();
  }
}

type Ask = (args: Operations["catalog.page"]["args"]) => Promise<CatalogPage>;

/**
 * Fetches the whole catalog a page at a time; where it changes meanwhile, from the start, so that all rows are of one
 * revision.
 *
 * @param ask fetches one page
 * @param take is given all rows so far each time some have come, and whether they are all
 */
async function fetchCatalog(
  ask: Ask,
  take: (page: CatalogPage, rows: CatalogPage["rows"], done: boolean) => void,
): Promise<void> {
  let rows: CatalogPage["rows"] = [];
  let first: CatalogPage | null = null;
  for (let tries = 0; tries < 5;) {
    const page = await ask({ offset: rows.length, limit: PAGE });
    if (first && page.revision !== first.revision) {
      [rows, first, tries] = [[], null, tries + 1];
      continue;
    }
    first ??= page;
    rows.push(...page.rows);
    const done = !page.rows.length || rows.length >= Math.min(page.total, MOST_ACTIONS);
    take(page, rows, done);
    if (done) return;
  }
}
