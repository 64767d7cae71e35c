// One blob: what it is and where it came from, and its content as a grid, a tree and text, whichever fit.
//
// Invariant: a pane is made when it is first looked at and keeps its place while others are shown.
import type { BlobOpened, BlobStart, LiveBlob } from "../protocol";
import type { Source, ViewFunction } from "../sources/source";
import { asker, ignored } from "./patience";
import { copyButton, insertButton } from "./copy";
import type { GridModel } from "./grid";
import { fill, h, unique } from "./h";
import { pager } from "./pager";
import { visible } from "./text";
import { tree } from "./tree";

type Pane = BlobOpened["pane"];
const NAMES: Record<Pane, string> = { grid: "Table", tree: "Tree", text: "Text" };

/** @param grid shows the table; it is given, so that a host may fetch it only when there is one */
export const inspector =
  (grid: ViewFunction<GridModel>): ViewFunction<LiveBlob> =>
  (element, { blob, selector }, source, before) => {
    const view = h("div.reyn-view.r-inspector", { role: "group", "data-lm-suppress-shortcuts": "true" });
    const asking = asker(source, view);
    const ends: (() => void)[] = [asking.dispose];
    fill(element, asking.box, before);
    asking.box.classList.add("reyn-view", "r-alone");

    void asking
      .ask("blob.open", { blob, selector: selector ?? null })
      .then((opened) => {
        view.ariaLabel = visible(`Blob ${opened.title}`);
        const { list, panels, dispose } = tabs(opened, source, grid);
        ends.push(dispose);
        fill(view, head(opened, source), h("div.r-body", {}, note(opened.start), list, panels));
        fill(element, view);
      })
      .catch(ignored);
    return () => {
      for (const end of ends) end();
      element.replaceChildren();
    };
  };

const note = ({ note }: BlobStart): HTMLElement | null =>
  note ? h("div.r-msg.r-warn", { role: "note" }, h("p", {}, visible(note))) : null;

function head(opened: BlobOpened, { host }: Source): HTMLElement {
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

interface Tabs {
  list: HTMLElement;
  panels: HTMLElement[];
  dispose(): void;
}

function tabs(opened: BlobOpened, source: Source, grid: ViewFunction<GridModel>): Tabs {
  const { panes, id: blob, value } = opened;
  const name = unique("pane");
  const ends = new Map<Pane, () => void>();
  const start = { ...opened.start };

  const open = (pane: Pane, panel: HTMLElement): (() => void) =>
    pane === "grid"
      ? grid(panel, { blob, row: start.row }, source)
      : pane === "tree"
        ? tree(panel, { blob, value, path: start.path, text: showByte }, source)
        : pager(panel, { blob, line: start.line, byte: start.byte, find: start.find }, source);

  const buttons = panes.map((pane) =>
    h(
      "button.r-tab",
      {
        type: "button",
        role: "tab",
        id: `${name}-${pane}-tab`,
        "aria-controls": `${name}-${pane}`,
        onclick: () => choose(pane),
        onkeydown: (event: KeyboardEvent) => turn(event, pane),
      },
      NAMES[pane],
    ),
  );
  const panels = panes.map((pane) =>
    h("div.r-pane", { role: "tabpanel", id: `${name}-${pane}`, "aria-labelledby": `${name}-${pane}-tab` }),
  );

  function choose(chosen: Pane): void {
    panes.forEach((pane, place) => {
      const now = pane === chosen;
      buttons[place]!.ariaSelected = String(now);
      buttons[place]!.tabIndex = now ? 0 : -1;
      panels[place]!.hidden = !now;
      if (now && !ends.has(pane)) ends.set(pane, open(pane, panels[place]!));
    });
  }

  function turn(event: KeyboardEvent, pane: Pane): void {
    const by = { ArrowRight: 1, ArrowLeft: -1, Home: -panes.indexOf(pane), End: -1 - panes.indexOf(pane) }[
      event.key
    ];
    if (by === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const place = (panes.indexOf(pane) + by + panes.length) % panes.length;
    choose(panes[place]!);
    buttons[place]!.focus();
  }

  /** The text pane afresh, at a byte of the document. */
  function showByte(byte: number): void {
    Object.assign(start, { byte, find: "" });
    ends.get("text")?.();
    ends.delete("text");
    choose("text");
    buttons[panes.indexOf("text")]!.focus();
  }

  const list = h(
    "div.r-tabs",
    { role: "tablist", "aria-label": "Shown as", hidden: panes.length < 2 },
    buttons,
  );
  choose(opened.pane);
  return { list, panels, dispose: () => ends.forEach((end) => end()) };
}
