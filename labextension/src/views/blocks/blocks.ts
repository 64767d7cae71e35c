// Draws the blocks of a view.
//
// Invariant: elements, classes and words are those of the HTML that Python makes; buttons are all that is added. A
// block that is malformed or of an unknown kind is named in its place, and its neighbours are drawn.
import type {
  Block,
  Chart,
  Code,
  Commands,
  Diff,
  Fold,
  Grid,
  Lines,
  Media,
  Node as TreeNode,
} from "../../protocol";
import type { Host } from "../../sources/source";
import { copyButton, insertButton } from "../dom/copy";
import { append, type Child, h, visible } from "../dom/h";
import { drawStaticTable } from "./static-table";
import { badges, inline } from "./text";
import { drawToolbar } from "./toolbar";

export type Draw = (block: never, host?: Host) => HTMLElement[];
const more = new Map<string, Draw>();

/** Teaches this module to draw a kind of block that not every view needs. */
export const extend = (type: string, draw: Draw): void => void more.set(type, draw);

/** The elements of some blocks. */
export const drawBlocks = (blocks: readonly Block[], host?: Host): HTMLElement[] =>
  blocks.flatMap((block) => drawBlock(block, host));

type ShowBlocks = (box: Element, blocks: readonly Block[], host?: Host) => void;

/** Puts blocks at the end of a box. */
export let showBlocks: ShowBlocks = (box, blocks, host) => append(box, drawBlocks(blocks, host));

/** Teaches this module to show blocks in such a way that others can be shown in their place later. */
export const showWith = (show: ShowBlocks): void => void (showBlocks = show);

export function drawBlock(block: Block, host?: Host): HTMLElement[] {
  try {
    const drawn = draw(block, host);
    return (
      drawn ?? note(`A part of the kind “${(block as { type: unknown }).type}” is not known to this version.`)
    );
  } catch {
    return note(`A part of the kind “${(block as { type?: unknown } | null)?.type}” could not be drawn.`);
  }
}

const note = (text: string): HTMLElement[] => (text ? [h("p.r-more", {}, visible(text))] : []);

const inner = (box: HTMLElement, blocks: readonly Block[], host?: Host): HTMLElement => {
  showBlocks(box, blocks, host);
  return box;
};

function draw(block: Block, host?: Host): HTMLElement[] | undefined {
  switch (block.type) {
    case "paragraph":
      return [h("p", {}, ...inline(block.spans))];
    case "heading":
      return [
        h(
          "p.r-h",
          { role: "heading", "aria-level": Math.min(block.level + 3, 6) },
          h("strong", {}, ...inline(block.spans)),
        ),
      ];
    case "bullets": {
      const items = block.items.map((item) => {
        const [first, ...rest] = item;
        const tight = first?.type === "paragraph" ? inline(first.spans) : [];
        return h("li", {}, ...tight, ...drawBlocks(tight.length ? rest : item, host));
      });
      const start = block.start !== 1 && block.start;
      return [block.start === null ? h("ul", {}, ...items) : h("ol", { start }, ...items)];
    }
    case "quote":
      return [inner(h("blockquote"), block.blocks, host)];
    case "rule":
      return [h("hr")];
    case "code":
      return [drawCode(block)];
    case "commands":
      return [drawCommands(block, host)];
    case "lines":
      return [drawLines(block), ...note(block.more)];
    case "grid":
      return drawTable(block);
    case "tree":
      return [h("div.r-tree", {}, drawNode(block.root, block.levels)), ...note(block.more)];
    case "diff":
      return drawDiff(block);
    case "facts":
      return [
        h(
          "dl.r-list",
          {},
          ...block.pairs.map(([name, value]) =>
            h("div", {}, h("dt", {}, visible(name)), " ", h("dd", {}, visible(value))),
          ),
        ),
      ];
    case "notice":
      return [
        h(
          `div.r-msg.r-${block.tone}`,
          { role: "note" },
          h("p", {}, visible(block.text)),
          !!block.hint && h("p.r-hint", {}, visible(block.hint)),
        ),
      ];
    case "media":
      return [drawMedia(block)];
    case "chart":
      return drawChart(block);
    case "section":
      return [
        inner(
          h("div.r-sec", {}, h("p.r-label", {}, h("strong", {}, visible(block.title)))),
          block.blocks,
          host,
        ),
      ];
    case "fold":
      return [
        h(
          "details.r-fold",
          { open: block.open },
          h("summary", {}, ...summaryOf(block)),
          inner(h("div.r-in"), block.blocks, host),
        ),
      ];
    case "toolbar":
      return block.blocks.length ? [drawToolbar(block, host)] : [];
    default:
      return more.get(block.type)?.(block as never, host);
  }
}

export const summaryOf = (fold: Fold): Child[] => [
  ...badges(fold.badges.slice(0, 1)),
  " ",
  h("span.r-what", {}, ...inline(fold.title)),
  " ",
  ...badges(fold.badges.slice(1)),
  !!fold.aside && [" ", h("span.r-aside", {}, visible(fold.aside))],
];

function drawCode(code: Code): HTMLElement {
  const text = h("pre", {}, visible(code.text));
  const label = code.label && h("p.r-label", {}, visible(code.label));
  return h(
    "div.r-group.r-code",
    {},
    label,
    text,
    ...note(code.more),
    copyButton(() => text.textContent ?? "", code.label),
  );
}

function drawCommands(commands: Commands, host?: Host): HTMLElement {
  const insert = host?.insertCell;
  const lines = commands.lines.map((line): Child => {
    const text = visible(line);
    const buttons = [copyButton(() => text, text), insert && insertButton(text, (code) => insert(code))];
    return [h("span.r-line", {}, h("code", {}, text), ...buttons), " "];
  });
  return h("div.r-cmd", {}, h("span.r-label", {}, visible(commands.label)), " ", ...lines);
}

function drawTable(grid: Grid): HTMLElement[] {
  const [more] = note(grid.more);
  const said = h("span", { hidden: true }, " · the rows above are sorted among themselves");
  more?.append(said);
  return [drawStaticTable(grid, (sorted) => (said.hidden = !sorted)), ...(more ? [more] : [])];
}

function drawLines(block: Lines): HTMLElement {
  const width = String(block.first + block.lines.length - 1).length;
  const lines = block.lines.map((line, place) => [
    h("span.r-no", {}, String(block.first + place).padStart(width)),
    `  ${visible(line)}\n`,
  ]);
  return h(
    "pre.r-lines",
    { tabindex: 0, role: "region", "aria-label": visible(block.label || "lines") },
    ...lines,
  );
}

function drawNode(node: TreeNode, levels: number): HTMLElement {
  const key = node.key !== null && [h("span.r-key", {}, visible(node.key)), ": "];
  const text = visible(node.text);
  if (!node.children.length) return h("div", {}, key, h(`span.r-${node.kind}`, {}, text));
  const children = node.children.map((child) => drawNode(child, levels - 1));
  return h("details", { open: levels > 0 }, h("summary", {}, key, h("span.r-quiet", {}, text)), ...children);
}

// Formats that hold no markup and no script; blocks of other types are not made, and would not be drawn.
const DRAWN = /^image\/(png|jpeg|gif|webp)$/;
const PLAYED = /^audio\/(wav|mpeg|ogg|flac|mp4)$/;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** An image, or a sound with controls; its data stands in the address, so that nothing is loaded. */
function drawMedia(media: Media): HTMLElement {
  const drawn = DRAWN.test(media.mime);
  if (!(drawn || PLAYED.test(media.mime)) || !BASE64.test(media.data))
    throw new Error("neither image nor sound");
  const src = `data:${media.mime};base64,${media.data}`;
  const label = visible(media.alt);
  const shown = drawn
    ? h("img", { src, alt: label, width: media.width, height: media.height })
    : h("audio", { src, controls: true, preload: "metadata", "aria-label": label });
  return h("figure.r-media", {}, shown, !!media.caption && h("figcaption", {}, visible(media.caption)));
}

/** A chart: its picture, an image, in which no script runs and from which nothing is loaded, over its figures. */
const drawChart = (chart: Chart): HTMLElement[] => [
  chart.mime
    ? h(
        "figure.r-picture",
        {},
        h("img", { src: `data:${chart.mime};base64,${chart.data}`, alt: visible(chart.words) }),
      )
    : h("p", {}, visible(chart.words)),
  h("details.r-fold", {}, h("summary", {}, "As a table"), h("div.r-in", {}, ...drawTable(chart.table))),
];

function drawDiff(diff: Diff): HTMLElement[] {
  const classes: Record<string, string> = { "+": "r-add", "-": "r-del", "@": "r-at" };
  const lines = diff.lines.map((line) =>
    h(
      "span",
      { class: classes[line.sign] },
      `${line.sign.replace("@", "").padEnd(2)}${visible(line.text)}\n`,
    ),
  );
  const box = h(
    "div.r-diff",
    {},
    h("p.r-label", {}, h("code", {}, visible(diff.path)), " ", visible(diff.summary)),
  );
  append(box, lines.length ? h("pre", {}, ...lines) : note(diff.more));
  return [box, ...(lines.length ? note(diff.more) : [])];
}
