// The buttons under an answer: each opens what it holds below the row, or puts its code into a new cell.
//
// Invariant: the elements are those of the HTML that Python makes, so that every button shows what it holds without a
// kernel and without cells; at most one of a row is open.
import type { Toolbar, ToolbarItem } from "../../protocol";
import type { Host } from "../../sources/source";
import { announce } from "../dom/copy";
import { button, h, visible } from "../dom/h";
import { drawBlocks } from "./blocks";

export function drawToolbar(toolbar: Toolbar, host?: Host): HTMLElement {
  const shown = toolbar.blocks.filter((item) => !item.chart || host?.chart);
  const items = shown.map((item) => drawItem(item, host));
  for (const item of items)
    item.addEventListener("toggle", () => {
      if (item.open) for (const other of items) if (other !== item) other.open = false;
    });
  return h("div.r-tools", {}, ...items);
}

function drawItem(item: ToolbarItem, host?: Host): HTMLDetailsElement {
  const label = h("summary", {}, visible(item.label));
  const inside = h("div.r-in", {}, ...drawBlocks(item.blocks, host));
  const element = h("details.r-tool", {}, label, inside) as HTMLDetailsElement;
  const code = item.inserts && codeOf(item);
  const insert = host?.insertCell;
  if (code && insert)
    label.addEventListener("click", (event) => {
      event.preventDefault();
      insert(code);
      announce(label, "Inserted below");
      label.textContent = "Inserted below";
      setTimeout(() => (label.textContent = visible(item.label)), 1500);
    });
  else if (item.chart)
    element.addEventListener("toggle", () => element.open && host?.chart?.(inside), { once: true });
  else if (item.blob && host) goLive(element, inside, item, host);
  return element;
}

/** The code that an item inserts; null where not all of it is here. */
function codeOf(item: ToolbarItem): string | null {
  const [first] = item.blocks;
  return first?.type === "code" && !first.more ? first.text : null;
}

/** Shows the blob itself once its button is pressed: below it, or in a tab beside the notebook. */
function goLive(element: HTMLDetailsElement, inside: HTMLElement, item: ToolbarItem, host: Host): void {
  const live = { type: "blob", blob: item.blob, selector: null } as const;
  const { inspect, open } = host;
  if (inspect)
    element.addEventListener("toggle", () => element.open && inspect(inside, live), { once: true });
  else if (open) inside.append(button("Open in a tab", () => open(live, item.label)));
}
