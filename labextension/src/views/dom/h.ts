// Makes elements. Text only ever goes in as text nodes, and attributes only by name, so nothing that a tool or a model
// wrote can become markup; and whatever would hide in it or turn its neighbours round is shown.

export type Child = Node | string | number | null | undefined | false | readonly Child[];
type Handler = (event: never) => void;
export type Attributes = Record<string, string | number | boolean | null | undefined | Handler>;

// What draws nothing itself or changes how its neighbours are drawn, by properties of Unicode as far as they go: the
// exceptions are line feed, tab and the signs that Arabic and others draw around a number, the additions letters and
// symbols that are drawn empty. `support/sanitize.py` marks the same ones.
const KEPT = String.raw`[\n\t\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u{110bd}\u{110cd}]`;
const CLASS = String.raw`[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800\u{13441}\u{13442}\u{16fe4}\u{1d159}]`;
const ANY = `(?!${KEPT})${CLASS}`;
// Where one has its proper work: one, after a character that is seen, in an emoji, a keycap, a word, an ideograph.
const IDEOGRAPH = String.raw`[\u3400-\u9fff\uf900-\ufaff\u{20000}-\u{3ffff}][\u{e0100}-\u{e01ef}]`;
const JOINED = String.raw`(?!${ANY})[^\0-\xa8](?:\ufe0f\u200d?|[\ufe0e\u200c\u200d])`;
const HIDDEN = new RegExp(ANY, "u");
const PROPER_OR_HIDDEN = new RegExp(String.raw`(${IDEOGRAPH}|${JOINED}|[#*0-9]\ufe0f\u20e3)|${ANY}`, "gu");

/** Text with every hidden character shown: ESC as ␛, an override as ⟨U+202E⟩. Newlines and tabs stay. */
export const visible = (text: unknown): string => {
  const given = String(text ?? "");
  if (!HIDDEN.test(given)) return given;
  return given.replace(PROPER_OR_HIDDEN, (found, proper?: string) => {
    if (proper) return proper;
    const code = found.codePointAt(0)!;
    if (code < 32) return String.fromCharCode(0x2400 + code);
    return code === 127 ? "␡" : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
};

const SEEN = /^(title|placeholder|aria-label)$/; // attributes that are shown or read out

/**
 * An element: `h("button.r-button", { onclick: run, "aria-label": "Run" }, "Run")`.
 *
 * A name may carry classes. An attribute that is false, null or undefined is left out, true is set empty; `on…` takes
 * a listener. There is no way to set markup.
 */
export function h<K extends keyof HTMLElementTagNameMap>(
  name: K | `${K}.${string}`,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const [tag, ...classes] = name.split(".") as [K, ...string[]];
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(key.slice(2), value as EventListener);
    else element.setAttribute(key, value === true ? "" : SEEN.test(key) ? visible(value) : String(value));
  }
  append(element, children);
  return element;
}

export function append(element: Element, children: Child | readonly Child[]): void {
  if (Array.isArray(children)) for (const child of children) append(element, child as Child);
  else if (children instanceof Node) element.append(children);
  else if (children !== null && children !== undefined && children !== false)
    element.append(visible(children));
}

/** Takes out what is in an element and puts these in. */
export function fill(element: Element, ...children: Child[]): void {
  element.replaceChildren();
  append(element, children);
}

/** A count with its thousands apart. */
export const formatCount = (count: number): string => count.toLocaleString("en-US");

/** A button with a text. */
export const button = (
  text: string,
  onclick: (event: Event) => void,
  more: Attributes = {},
): HTMLButtonElement => h("button.r-button", { type: "button", onclick, ...more }, text);

/** What has the focus, in the page or the shadow tree that a node stands in. */
export const focusedNear = (node: Node): Element | null =>
  (node.getRootNode() as Partial<DocumentOrShadowRoot>).activeElement ?? null;

let lastId = 0;
/** An id that no other element of the page has. */
export const unique = (prefix: string): string => `reyn-${prefix}-${(lastId += 1)}`;

/** Calls at most once a frame, with the last arguments. `cancel` drops a call that waits. */
export function framed<A extends unknown[]>(
  call: (...given: A) => void,
): ((...given: A) => void) & { cancel(): void } {
  let waiting = 0;
  let last: A;
  const later = (...given: A): void => {
    last = given;
    waiting ||= requestAnimationFrame(() => {
      waiting = 0;
      call(...last);
    });
  };
  return Object.assign(later, {
    cancel() {
      cancelAnimationFrame(waiting);
      waiting = 0;
    },
  });
}
