// A button that shows a blob: in a tab of its own where the host has tabs, else below the button.
import type { LiveBlob, View } from "../../protocol";
import type { Source, ViewFunction } from "../../sources/source";
import { button, h } from "../dom/h";

export interface BlobButton {
  readonly element: HTMLElement;
  /** Takes out what is shown below it. */
  dispose(): void;
}

/**
 * @param title of the tab
 * @param inspect shows it below; without tabs and without this there is no button
 * @param saved what is shown of it already
 */
export function blobButton(
  label: string,
  live: LiveBlob,
  title: string,
  source: Source,
  inspect: ViewFunction<LiveBlob> | undefined,
  saved?: View,
): BlobButton | null {
  const { open } = source.host;
  if (!open && !inspect) return null;
  const place = h("div");
  let end: (() => void) | null = null;
  const dispose = (): void => {
    end?.();
    end = null;
    place.replaceChildren();
  };
  const toggle = (): void => {
    if (open) return open(live, title);
    if (end) dispose();
    else end = inspect!(place, live, source, null, saved);
    element.setAttribute("aria-expanded", String(end !== null));
  };
  const element = button(label, toggle);
  if (!open) element.setAttribute("aria-expanded", "false");
  return { element: h("div", {}, h("div.r-top", {}, element), place), dispose };
}
