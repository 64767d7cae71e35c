// A small dialog beside an element of a grid: a column's filter, a whole cell, code.
//
// Invariant: one is open at a time; Escape and a click elsewhere close it, and the keyboard goes back to where it was.
import { fill, focusedNear, h, unique } from "../dom/h";
import { ignore } from "../request-progress";

export class Popover {
  readonly element = h("div.r-pop", {
    role: "dialog",
    hidden: true,
    onkeydown: (event: KeyboardEvent) => {
      event.stopPropagation();
      if (event.key === "Escape") this.close();
    },
  });
  private restoreFocus: (focus: boolean) => void = ignore;

  /**
   * @param around the positioned element that it lies in
   * @param focusHome puts the keyboard where it belongs when what had it is gone
   * @param onclose is called each time it closes
   */
  constructor(
    private around: () => HTMLElement,
    private focusHome: () => void,
    private onclose: () => void,
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
    this.position(beside);
    const outside = (event: Event): void => {
      if (!event.composedPath().includes(element)) this.close(false);
    };
    document.addEventListener("pointerdown", outside);
    const before = focusedNear(element);
    this.restoreFocus = (focused) => {
      document.removeEventListener("pointerdown", outside);
      if (!focused) return;
      if (before instanceof HTMLElement && before.isConnected && before !== document.body)
        before.focus({ preventScroll: true });
      else this.focusHome();
    };
    focus?.focus({ preventScroll: true });
  }

  close(focus = true): void {
    if (this.element.hidden) return;
    this.onclose();
    this.element.hidden = true;
    const { restoreFocus } = this;
    this.restoreFocus = ignore;
    restoreFocus(focus);
  }

  private position(beside: HTMLElement): void {
    const { element } = this;
    const around = this.around().getBoundingClientRect();
    const at = beside.getBoundingClientRect();
    const within = (wanted: number, room: number): string => `${Math.max(4, Math.min(wanted, room - 4))}px`;
    element.style.left = within(at.left - around.left, around.width - element.offsetWidth);
    element.style.top = within(at.bottom - around.top + 2, around.height - element.offsetHeight);
  }
}
