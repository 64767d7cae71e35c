// The catalog explorer: search, categories and the table; beside it the action that is open, its form and its result.
//
// Invariant: what a person typed (the search, a form) and what a call gave stay on the page through everything that
// the catalog and the kernel do meanwhile.
import type { CatalogCategory, CatalogPage } from "../protocol";
import type { LiveBlob, LiveCatalog } from "../sources/messages";
import { RequestError, type ViewFunction } from "../sources/source";
import { actionDetail, type Detail } from "./action-detail";
import { actionTable } from "./action-table";
import { say } from "./copy";
import { fill, framed, h, unique } from "./h";
import { visible } from "./text";

const PAGE = 2_000;
const MOST = 50_000;
const KEPT = 12; // opened actions whose form and result are kept

const counted = (count: number, what: string): string =>
  `${count.toLocaleString("en-US")} ${what}${count === 1 ? "" : "s"}`;

/** @param inspect shows a stored result inline, where the host has no tabs */
export const explorer =
  (inspect?: ViewFunction<LiveBlob>): ViewFunction<LiveCatalog> =>
  (element, model, source) => {
    const details = new Map<string, Detail>();
    let loading: AbortController | null = null;
    let loaded: CatalogPage | null = null;
    let category = "";
    let opened = "";
    let told = 0;

    const table = actionTable((name) => open(name));
    const search = h("input", {
      type: "search",
      "aria-label": "Search actions",
      placeholder: "Search actions ( / )",
      autocomplete: "off",
      spellcheck: "false",
      oninput: () => narrow(),
      onkeydown: searching,
    });
    search.value = model.query;
    const count = h("span.r-facts", {});
    const sentence = h("p.r-more", { id: unique("sentence") });
    const chips = h("div.r-chips", { role: "group", "aria-label": "Categories" });
    const notes = h("div.r-notes");
    const pane = h("section.r-detail", { "aria-label": "Action", hidden: true });
    const panes = h("div.r-panes", {}, h("div.r-found", {}, table.element, notes), pane);
    const root = h(
      "div.reyn-view.r-explorer",
      // JupyterLab's single-key shortcuts would eat what is typed here.
      { role: "group", "aria-label": "Catalog", "data-lm-suppress-shortcuts": "true", onkeydown: pressed },
      h("div.r-head", {}, h("div.r-top", {}, search, count), chips, sentence),
      panes,
    );
    element.append(root);

    function pressed(event: KeyboardEvent): void {
      const typing = (event.target as Element).closest("input, textarea, select");
      if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      search.focus();
      search.select();
    }

    function searching(event: KeyboardEvent): void {
      if (event.key === "Escape" && search.value) search.value = "";
      else if (event.key !== "ArrowDown" && event.key !== "Enter") return;
      event.preventDefault();
      // What was typed in this frame counts already.
      seek();
      if (event.key === "ArrowDown") table.focus();
      if (event.key === "Enter") table.open();
    }

    function seek(): void {
      table.search(search.value, category);
      counts();
    }
    const narrow = framed(seek);

    function counts(): void {
      const all = loaded?.total ?? 0;
      const some =
        table.count < all ? `${table.count.toLocaleString("en-US")} of ${counted(all, "action")}` : "";
      count.textContent = some || counted(all, "action");
      // Read out once the typing pauses.
      clearTimeout(told);
      if (search.value || category) told = window.setTimeout(() => say(root, count.textContent!), 600);
    }

    function categories(all: readonly CatalogCategory[]): void {
      const chip = (name: string, label: string, number: number, title: string): HTMLElement =>
        h(
          "button.r-button",
          {
            type: "button",
            title: title || null,
            "aria-pressed": String(name === category),
            "aria-describedby": name === category ? sentence.id : null,
            onclick: () => {
              category = name === category ? "" : name;
              categories(all);
              (
                [...chips.children].find(
                  (each) => each.getAttribute("aria-pressed") === "true",
                ) as HTMLElement
              )?.focus();
              narrow();
            },
          },
          label,
          h("span.r-quiet", {}, ` ${number.toLocaleString("en-US")}`),
        );
      if (!all.some((each) => each.name === category)) category = "";
      fill(
        chips,
        chip("", "all", loaded!.total, ""),
        all.map((each) => chip(each.name, visible(each.name), each.count, visible(each.sentence))),
      );
      sentence.textContent = visible(all.find((each) => each.name === category)?.sentence ?? "");
    }

    function open(name: string): void {
      let detail = details.get(name);
      if (!detail) {
        detail = actionDetail(name, source, {
          inspect,
          close,
          renewed: (row) => table.renew(row),
        });
        for (const [other, old] of details)
          if (details.size >= KEPT && !old.running) {
            old.dispose();
            details.delete(other);
          }
      }
      details.delete(name);
      details.set(name, detail);
      opened = name;
      pane.hidden = false;
      panes.classList.add("r-opened");
      pane.setAttribute("aria-label", visible(name));
      if (pane.firstChild !== detail.element) fill(pane, detail.element);
      detail.show();
    }

    function close(): void {
      opened = "";
      pane.hidden = true;
      panes.classList.remove("r-opened");
      table.focus();
    }

    async function load(): Promise<void> {
      loading?.abort();
      const { signal } = (loading = new AbortController());
      try {
        await pages(signal);
      } catch (error) {
        if (signal.aborted) return;
        const [message, hint] =
          error instanceof RequestError ? [error.message, error.hint] : [String(error), ""];
        note("bad", `The catalog cannot be read: ${message} ${hint}`.trim(), true);
      }
    }

    /** All pages of one revision; where the catalog changes meanwhile, from the start. */
    async function pages(signal: AbortSignal): Promise<void> {
      let rows: string[][] = [];
      let first: CatalogPage | null = null;
      const again = loaded !== null;
      for (let tries = 0; tries < 5;) {
        const page: CatalogPage = await source.request(
          "catalog.page",
          { offset: rows.length, limit: PAGE },
          { signal },
        );
        if (first && page.revision !== first.revision) {
          [rows, first, tries] = [[], null, tries + 1];
          continue;
        }
        first ??= page;
        rows.push(...page.rows);
        const done = !page.rows.length || rows.length >= Math.min(page.total, MOST);
        // What is shown stays until all of what comes in its place is there.
        if (!again || done) take(page, rows, done);
        if (done) return;
      }
    }

    function take(page: CatalogPage, rows: string[][], done: boolean): void {
      const fresh = loaded?.revision !== page.revision;
      loaded = page;
      table.load(page, [...rows]);
      table.search(search.value, category);
      if (fresh) categories(page.categories);
      counts();
      const said = counted(rows.length, "action");
      if (!done) note("muted", `${said} of ${page.total.toLocaleString("en-US")} so far …`);
      else if (rows.length < page.total)
        note(
          "warn",
          `These are the first ${said} of ${page.total.toLocaleString("en-US")}; %reyn list --filter TEXT finds the others.`,
        );
      else if (opened && !rows.some((row) => row[0] === opened))
        note("warn", `${opened} is no longer in the catalog.`);
      else fill(notes);
    }

    function note(tone: string, text: string, again = false): void {
      const retry = h("button.r-button", { type: "button", onclick: () => void load() }, "Try again");
      fill(notes, h(`div.r-msg.r-${tone}`, { role: "status" }, visible(text), again && [" ", retry]));
    }

    const unsubscribe = source.subscribe((event) => {
      if (event.name === "catalog" && event.revision !== loaded?.revision) void load();
      // A run elsewhere counts in the column of uses; that is worth one page, and not many.
      else if (event.name === "run" && event.ended && (loaded?.total ?? 0) <= PAGE) void load();
    });
    let away = false;
    const unwatch = source.watch((state) => {
      const back = away && state === "live";
      away = state !== "live" && (away || state !== "busy");
      if (back) void load();
    });
    void load();
    return () => {
      unsubscribe();
      unwatch();
      loading?.abort();
      narrow.cancel();
      clearTimeout(told);
      for (const detail of details.values()) detail.dispose();
      table.dispose();
      root.remove();
    };
  };
