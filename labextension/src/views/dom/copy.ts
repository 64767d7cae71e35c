// Small buttons beside code: copy it, put it into a new cell.
import { h, visible } from "./h";

/** Says something to screen readers, from a view's own status line. */
export function announce(inside: Element, text: string): void {
  const view = inside.closest(".reyn-view");
  let line = view?.querySelector(":scope > .r-said");
  if (view && !line) view.append((line = h("span.r-said", { role: "status" })));
  // A status line is read out when it changes after it is there.
  setTimeout(() => line && (line.textContent = visible(text)), 50);
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
          () => flashLabel(button, "Copied", "Copy"),
          () => flashLabel(button, "Not copied", "Copy"),
        ),
    },
    "Copy",
  );
  return button;
}

export function insertButton(
  code: string,
  insert: (code: string) => void,
  label = "Insert cell",
): HTMLButtonElement {
  const button = h(
    "button.r-button.r-copy",
    {
      type: "button",
      "aria-label": `${label}: ${code}`,
      onclick: () => {
        insert(code);
        flashLabel(button, "Inserted", label);
      },
    },
    label,
  );
  return button;
}

/** A button says for a moment what it did. */
function flashLabel(button: HTMLElement, word: string, before: string): void {
  button.textContent = word;
  announce(button, word);
  setTimeout(() => (button.textContent = before), 1500);
}
