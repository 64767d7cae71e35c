// One blob: what it is and where it came from, and its content as a grid, a tree and text, whichever fit.
//
// Invariant: what the snapshot shows stays until the same is there from the kernel, and for good when it cannot be had.
import type { OpenedBlob, BlobStart, Grid, LiveBlob, View } from "../../protocol";
import type { Source, ViewFunction } from "../../sources/source";
import { showBlocks } from "../blocks/blocks";
import { copyButton, insertButton } from "../dom/copy";
import { fill, h, visible } from "../dom/h";
import { type Tabs, tabs } from "../dom/tabs";
import type { DataGridModel } from "../grid/data-grid";
import { requestProgress, ignore } from "../request-progress";
import { jsonTree } from "./json-tree";
import { textPager } from "./text-pager";

type Pane = OpenedBlob["pane"];
const NAMES: Record<Pane, string> = { content: "Content", grid: "Table", tree: "Tree", text: "Text" };

/** @param grid shows the table; it is given, so that a host may fetch it only when there is one */
export const inspector =
  (grid: ViewFunction<DataGridModel>): ViewFunction<LiveBlob> =>
  (element, { blob, selector }, source, before, saved) => {
    const view = h("div.reyn-view.r-inspector", { role: "group", "data-lm-suppress-shortcuts": "true" });
    const progress = requestProgress(source, view);
    const ends: (() => void)[] = [progress.dispose];
    fill(element, progress.box, before);
    progress.box.classList.add("reyn-view", "r-alone");

    void progress
      .request("blob.open", { blob, selector: selector ?? null })
      .then((opened) => {
        view.ariaLabel = visible(`Blob ${opened.title}`);
        const body = h("div.r-body");
        fill(view, head(opened, source), body);
        fill(element, view);
        const rest = before && h("div", {}, ...(before.querySelector(":scope > .r-body")?.childNodes ?? []));
        const tabList = panes(opened, source, grid, rest ?? null, saved);
        ends.push(tabList.dispose);
        fill(body, note(opened.start, source.host.name), tabList.list, tabList.panels);
        tabList.select(opened.pane); // in the page by now, where it can be measured
      })
      .catch(ignore);
    return () => {
      for (const end of ends) end();
      element.replaceChildren();
    };
  };

const note = ({ note }: BlobStart, host: string): HTMLElement | null =>
  note
    ? h(
        `div.r-msg.r-${host === "page" ? "muted" : "warn"}` as "div",
        { role: "note" },
        h("p", {}, visible(note)),
      )
    : null;

function head(opened: OpenedBlob, { host }: Source): HTMLElement {
  return h(
    "div.r-head",
    {},
    h(
      "div.r-top",
      {},
      h("span.r-title", { role: "heading", "aria-level": 3 }, h("strong", {}, visible(opened.title))),
    ),
    h("div.r-facts", {}, opened.facts.map(visible).join(" · ")),
    h(
      "div.r-cmds",
      {},
      opened.commands.map(([label, code]) =>
        h(
          "span.r-line",
          {},
          h("span.r-label", {}, `${label} `),
          h("code", {}, visible(code)),
          copyButton(() => code, visible(code)),
          host.insertCell && insertButton(code, host.insertCell),
        ),
      ),
    ),
    h(
      "details",
      {},
      h("summary.r-label", {}, "About this blob"),
      h(
        "dl.r-list",
        {},
        opened.about.map(([label, value]) => h("div", {}, h("dt", {}, label), h("dd", {}, visible(value)))),
      ),
    ),
  );
}

/** The panes of an opened blob; what the snapshot shows stands below the first until that has content of its own. */
function panes(
  opened: OpenedBlob,
  source: Source,
  grid: ViewFunction<DataGridModel>,
  before: HTMLElement | null,
  saved: View | null | undefined,
): Tabs<Pane> {
  const { id: blob, value } = opened;
  const start = { ...opened.start };
  let rest = before;

  const open = (pane: Pane, panel: HTMLElement): (() => void) => {
    const first = pane === "grid" ? firstGrid(saved, start) : null;
    const shown = rest;
    rest = null;
    if (first) return grid(panel, { blob, row: start.row, first }, source, shown);
    const content = h("div.r-pane");
    fill(panel, content, shown);
    const asked = shown ? sourceWithNotice(source, () => shown.remove()) : source;
    if (pane === "content") return shownContent(content, blob, asked);
    return pane === "grid"
      ? grid(content, { blob, row: start.row }, asked)
      : pane === "tree"
        ? jsonTree(content, { blob, value, path: start.path, text: showByte }, asked)
        : textPager(content, { blob, line: start.line, byte: start.byte, find: start.find }, asked);
  };
  const tabList = tabs(opened.panes, NAMES, open);

  function showByte(byte: number): void {
    Object.assign(start, { byte, find: "" });
    tabList.reopen("text");
  }
  return tabList;
}

/** What the kernel draws of a blob: the parts of a result, or an image. */
function shownContent(element: HTMLElement, blob: string, source: Source): () => void {
  const progress = requestProgress(source, element);
  const box = h("div.r-in");
  element.append(progress.box, box);
  progress
    .request("blob.content", { blob })
    .then(({ blocks }) => showBlocks(box, blocks, source.host))
    .catch(ignore);
  return () => {
    progress.dispose();
    element.replaceChildren();
  };
}

/** The rows of a snapshot, where they are the first ones of the blob. */
const firstGrid = (saved: View | null | undefined, { row }: BlobStart): Grid | null =>
  (!row && saved?.blocks.find((block): block is Grid => block.type === "grid")) || null;

/** The same source, which tells when content has come and been drawn: an answer after which nothing more is asked. */
function sourceWithNotice(source: Source, came: () => void): Source {
  let pending = 0;
  const request: Source["request"] = async (op, args, options) => {
    pending += 1;
    try {
      const answer = await source.request(op, args, options);
      // The code of a view is no content yet.
      if (op !== "module.open") setTimeout(() => pending || came());
      return answer;
    } finally {
      pending -= 1;
    }
  };
  return Object.assign(Object.create(source) as Source, { request });
}
