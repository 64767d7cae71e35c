// A question about consent: what a call would do, and the answers to it. Every word of both comes with the question.
//
// Invariants: no key and no click allows anything by accident. Only a press of an allowing button does, at least half a
// second after the button appeared; Escape decides nothing and leaves the question open. An answer that is kept has no
// button before all lines were shown.
import type { AnswerChoice, ApprovalAsked, PromptChoice, QuestionLine } from "../protocol";
import type { Source } from "../sources/source";
import { button as plainButton, fill, focusedNear, formatCount, h, visible } from "./dom/h";
import { errorCard } from "./requests";

const OUTCOME_STAYS = 1500; // ms for which the outcome stays to be read
const LATER = "Not decided. The run waits for you.";

/** ms in which a press was meant for something else */
const MISPRESS = 500;

const CLASSES: Record<QuestionLine["kind"], string> = {
  effect: "r-own",
  note: "r-own r-quiet",
  text: "r-bar",
  added: "r-bar r-add",
  removed: "r-bar r-del",
  place: "r-bar r-at",
};

/** An answer that is offered now. */
export type Choice = Pick<PromptChoice, "answer" | "label" | "hint" | "outcome" | "allows">;

/** What is asked, as far as it was shown. */
export interface Question<C extends Choice> {
  readonly id: string;
  readonly action: string;
  readonly title: string;
  readonly region: string;
  readonly lines: readonly QuestionLine[];
  readonly total: number;
  readonly choices: readonly C[];
}

/** Where the further lines of a question come from, and where an answer goes. */
export interface Asker<C extends Choice> {
  /** The lines from `start` on, and the answers that are offered once they are shown. */
  rest(start: number): Promise<{ lines: readonly QuestionLine[]; choices: readonly C[] }>;
  answer(choice: C): Promise<unknown>;
}

/** A question on the page. */
export interface ApprovalCard {
  readonly element: HTMLElement;
  /** It was answered, here or elsewhere. */
  close(): void;
  /** Puts the focus where nothing is allowed by the next key. */
  focus(): void;
}

/** Adds lines; what goes on with the line above is put at its end, so that the page wraps it as one. */
function drawLines(into: HTMLElement, lines: readonly QuestionLine[]): void {
  for (const { kind, text, continued } of lines) {
    const above = into.lastElementChild;
    if (continued && above) above.lastChild!.before(visible(text));
    else into.append(h("span", { class: CLASSES[kind] }, text, "\n"));
  }
}

/** Its targets, then the change or the arguments. A button brings the lines that are not there yet. */
function drawDetail<C extends Choice>(
  question: Question<C>,
  asker: Asker<C>,
  offer: (choices: readonly C[]) => void,
): HTMLElement {
  const lines = h("pre", { tabindex: 0, role: "region", "aria-label": question.region });
  drawLines(lines, question.lines);
  const rest = h("div.r-cmd");
  const problem = h("div");
  let shown = question.lines.length;
  const offerRest = (): void => {
    const left = question.total - shown;
    const words = `Show the rest: ${formatCount(left)} more ${left === 1 ? "line" : "lines"}`;
    fill(rest, left > 0 && plainButton(words, showRest));
  };
  const showRest = (): void => {
    fill(rest, "Reading …");
    fill(problem);
    asker.rest(shown).then(
      (page) => {
        drawLines(lines, page.lines);
        shown += page.lines.length;
        offerRest();
        lines.focus({ preventScroll: true });
        offer(page.choices);
      },
      (error) => {
        offerRest();
        fill(problem, errorCard(error));
      },
    );
  };
  offerRest();
  return h("div.r-diff.r-question", {}, h("p", {}, h("strong", {}, question.title)), lines, rest, problem);
}

/**
 * @param closed called once, when the question is answered here or elsewhere
 * @param leave puts the focus out of the card, for a person who decides later
 */
export function approvalCard<C extends Choice>(
  question: Question<C>,
  asker: Asker<C>,
  closed: () => void,
  leave: () => void,
): ApprovalCard {
  let offeredAt = 0;
  let open = true;
  let given: C | null = null;
  const outcome = h("p.r-quiet", { role: "status" });
  const buttons = h("div.r-cmd");
  const offer = (choices: readonly C[]): void => {
    offeredAt = performance.now();
    fill(buttons, ...choices.map(drawButton));
  };
  const drawButton = (choice: C): HTMLElement => {
    const name = choice.allows ? "button.r-button" : "button.r-button.r-safe";
    return h(name, { type: "button", title: choice.hint, onclick: () => give(choice) }, choice.label);
  };
  const disable = (held: boolean): void =>
    buttons.querySelectorAll("button").forEach((each) => (each.disabled = held));
  const close = (): void => {
    if (!open) return;
    open = false;
    disable(true);
    fill(outcome, given?.outcome ?? "Settled elsewhere.");
    closed();
  };
  const give = (choice: C): void => {
    if (!open || given) return;
    if (choice.allows && performance.now() - offeredAt < MISPRESS) return;
    given = choice;
    disable(true);
    fill(outcome, "Answering …");
    asker.answer(choice).then(close, (error) => {
      if (!open) return;
      given = null;
      disable(false);
      fill(outcome, errorCard(error));
    });
  };
  const onkeydown = (key: KeyboardEvent): void => {
    if (!["Escape", "Enter", " "].includes(key.key)) return;
    key.stopPropagation(); // the notebook would run the cell
    if (key.key !== "Escape" || !open || given) return;
    fill(outcome, LATER);
    leave();
  };
  const element = h(
    "div.reyn-view.r-approval",
    {
      role: "group",
      "aria-label": `Consent for ${question.action}`,
      "data-question": question.id,
      onkeydown,
    },
    h("div.r-body", {}, drawDetail(question, asker, offer), buttons, outcome),
  );
  offer(question.choices);
  const focus = (): void => {
    offeredAt = performance.now();
    element.querySelector<HTMLElement>(".r-safe")?.focus({ preventScroll: true });
  };
  return { element, close, focus };
}

type Kept = AnswerChoice & { secret: string };

const offered = (choices: readonly AnswerChoice[]): Kept[] =>
  choices.filter((each): each is Kept => each.secret !== null);

/** A question that hears when it is answered elsewhere. */
export interface ConnectionCard extends ApprovalCard {
  /** It hears nothing more, and stays open. */
  dispose(): void;
}

/** A question whose answers go over a connection, which was sent a secret for each. */
export function connectionCard(
  event: ApprovalAsked,
  source: Source,
  closed: () => void,
  leave: () => void,
): ConnectionCard {
  const { id } = event;
  const asker: Asker<Kept> = {
    rest: async (start) => {
      const page = await source.request("approval.page", { id, start });
      return { lines: page.lines, choices: offered(page.choices) };
    },
    answer: ({ answer, secret }) => source.request("approval.answer", { id, answer, secret }),
  };
  const card = approvalCard({ ...event, choices: offered(event.choices) }, asker, closed, leave);
  const dispose = source.subscribe((heard) => {
    if (heard.name !== "settled" || heard.id !== id) return;
    dispose();
    card.close();
  });
  return { ...card, dispose };
}

/** Leaves a question: the focus goes to what is around its view. */
export function leaveQuestion(element: HTMLElement): void {
  const around = element.parentElement?.closest<HTMLElement>("[tabindex]");
  if (around) around.focus({ preventScroll: true });
  else (focusedNear(element) as HTMLElement | null)?.blur();
}

/**
 * Shows open questions in `element`, and those that come.
 *
 * @param takes whether it shows a question; every one where it is left out
 * @param shown called with each card once it is on the page
 */
export function approvals(
  element: HTMLElement,
  source: Source,
  takes: (event: ApprovalAsked) => boolean = () => true,
  shown: (card: HTMLElement) => void = () => undefined,
): () => void {
  const cards = new Map<string, ConnectionCard>();
  let closed = false;
  const add = (event: ApprovalAsked): void => {
    if (closed || cards.has(event.id) || !takes(event)) return;
    const card = connectionCard(
      event,
      source,
      () => setTimeout(() => drop(event.id), OUTCOME_STAYS),
      () => leaveQuestion(element),
    );
    cards.set(event.id, card);
    element.append(card.element);
    // Whoever is typing, or is elsewhere, is not interrupted; the safe answer is at hand for everybody else.
    const active = focusedNear(element) ?? document.activeElement;
    const near = !active || active === document.body || element.parentElement?.contains(active);
    if (near && !active?.matches("input, textarea, select")) card.focus();
    shown(card.element);
  };
  const drop = (id: string): void => {
    cards.get(id)?.element.remove();
    cards.get(id)?.dispose();
    cards.delete(id);
  };
  const unheard = source.subscribe((event) => {
    if (event.name === "approval") add(event);
  });
  source.request("approval.pending", {}).then(
    ({ questions }) => questions.forEach(add),
    () => undefined, // those that come are shown all the same
  );
  return () => {
    closed = true;
    unheard();
    for (const card of cards.values()) card.dispose();
    element.replaceChildren();
  };
}
