// Two runs side by side: totals, the calls aligned, what differs between the chosen two, the answers.
//
// Invariant: what differs is said in words on every line; colour repeats it.
import type { LiveDiff, Operations } from "../../protocol";
import type { ViewFunction } from "../../sources/source";
import { drawBlocks } from "../blocks/blocks";
import { badges } from "../blocks/text";
import { drawView } from "../blocks/view";
import { type Child, fill, h, visible } from "../dom/h";
import { listbox } from "../dom/listbox";
import { requestProgress } from "../request-progress";
import { latestRequest, errorCard } from "../requests";
import { drawSide } from "./steps";

type RunComparison = Operations["trace.diff"]["answer"];
type Part = Operations["trace.pair"]["answer"];
type Pair = RunComparison["pairs"][number];

export const diffViewer: ViewFunction<LiveDiff> = (element, model, source, before) => {
  const comparisonRequest = latestRequest();
  const pairRequest = latestRequest();
  const { a, b } = model;
  const progress = requestProgress(source, before ?? element);
  const place = h("div"); // of the snapshot, and then of what is compared
  const detail = h("div.r-sec", {
    role: "region",
    tabindex: 0,
    "aria-label": "The chosen calls, side by side",
  });
  let settleTimer = 0;
  const list = listbox<Pair>({
    label: "Calls",
    height: 28,
    most: 280,
    draw: drawPair,
    text: (pair) => `${pair.a} ${pair.b} ${pair.same}`,
    onselect(pair, person) {
      window.clearTimeout(settleTimer);
      settleTimer = window.setTimeout(() => showPair(pair), person ? 60 : 0);
    },
  });
  progress.box.classList.add("reyn-view", "r-alone");
  fill(place, before);
  element.append(progress.box, place);

  function showPair(pair: Pair): void {
    pairRequest.start(
      (options) => source.request("trace.pair", { a, b, id: pair.id }, options),
      (part) => fill(detail, ...drawBlocks(part.differing, source.host), columns(part.sides)),
      (error) =>
        fill(
          detail,
          errorCard(error, () => showPair(pair)),
        ),
    );
  }
  function columns(sides: Part["sides"]): Child {
    return h(
      "div.r-two",
      {},
      ...sides.map((side) => {
        const box = h("section.r-side", { tabindex: 0, "aria-label": visible(side.title) });
        drawSide(box, side, source);
        return box;
      }),
    );
  }
  function show(answer: RunComparison): void {
    const card = drawView(answer.view, source.host);
    card.classList.add("r-difference");
    if (answer.pairs.length)
      card.append(
        h(
          "div.r-body.r-part",
          {},
          h("p.r-label", {}, h("strong", {}, "Calls")),
          list.element,
          !!answer.more && h("p.r-more", {}, visible(answer.more)),
          detail,
        ),
      );
    card.append(
      h(
        "div.r-body.r-part",
        {},
        h("p.r-label", {}, h("strong", {}, "Answers")),
        ...drawBlocks(answer.answers, source.host),
        columns(answer.sides),
      ),
    );
    fill(place, card);
    list.show(answer.pairs);
    const first = answer.pairs.find((pair) => pair.tone === "warn") ?? answer.pairs[0];
    if (first) list.select(first.id);
  }
  function open(): void {
    comparisonRequest.start(
      ({ signal }) => progress.request("trace.diff", { a, b }, signal),
      show,
      () => undefined, // it stands beside the snapshot
    );
  }
  open();
  return () => {
    window.clearTimeout(settleTimer);
    comparisonRequest.stop();
    progress.dispose();
    pairRequest.stop();
    list.dispose();
    element.replaceChildren();
  };
};

const drawPair = (pair: Pair): Child[] => [
  h("span.r-no", {}, visible(pair.step)),
  " ",
  h("code.r-what", {}, visible(pair.a)),
  " ",
  h("code.r-what", {}, visible(pair.b)),
  " ",
  h("span", {}, ...badges([{ text: pair.same, tone: pair.tone }])),
];
