// The categories of a catalog as buttons, of which one may be pressed; its sentence stands below them.
import type { CatalogCategory } from "../../protocol";
import { fill, focusedNear, formatCount, h, unique, visible } from "../dom/h";

export interface CategoryChips {
  readonly chips: HTMLElement;
  readonly sentence: HTMLElement;
  /** The one that is pressed; "" for all. */
  readonly selected: string;
  show(all: readonly CatalogCategory[], total: number): void;
}

/** @param onselect is called when a person has pressed another one */
export function categoryChips(onselect: () => void): CategoryChips {
  const sentence = h("p.r-more", { id: unique("sentence") });
  const chips = h("div.r-chips", { role: "group", "aria-label": "Categories" });
  let categories: readonly CatalogCategory[] = [];
  let count = 0;
  let selected = "";
  let names: string[] = []; // of the chips

  const chip = (name: string, label: string, number: number, title: string): HTMLElement =>
    h(
      "button.r-button",
      {
        type: "button",
        title: title || null,
        "aria-pressed": String(name === selected),
        "aria-describedby": name === selected ? sentence.id : null,
        onclick: () => select(name),
      },
      label,
      h("span.r-quiet", {}, ` ${formatCount(number)}`),
    );

  function draw(): void {
    if (!categories.some((each) => each.name === selected)) selected = "";
    const focused = names[[...chips.children].indexOf(focusedNear(chips)!)];
    names = ["", ...categories.map((each) => each.name)];
    fill(
      chips,
      chip("", "all", count, ""),
      categories.map((each) => chip(each.name, visible(each.name), each.count, visible(each.sentence))),
    );
    if (focused !== undefined)
      (chips.children[Math.max(0, names.indexOf(focused))] as HTMLElement).focus({ preventScroll: true });
    sentence.textContent = visible(categories.find((each) => each.name === selected)?.sentence ?? "");
  }

  function select(name: string): void {
    selected = name === selected ? "" : name;
    draw();
    chips.querySelector<HTMLElement>("[aria-pressed=true]")?.focus();
    onselect();
  }

  return {
    chips,
    sentence,
    get selected() {
      return selected;
    },
    show(all, total) {
      [categories, count] = [all, total];
      draw();
    },
  };
}
