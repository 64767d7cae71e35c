// A small dialog beside an element of a grid: a column's filter, a whole cell, code.
//
// Invariant: one is open at a time; Escape and a click elsewhere close it, and the keyboard goes back to where it was.
import { fill, h, unique } from "./h";
import { ignored } from "./patience";

export class Popover {
  readonly element = h("div.r-pop", {
    role: "dialog",
    hidden: true,
    onkeydown: (event: KeyboardEvent) => {
      event.stopPropagation();
      if (event.key === "Escape") this.close();
    },
  });
  private back: (focus: boolean) => void = ignored;

  /**
   * @param around the positioned element that it lies in
   * @param home puts the keyboard where it belongs when what had it is gone
   * @param closed is called each time it closes
   */
  constructor(
    private around: () => HTMLElement,
    private home: () => void,
    private closed: () => void,
  ) {}

  open(title: string, beside: HTMLElement, parts: HTMLElement[], focus: HTMLElement | null): void {
    this.close();
    const { element } = this;
    const name = unique("pop");
    element.setAttribute("aria-labelledby", name);
    const close = h(
      "button.r-button.r-copy",
      { type: "button", "aria-label": "Close", onclick: () => this.close() },
      "✕",
    );
    fill(element, h("div.r-bar", {}, h("strong", { id: name }, title), close), parts);
    element.hidden = false;
    this.lay(beside);
    const outside = (event: Event): void => {
      if (!event.composedPath().includes(element)) this.close(false);
    };
    document.addEventListener("pointerdown", outside);
    const before = document.activeElement;
    this.back = (focused) => {
      document.removeEventListener("pointerdown", outside);
      if (!focused) return;
      if (before instanceof HTMLElement && before.isConnected && before !== document.body)
        before.focus({ preventScroll: true });
      else this.home();
    };
    focus?.focus({ preventScroll: true });
  }

  close(focus = true): void {
    if (this.element.hidden) return;
    this.closed();
    this.element.hidden = true;
    const { back } = this;
    this.back = ignored;
    back(focus);
  }

  private lay(beside: HTMLElement): void {
    const { element } = this;
    const around = this.around().getBoundingClientRect();
    const at = beside.getBoundingClientRect();
    const within = (wanted: number, room: number): string => `${Math.max(4, Math.min(wanted, room - 4))}px`;
    element.style.left = within(at.left - around.left, around.width - element.offsetWidth);
    element.style.top = within(at.bottom - around.top + 2, around.height - element.offsetHeight);
  }
}
