// Untrusted text on its way into the page: hidden characters shown, inline runs, badges.
//
// Invariant: what `visible` returns is what Python's `visible` returns; a link leads nowhere but to http and https.
import type { Badge, Span } from "../protocol";
import { type Child, h } from "./h";

// Controls but newline and tab, bidirectional marks, invisible letters, lone surrogates, tags: whatever draws nothing
// itself or changes how its neighbours are drawn. The zero-width joiners stay: emoji and Persian need them.
const HIDDEN =
  /[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

/** Text with every hidden character shown: ESC as ␛, an override as ⟨U+202E⟩. Newlines and tabs stay. */
export const visible = (text: unknown): string =>
  String(text ?? "").replace(HIDDEN, (letter) => {
    const code = letter.codePointAt(0)!;
    if (code < 32) return String.fromCharCode(0x2400 + code);
    return code === 127 ? "␡" : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });

const TAGS = { strong: "strong", emphasis: "em", strike: "s", code: "code" } as const;

export const badges = (all: readonly Badge[]): Child[] =>
  all.flatMap((each, place) => [place > 0 && " ", h(`span.r-badge.r-${each.tone}`, {}, visible(each.text))]);

/** A run of inline text. */
export const inline = (spans: readonly Span[]): Child[] => spans.map(run);

function run(span: Span): Child {
  let drawn: Child[] = visible(span.text)
    .split("\n")
    .flatMap((line, place) => (place ? [h("br"), line] : [line]));
  for (const mark of [...span.marks].reverse()) {
    const tag = mark === "muted" ? "span.r-quiet" : TAGS[mark];
    if (tag) drawn = [h(tag as "span", {}, ...drawn)];
  }
  if (!/^https?:\/\//i.test(span.href)) return drawn;
  return h(
    "a",
    { href: visible(span.href), rel: "noopener noreferrer nofollow", target: "_blank" },
    ...drawn,
  );
}
