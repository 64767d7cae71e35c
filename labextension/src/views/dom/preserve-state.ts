// What a person did to a part of a view outlives its being drawn again: folds opened, the place scrolled to, focus.

import { focusedNear } from "./h";

const SCROLLED = "pre, .r-scroll, .r-tree";
const FOCUSED = "a, button, summary, [tabindex]";

/** Notes the state of some elements; the function it returns puts it onto those that took their place. */
export function preserveState(before: readonly Element[]): (after: readonly Element[]) => void {
  const open = new Map(
    before.flatMap((each) => all(each, "details")).map((each) => [path(each), each.hasAttribute("open")]),
  );
  const places = before
    .flatMap((each) => all(each, SCROLLED))
    .map((each) => [each.scrollTop, each.scrollLeft]);
  const active = before[0] && focusedNear(before[0]);
  const focus = active ? before.flatMap((each) => all(each, FOCUSED)).indexOf(active) : -1;
  return (after) => {
    for (const each of after.flatMap((one) => all(one, "details")))
      each.toggleAttribute("open", open.get(path(each)) ?? each.hasAttribute("open"));
    after
      .flatMap((each) => all(each, SCROLLED))
      .forEach((each, place) => {
        const [top, left] = places[place] ?? [0, 0];
        if (top) each.scrollTop = top;
        if (left) each.scrollLeft = left;
      });
    if (focus >= 0)
      (after.flatMap((each) => all(each, FOCUSED))[focus] as HTMLElement | undefined)?.focus({
        preventScroll: true,
      });
  };
}

const all = (element: Element, selector: string): Element[] => [
  ...(element.matches(selector) ? [element] : []),
  ...element.querySelectorAll(selector),
];

/** Where a fold stands among the folds around it, by the keys of a tree, else by its place. */
function path(fold: Element): string {
  const outer = fold.parentElement?.closest("details");
  const key = fold.querySelector(":scope > summary > .r-key")?.textContent;
  return `${outer ? path(outer) : ""}/${key ?? [...(fold.parentElement?.children ?? [])].indexOf(fold)}`;
}
