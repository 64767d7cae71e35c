// A question about consent: what a call would do, and the answers to it. Every word of both comes with the question.
//
// Invariants: no key and no click allows anything by accident. Only a press of an allowing button does, at least half a
// second after the button appeared; Escape and everything unclear means no, or leaves it open. An answer that is kept
// has no button before all lines were shown.
import type { AnswerChoice, ApprovalAsked, QuestionLine } from "../protocol";
import type { Source } from "../sources/source";
import { button as plainButton, fill, formatCount, h, visible } from "./dom/h";
import { errorCard } from "./requests";

const OUTCOME_STAYS = 1500; // ms for which the outcome stays to be read

/** ms in which a press was meant for something else */
export const MISPRESS = 500;

const CLASSES: Record<QuestionLine["kind"], string> = {
  effect: "r-own",
  note: "r-own r-quiet",
  text: "r-bar",
  added: "r-bar r-add",
  removed: "r-bar r-del",
  place: "r-bar r-at",
};

/** Adds lines; what goes on with the line above is put at its end, so that the page wraps it as one. */
function drawLines(into: HTMLElement, lines: readonly QuestionLine[]): void {
  for (const { kind, text, continued } of lines) {
    const above = into.lastElementChild;
    if (continued && above) above.lastChild!.before(visible(text));
    else into.append(h("span", { class: CLASSES[kind] }, text, "\n"));
  }
}

/**
 * What is asked: its targets, then the change or the arguments. A button brings the lines that are not there yet.
 *
 * @param offered called with the choices when further lines have changed what is offered
 */
export function approvalBody(
  event: ApprovalAsked,
  source: Pick<Source, "request">,
  offered: (choices: readonly AnswerChoice[]) => void,
): HTMLElement {
  const lines = h("pre", { tabindex: 0, role: "region", "aria-label": event.region });
  drawLines(lines, event.lines);
  const rest = h("div.r-cmd");
  const problem = h("div");
  let shown = event.lines.length;
  const offerRest = (): void => {
    const left = event.total - shown;
    const words = `Show the rest: ${formatCount(left)} more ${left === 1 ? "line" : "lines"}`;
    fill(rest, left > 0 && plainButton(words, showRest));
  };
  const showRest = (): void => {
    fill(rest, "Reading …");
    fill(problem);
    source.request("approval.page", { id: event.id, start: shown }).then(
      (page) => {
        drawLines(lines, page.lines);
        shown += page.lines.length;
        offerRest();
        lines.focus({ preventScroll: true });
        offered(page.choices);
      },
      (error) => {
        offerRest();
        fill(problem, errorCard(error));
      },
    );
  };
  offerRest();
  return h("div.r-diff.r-question", {}, h("p", {}, h("strong", {}, event.title)), lines, rest, problem);
}

/** The answer that everything unclear means. */
export const safeChoice = (choices: readonly AnswerChoice[]): AnswerChoice =>
  choices.find((each) => !each.allows)!;

/** @param settled called once, when the question is answered here or elsewhere */
export function approvalCard(event: ApprovalAsked, source: Source, settled: () => void): HTMLElement {
  let offeredAt = performance.now();
  let choices = event.choices;
  const outcome = h("p.r-quiet", { role: "status" });
  const buttons = choices.map(({ answer, label, hint }) => {
    const pressed = (): void => answerQuestion(choices.find((each) => each.answer === answer)!);
    return h("button.r-button", { type: "button", title: hint, onclick: pressed }, label);
  });
  const offer = (now: readonly AnswerChoice[]): void => {
    offeredAt = performance.now();
    choices = [...now];
    buttons.forEach((each, at) => (each.hidden = choices[at]!.secret === null));
  };
  const safe = safeChoice(choices);
  buttons[choices.indexOf(safe)]!.classList.add("r-safe");
  offer(choices);
  const card = h(
    "div.reyn-view.r-approval",
    {
      role: "group",
      "aria-label": `Consent for ${event.action}`,
      onkeydown: (key: KeyboardEvent) => {
        if (key.key === "Escape") answerQuestion(safe);
        else if (key.key !== "Enter" && key.key !== " ") return;
        key.stopPropagation(); // the notebook would run the cell
      },
    },
    h("div.r-body", {}, approvalBody(event, source, offer), h("div.r-cmd", {}, ...buttons), outcome),
  );
  let open = true;
  const disableButtons = (held: boolean): void => buttons.forEach((each) => (each.disabled = held));
  const close = (text: string): void => {
    if (!open) return;
    open = false;
    unheard();
    disableButtons(true);
    fill(outcome, text);
    settled();
  };
  const unheard = source.subscribe((heard) => {
    if (heard.name === "settled" && heard.id === event.id) close(given?.outcome ?? "Settled elsewhere.");
  });
  let given: AnswerChoice | null = null;
  function answerQuestion(choice: AnswerChoice): void {
    const { answer, secret } = choice;
    if (!open || given || secret === null) return;
    if (choice.allows && performance.now() - offeredAt < MISPRESS) return;
    given = choice;
    disableButtons(true);
    fill(outcome, "Answering …");
    source.request("approval.answer", { id: event.id, answer, secret }).then(
      () => close(choice.outcome),
      (error) => {
        if (!open) return;
        given = null;
        disableButtons(false);
        fill(outcome, errorCard(error));
      },
    );
  }
  return card;
}

/** Shows every open question in `element`, for hosts that have no dialogs. */
export function approvals(element: HTMLElement, source: Source): () => void {
  const cards = new Map<string, HTMLElement>();
  let closed = false;
  const add = (event: ApprovalAsked): void => {
    if (closed || cards.has(event.id)) return;
    const card = approvalCard(event, source, () => setTimeout(() => drop(event.id), OUTCOME_STAYS));
    cards.set(event.id, card);
    element.append(card);
    // Whoever is typing, or is elsewhere, is not interrupted; the safe answer is at hand for everybody else.
    const active = document.activeElement;
    const near = !active || active === document.body || element.parentElement?.contains(active);
    if (near && !active?.matches("input, textarea, select"))
      card.querySelector<HTMLElement>(".r-safe")?.focus({ preventScroll: true });
  };
  const drop = (id: string): void => {
    cards.get(id)?.remove();
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
    element.replaceChildren();
  };
}
