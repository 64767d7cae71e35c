// Small buttons beside code: copy it, put it into a new cell.
import { h } from "./h";
import { visible } from "./text";

/** Says something to screen readers, from a view's own status line. */
export function say(inside: Element, text: string): void {
  const view = inside.closest(".reyn-view");
  let line = view?.querySelector(":scope > .r-said");
  if (view && !line) view.append((line = h("span.r-said", { role: "status" })));
  // A status line is read out when it changes after it is there.
  setTimeout(() => line && (line.textContent = text), 50);
}

export async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Pages without a secure origin have no clipboard but through a selection.
    const box = h("textarea", { style: "position:fixed;opacity:0" });
    const focused = document.activeElement;
    box.value = text;
    document.body.append(box);
    box.select();
    const done = document.execCommand("copy");
    box.remove();
    if (focused instanceof HTMLElement) focused.focus();
    if (!done) throw new Error("the browser does not allow copying");
  }
}

export function copyButton(text: () => string, what = ""): HTMLButtonElement {
  const button = h(
    "button.r-button.r-copy",
    {
      type: "button",
      "aria-label": `Copy ${what}`.trim(),
      onclick: () =>
        void copy(text()).then(
          () => told("Copied"),
          () => told("Not copied"),
        ),
    },
    "Copy",
  );
  const told = (word: string): void => {
    button.textContent = word;
    say(button, word);
    setTimeout(() => (button.textContent = "Copy"), 1500);
  };
  return button;
}

export const insertButton = (code: string, insert: (code: string) => void): HTMLButtonElement =>
  h(
    "button.r-button.r-copy",
    { type: "button", "aria-label": visible(`Insert cell: ${code}`), onclick: () => insert(code) },
    "Insert cell",
  );
