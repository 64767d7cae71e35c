// A view as elements: the heading, the facts and the blocks, in the shape of the HTML that Python makes.
import type { Block, View } from "../../protocol";
import type { Host } from "../../sources/source";
import { fill, h, visible } from "../dom/h";
import { showBlocks } from "./blocks";
import { badges } from "./text";

/** @param host offers what the page around can do: "insert cell" beside ready lines */
export function drawView(view: View, host?: Host): HTMLElement {
  const element = h(
    "div.reyn-view",
    { role: "group" },
    h("div.r-head", {}, h("div.r-top"), h("div.r-facts")),
    h("div.r-body"),
  );
  fillView(element, view, host);
  return element;
}

/** Puts a state of the object into the element that `drawView` made; see `redraw`. */
export function fillView(element: HTMLElement, view: View, host?: Host): void {
  const label = [...visible(`${view.kind}: ${view.title}`)].slice(0, 120).join("");
  if (element.getAttribute("aria-label") !== label) element.setAttribute("aria-label", label);
  const [head, body] = element.children as unknown as [Element, Element];
  const [top, facts] = head.children as unknown as [HTMLElement, HTMLElement];
  const title = h("span.r-title", { role: "heading", "aria-level": 3 }, h("strong", {}, visible(view.title)));
  same(top, [title, " ", ...badges(list(view.badges))]);
  same(facts, [list(view.facts).map(visible).join(" · ")]);
  facts.hidden = !facts.firstChild?.textContent;
  showBlocks(body, list<Block>(view.blocks), host);
}

const list = <T>(value: readonly T[]): readonly T[] => (Array.isArray(value) ? value : []);

/** Fills an element unless it holds just this: a selection in it survives. */
function same(element: HTMLElement, children: Parameters<typeof h>[2][]): void {
  const wanted = h("div", {}, ...children);
  if (!wanted.isEqualNode(h("div", {}, ...[...element.cloneNode(true).childNodes])))
    fill(element, ...[...wanted.childNodes]);
}
