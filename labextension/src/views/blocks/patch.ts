// Draws the blocks of a view again where they changed; what only ever draws one state of a view does without it.
//
// Invariant: elements that show what they showed stay the very elements they are.
import type { Block, Fold } from "../../protocol";
import type { Host } from "../../sources/source";
import { fill, visible } from "../dom/h";
import { preserveState } from "../dom/preserve-state";
import { drawBlock, showWith, summaryOf } from "./blocks";
import { copySorting } from "./static-table";

export { showBlocks } from "./blocks";
/** Shows another state of the object in the element that `drawView` made: only what differs is touched. */
export { fillView as redraw } from "./view";

interface Piece {
  block: Block;
  json: string;
  nodes: HTMLElement[];
}

const drawnPieces = new WeakMap<Element, Piece[]>();

/**
 * Puts blocks at the end of a box. Those that it shows already stay the very elements they are, so that selection,
 * focus and open folds survive; a box belongs to one list of blocks.
 */
function patchBlocks(box: Element, blocks: readonly Block[], host?: Host): void {
  const before = drawnPieces.get(box) ?? [];
  const now = blocks.map((block) => ({ block: block ?? {}, json: JSON.stringify(block) }));
  const shorter = Math.min(before.length, now.length);
  let head = 0;
  let tail = 0;
  while (head < shorter && before[head]!.json === now[head]!.json) head += 1;
  while (tail < shorter - head && before.at(-1 - tail)!.json === now.at(-1 - tail)!.json) tail += 1;
  const end = before[before.length - tail]?.nodes[0] ?? null;
  const changed = now.slice(head, now.length - tail).map(({ block, json }, place): Piece => {
    const old = head + place < before.length - tail ? before[head + place]! : null;
    if (old && tryPatch(old, block, host)) return { block, json, nodes: old.nodes };
    const nodes = drawBlock(block, host);
    if (!old) for (const node of nodes) box.insertBefore(node, end);
    else replace(old, block, nodes);
    return { block, json, nodes };
  });
  for (const gone of before.slice(head + changed.length, before.length - tail))
    gone.nodes.forEach((node) => node.remove());
  drawnPieces.set(box, [...before.slice(0, head), ...changed, ...before.slice(before.length - tail)]);
}

function replace(old: Piece, block: Block, nodes: HTMLElement[]): void {
  const restore = old.block.type === block.type ? preserveState(old.nodes) : null;
  old.nodes[0]?.before(...nodes);
  if (old.nodes[0] && nodes[0]) copySorting(nodes[0], old.nodes[0]);
  old.nodes.forEach((node) => node.remove());
  restore?.(nodes);
}

/** Changes what is drawn into another block of its kind, where that is possible without drawing it anew. */
function tryPatch(old: Piece, block: Block, host?: Host): boolean {
  try {
    return patch(old, block, host);
  } catch {
    return false; // malformed: drawing it anew says so
  }
}

function patch(old: Piece, block: Block, host?: Host): boolean {
  const before = old.block;
  const element = old.nodes[0];
  if (!element || before.type !== block.type) return false;
  if (block.type === "fold" && before.type === "fold") {
    const fold = element as HTMLDetailsElement;
    // A fold that the person opened or closed stays so.
    if (fold.open === before.open) fold.open = block.open;
    const [summary, inner] = fold.children;
    if (heading(before) !== heading(block)) fill(summary!, ...summaryOf(block));
    patchBlocks(inner!, block.blocks, host);
    return true;
  }
  if (block.type === "section" && before.type === "section" && block.title === before.title) {
    patchBlocks(element, block.blocks, host);
    return true;
  }
  if (
    block.type === "code" &&
    before.type === "code" &&
    block.label === before.label &&
    block.more === before.more
  ) {
    const text = element.querySelector("pre")?.firstChild;
    const shown = visible(block.text); // of the whole: what joins two signs may come apart from the first
    if (!(text instanceof Text) || !shown.startsWith(text.data)) return false;
    text.appendData(shown.slice(text.data.length));
    return true;
  }
  return false;
}

const heading = (fold: Fold): string => JSON.stringify([fold.title, fold.badges, fold.aside]);

showWith(patchBlocks);
