// A text of any length: numbered lines in a window, a search through all of them, long lines piece by piece.
//
// Invariant: the page holds only the lines in sight; numbers are never part of what is selected. A line that is longer
// than a row shows says so, and opens below.
import type { LineMatch, LinePiece, LineWindow } from "../../protocol";
import type { ViewFunction } from "../../sources/source";
import { type Child, fill, formatCount, h, visible } from "../dom/h";
import { virtualRows } from "../dom/virtual-rows";
import { requestProgress, ignore } from "../request-progress";

export interface TextPagerModel {
  blob: string;
  line?: number;
  byte?: number | null;
  /** A regular expression to begin with. */
  find?: string;
}

const ROW = 18;
const WINDOW = 200;
const MOST_WINDOWS = 20;
const TALL = 24 * ROW + 2;
const ROW_BYTES = 900; // bytes of a line that are surely in its row

export const textPager: ViewFunction<TextPagerModel> = (element, model, source) => {
  const { blob } = model;
  const body = h("div.r-text");
  const spacer = h("div", {}, body);
  const box = h("div.r-pager", { role: "region", tabindex: 0, "aria-label": "Text" }, spacer);
  const progress = requestProgress(source, box);
  const find = h("input.r-find", {
    type: "search",
    placeholder: "Search the text",
    "aria-label": "Search the text",
  });
  const regex = h("input", { type: "checkbox" });
  const goto = h("input.r-goto", {
    type: "number",
    min: 1,
    placeholder: "Go to line",
    "aria-label": "Go to line",
  });
  const status = h("span.r-quiet", { role: "status" });
  const long = h("section.r-long", { hidden: true, "aria-label": "A long line" });
  const windows = new Map<number, LineWindow["lines"] | null>();
  let total = 0;
  let fetching = new AbortController();
  let matches: LineMatch[] = [];
  let more: number | null = 0;
  let search = new AbortController(); // of what is in the field now
  let seeking: AbortController | null = null; // the search whose matches are on their way
  let matchPlace = -1;
  let pattern: RegExp | null = null;

  const draw = (first: number, stop: number): void => {
    const wanted = [Math.floor(first / WINDOW), Math.floor(Math.max(first, stop - 1) / WINDOW)];
    if (total) for (const each of new Set(wanted)) fetchWindow(each);
    const width = `${Math.max(3, formatCount(total).length)}ch`;
    fill(body, ...Array.from({ length: stop - first }, (_, place) => row(first + place, width)));
  };
  const virtual = virtualRows(box, spacer, body, ROW, draw);

  function row(number: number, width: string): HTMLElement {
    const line = windows.get(Math.floor(number / WINDOW))?.[number % WINDOW];
    const hit = matches[matchPlace]?.line === number + 1;
    return h(
      hit ? "div.r-numbered.r-hit" : "div.r-numbered",
      {},
      h("span.r-no", { style: `width:${width}` }, formatCount(number + 1)),
      line ? highlight(line.text) : h("span.r-quiet", {}, "…"),
      line?.more &&
        h(
          "button.r-button",
          { type: "button", onclick: () => void openLine(number + 1, 0).catch(ignore) },
          `show all (${line.more})`,
        ),
    );
  }

  /** Text with what is searched for in <mark>. */
  function highlight(text: string): Child[] {
    const shown = visible(text);
    if (!pattern) return [shown];
    const parts: Child[] = [];
    let end = 0;
    for (const found of shown.matchAll(pattern)) {
      if (!found[0]) continue;
      parts.push(shown.slice(end, found.index), h("mark", {}, found[0]));
      end = found.index + found[0].length;
    }
    return [...parts, shown.slice(end)];
  }

  function fetchWindow(number: number): void {
    const known = windows.get(number);
    if (known !== undefined) {
      // What is in sight is the last to go.
      windows.delete(number);
      windows.set(number, known);
      return;
    }
    if (windows.size >= MOST_WINDOWS) {
      // What was asked for and is far out of sight now is not waited for.
      fetching.abort();
      fetching = new AbortController();
      for (const each of [...windows.keys()].slice(0, MOST_WINDOWS / 2)) windows.delete(each);
    }
    windows.set(number, null);
    void progress
      .request("lines.window", { blob, first: number * WINDOW + 1, count: WINDOW }, fetching.signal)
      .then(({ lines }) => {
        windows.set(number, lines);
        virtual.refresh();
      })
      .catch(() => windows.delete(number));
  }

  function go(line: number): void {
    const row = Math.max(0, Math.min(line, total) - 1);
    virtual.reveal(Math.min(total - 1, row + Math.floor(virtual.visible / 2)));
    virtual.reveal(Math.max(0, row - Math.floor(virtual.visible / 3)));
    virtual.reveal(row);
    virtual.refresh();
  }

  async function openLine(line: number, offset: number): Promise<void> {
    const piece = await progress.request("lines.whole", { blob, line, offset });
    const shift = (label: string, to: number | null): HTMLElement =>
      h(
        "button.r-button",
        { type: "button", disabled: to === null, onclick: () => void openLine(line, to!).catch(ignore) },
        label,
      );
    const close = h("button.r-button", { type: "button", onclick: () => (long.hidden = true) }, "Close");
    fill(long, caption(piece, shift, close), h("pre", { tabindex: 0 }, highlight(piece.text)));
    long.hidden = false;
    long.querySelector("mark")?.scrollIntoView({ block: "nearest" });
  }
  const caption = (
    piece: LinePiece,
    shift: (label: string, to: number | null) => HTMLElement,
    close: HTMLElement,
  ): HTMLElement =>
    h(
      "div.r-bar",
      {},
      h("span.r-quiet", { role: "status" }, piece.caption),
      shift("Earlier", piece.previous),
      shift("Later", piece.next),
      close,
    );

  /** Fetches matches from where the last ones ended. */
  async function fetchMatches(): Promise<void> {
    const wanted = {
      blob,
      text: find.value,
      start: more ?? 0,
      ignore_case: true,
      regex: regex.checked,
      limit: 1000,
    };
    const found = await progress.request("lines.find", wanted, search.signal);
    matches = matches.concat(found.matches);
    more = found.next;
  }

  function resetSearch(): void {
    search.abort();
    search = new AbortController();
    matches = [];
    more = 0;
    matchPlace = -1;
    pattern = null;
    fill(status);
    virtual.refresh();
  }

  async function findNext(by: number): Promise<void> {
    if (!find.value) return;
    if (!pattern) {
      fill(status, "searching …");
      try {
        const literal = find.value.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
        pattern = new RegExp(regex.checked ? find.value : visible(literal), "giu");
      } catch {
        pattern = /$^/g; // the kernel reads patterns that the browser does not; its matches are not marked then
      }
      await fetchMatches();
      matchPlace = matches.findIndex((match) => match.line > virtual.first) - (by > 0 ? 1 : 0);
    }
    if (matchPlace + by >= matches.length && more !== null) await fetchMatches();
    if (!matches.length) return fill(status, "no match");
    matchPlace = (matchPlace + by + matches.length) % matches.length;
    const match = matches[matchPlace]!;
    fill(
      status,
      `${formatCount(matchPlace + 1)} of ${formatCount(matches.length)}${more === null ? "" : "+"}`,
    );
    go(match.line);
    if (match.offset > ROW_BYTES) await openLine(match.line, Math.max(0, match.offset - 200));
    else long.hidden = true;
  }
  /** While matches are on their way a press adds nothing; another search than theirs does not wait for them. */
  async function seek(by: number): Promise<void> {
    const mine = search;
    if (seeking === mine) return;
    seeking = mine;
    try {
      await findNext(by);
    } catch {
      if (mine === search) resetSearch();
    } finally {
      if (seeking === mine) seeking = null;
    }
  }

  find.addEventListener("input", resetSearch);
  regex.addEventListener("change", resetSearch);
  find.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "Enter") void seek(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape") box.focus();
  });
  goto.addEventListener("keydown", (event) => event.stopPropagation());
  goto.addEventListener("change", () => total && go(Number(goto.value) || 1));
  box.addEventListener("keydown", (event) => {
    if (event.key === "/") {
      event.preventDefault();
      find.focus();
    }
    event.stopPropagation();
  });

  async function start(): Promise<void> {
    const { byte } = model;
    const place =
      byte == null
        ? { line: model.line ?? 1, offset: 0 }
        : await progress.request("lines.at", { blob, byte });
    const first = Math.floor((place.line - 1) / WINDOW);
    const window = await progress.request("lines.window", { blob, first: first * WINDOW + 1, count: WINDOW });
    windows.set(first, window.lines);
    total = window.total;
    box.ariaLabel = `Text, ${formatCount(total)} ${total === 1 ? "line" : "lines"}`;
    box.style.height = `${Math.min(TALL, Math.max(1, total) * ROW + 16)}px`;
    virtual.count(total);
    go(place.line);
    if (!total) fill(status, "The text is empty");
    if (place.offset > ROW_BYTES) await openLine(place.line, place.offset);
    if (!model.find) return;
    find.value = model.find;
    regex.checked = true;
    void seek(1);
  }

  const arrow = (label: string, sign: string, by: number): HTMLElement =>
    h("button.r-button", { type: "button", "aria-label": label, onclick: () => void seek(by) }, sign);
  element.append(
    h(
      "div.r-bar",
      {},
      find,
      arrow("Previous match", "↑", -1),
      arrow("Next match", "↓", 1),
      h("label", {}, regex, " regex"),
      status,
      goto,
    ),
    progress.box,
    box,
    long,
  );
  void start().catch(ignore);
  return () => {
    fetching.abort();
    search.abort();
    progress.dispose();
    virtual.dispose();
    element.replaceChildren();
  };
};
