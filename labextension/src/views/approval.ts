// A question about consent: what a call would do, and the answers to it. Every word of both comes with the question.
//
// Invariants: no key and no click allows anything by accident. Only a press of an allowing button does, at least half a
// second after the button appeared; Escape decides nothing and leaves the question open. An answer that is kept has no
// button before all lines were shown. A question that no answer would reach any more has no buttons, and says why.
import type { AnswerChoice, ApprovalAsked, QuestionLine } from "../protocol";
import type { Source, State } from "../sources/source";
import { button as plainButton, fill, focusedNear, formatCount, h, visible } from "./dom/h";
import { errorCard } from "./requests";

const OUTCOME_STAYS = 1500; // ms for which the outcome stays to be read
const LATER = "Not decided. The run waits for you.";
const ENDED = "The run ended before an answer.";
const KERNEL_ENDED =
  "The kernel ended before an answer. The call did not run, and nothing was changed by it.";
const LINE_LOST = "The connection to the kernel is lost. The question comes back with it.";

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

/** A question on the page. */
export interface ApprovalCard {
  readonly element: HTMLElement;
  /** Whether it can still be answered here. */
  readonly isOpen: boolean;
  /** Puts the focus where nothing is allowed by the next key. */
  focus(): void;
  /** It hears nothing more, and stays open. */
  dispose(): void;
}

type Offered = AnswerChoice & { secret: string };

const offeredOf = (choices: readonly AnswerChoice[]): Offered[] =>
  choices.filter((each): each is Offered => each.secret !== null);

/** Adds lines; what goes on with the line above is put at its end, so that the page wraps it as one. */
function drawLines(into: HTMLElement, lines: readonly QuestionLine[]): void {
  for (const { kind, text, continued } of lines) {
    const above = into.lastElementChild;
    if (continued && above) above.lastChild!.before(visible(text));
    else into.append(h("span", { class: CLASSES[kind] }, text, "\n"));
  }
}

/** Its targets, then the change or the arguments. A button brings the lines that are not there yet. */
function drawDetail(
  question: ApprovalAsked,
  source: Source,
  offer: (choices: readonly AnswerChoice[]) => void,
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
    source.request("approval.page", { id: question.id, start: shown }).then(
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
 * @param closed called once, when the question is settled here or elsewhere, or no answer would reach it any more
 *   (`stays`: what it says then is not to go away by itself)
 * @param leave puts the focus out of the card, for a user who decides later
 */
export function approvalCard(
  question: ApprovalAsked,
  source: Source,
  closed: (stays: boolean) => void,
  leave: () => void,
): ApprovalCard {
  const { id } = question;
  let offeredAt = 0;
  let open = true;
  let given: Offered | null = null;
  const outcome = h("p.r-quiet", { role: "status" });
  const buttons = h("div.r-cmd.r-answers");
  const offer = (choices: readonly AnswerChoice[]): void => {
    offeredAt = performance.now();
    if (open) fill(buttons, ...offeredOf(choices).map(drawButton));
  };
  const drawButton = (choice: Offered): HTMLElement => {
    const name = choice.allows ? "button.r-button" : "button.r-button.r-safe";
    return h(name, { type: "button", title: choice.hint, onclick: () => give(choice) }, choice.label);
  };
  const disable = (held: boolean): void =>
    buttons.querySelectorAll("button").forEach((each) => (each.disabled = held));
  const close = (words: string, stays = false): void => {
    if (!open) return;
    open = false;
    dispose();
    fill(buttons);
    fill(outcome, visible(words));
    closed(stays);
  };
  const give = (choice: Offered): void => {
    if (!open || given) return;
    if (choice.allows && performance.now() - offeredAt < MISPRESS) return;
    given = choice;
    disable(true);
    fill(outcome, "Answering …");
    const { answer, secret } = choice;
    source.request("approval.answer", { id, answer, secret }).then(
      () => close(choice.outcome),
      (error) => {
        if (!open) return;
        given = null;
        disable(false);
        fill(outcome, errorCard(error));
      },
    );
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
      "data-question": id,
      onkeydown,
    },
    h("div.r-body", {}, drawDetail(question, source, offer), buttons, outcome),
  );
  const unheard = source.subscribe((event) => {
    if (event.name !== "settled" || event.id !== id) return;
    const here = given !== null && event.outcome === given.outcome;
    close(here || !event.outcome ? event.outcome || ENDED : `Answered elsewhere: ${event.outcome}`);
  });
  const unwatched = source.watch((state) => {
    if (AWAY.has(state)) close(/connection/.test(source.reason) ? LINE_LOST : KERNEL_ENDED, true);
  });
  const dispose = (): void => {
    unheard();
    unwatched();
  };
  offer(question.choices);
  const focus = (): void => {
    offeredAt = performance.now();
    element.querySelector<HTMLElement>(".r-safe")?.focus({ preventScroll: true });
  };
  return {
    element,
    get isOpen() {
      return open;
    },
    focus,
    dispose,
  };
}

const AWAY: ReadonlySet<State> = new Set(["gone", "missing", "foreign"]);

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
  const cards = new Map<string, ApprovalCard>();
  let closed = false;
  const add = (event: ApprovalAsked): void => {
    if (closed || !takes(event)) return;
    // What is left of a kernel that ended goes; the question of one that was away came back.
    for (const [id, each] of cards)
      if (!each.isOpen && (id === event.id || each.element.dataset.stays)) drop(id);
    if (cards.has(event.id)) return;
    const card = approvalCard(
      event,
      source,
      (stays) => {
        if (stays) card.element.dataset.stays = "yes";
        else setTimeout(() => drop(event.id, card), OUTCOME_STAYS);
      },
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
  const drop = (id: string, only = cards.get(id)): void => {
    only?.element.remove();
    only?.dispose();
    if (cards.get(id) === only) cards.delete(id);
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
