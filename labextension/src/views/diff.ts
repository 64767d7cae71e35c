// Two runs side by side: totals, the calls aligned, what differs between the chosen two, the answers.
//
// Invariant: what differs is said in words on every line; colour repeats it.
import type { LiveDiff } from "../protocol";
import type { Operations, ViewFunction } from "../sources/source";
import { newest, problem } from "./asking";
import { choiceList } from "./choice";
import { type Child, fill, h } from "./h";
import { asker } from "./patience";
import { drawSide } from "./trace-steps";
import { badges, drawBlocks, drawView, visible } from "./view";

type Compared = Operations["trace.diff"]["answer"];
type Part = Operations["trace.pair"]["answer"];
type Pair = Compared["pairs"][number];

export const diffViewer: ViewFunction<LiveDiff> = (element, model, source, before) => {
  const comparing = newest();
  const looking = newest();
  const { a, b } = model;
  const asking = asker(source, before ?? element);
  const place = h("div"); // of the snapshot, and then of what is compared
  const detail = h("div.r-sec", {
    role: "region",
    tabindex: 0,
    "aria-label": "The chosen calls, side by side",
  });
  let settling = 0;
  const list = choiceList<Pair>({
    label: "Calls",
    height: 28,
    most: 280,
    draw: drawPair,
    text: (pair) => `${pair.a} ${pair.b} ${pair.same}`,
    onchoose(pair, person) {
      window.clearTimeout(settling);
      settling = window.setTimeout(() => look(pair), person ? 60 : 0);
    },
  });
  asking.box.classList.add("reyn-view", "r-alone");
  fill(place, before);
  element.append(asking.box, place);

  function look(pair: Pair): void {
    looking.ask(
      (options) => source.request("trace.pair", { a, b, id: pair.id }, options),
      (part) => fill(detail, ...drawBlocks(part.differing, source.host), columns(part.sides)),
      (error) =>
        fill(
          detail,
          problem(error, () => look(pair)),
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
  function show(answer: Compared): void {
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
    if (first) list.choose(first.id);
  }
  function open(): void {
    comparing.ask(
      ({ signal }) => asking.ask("trace.diff", { a, b }, signal),
      show,
      () => undefined, // it stands beside the snapshot
    );
  }
  open();
  return () => {
    window.clearTimeout(settling);
    comparing.stop();
    asking.dispose();
    looking.stop();
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
