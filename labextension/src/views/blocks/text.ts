// Untrusted text on its way into the page: inline runs, badges.
//
// Invariant: a link leads nowhere but to http and https.
import type { Badge, Span } from "../../protocol";
import { type Child, h, visible } from "../dom/h";

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
