// The categories of a catalog as buttons, of which one may be pressed; its sentence stands below them.
import type { CatalogCategory } from "../protocol";
import { fill, focusedNear, h, unique } from "./h";
import { visible } from "./text";

export interface Categories {
  readonly chips: HTMLElement;
  readonly sentence: HTMLElement;
  /** The one that is pressed; "" for all. */
  readonly chosen: string;
  show(all: readonly CatalogCategory[], total: number): void;
}

/** @param changed is called when a person has pressed another one */
export function categoryChips(changed: () => void): Categories {
  const sentence = h("p.r-more", { id: unique("sentence") });
  const chips = h("div.r-chips", { role: "group", "aria-label": "Categories" });
  let known: readonly CatalogCategory[] = [];
  let count = 0;
  let chosen = "";
  let names: string[] = []; // of the chips

  const chip = (name: string, label: string, number: number, title: string): HTMLElement =>
    h(
      "button.r-button",
      {
        type: "button",
        title: title || null,
        "aria-pressed": String(name === chosen),
        "aria-describedby": name === chosen ? sentence.id : null,
        onclick: () => press(name),
      },
      label,
      h("span.r-quiet", {}, ` ${number.toLocaleString("en-US")}`),
    );

  function draw(): void {
    if (!known.some((each) => each.name === chosen)) chosen = "";
    const focused = names[[...chips.children].indexOf(focusedNear(chips)!)];
    names = ["", ...known.map((each) => each.name)];
    fill(
      chips,
      chip("", "all", count, ""),
      known.map((each) => chip(each.name, visible(each.name), each.count, visible(each.sentence))),
    );
    if (focused !== undefined)
      (chips.children[Math.max(0, names.indexOf(focused))] as HTMLElement).focus({ preventScroll: true });
    sentence.textContent = visible(known.find((each) => each.name === chosen)?.sentence ?? "");
  }

  function press(name: string): void {
    chosen = name === chosen ? "" : name;
    draw();
    chips.querySelector<HTMLElement>("[aria-pressed=true]")?.focus();
    changed();
  }

  return {
    chips,
    sentence,
    get chosen() {
      return chosen;
    },
    show(all, total) {
      [known, count] = [all, total];
      draw();
    },
  };
}
