// A question about consent: what a call would do, and the answers to it.
//
// Invariants: no key and no click allows anything by accident. Only a press of one of the two allowing buttons, at
// least half a second after the question appeared, does; Escape and everything unclear means no, or leaves it open.
import type { ApprovalAsked } from "../protocol";
import type { Source } from "../sources/source";
import { fill, h, visible } from "./dom/h";
import { errorCard } from "./requests";

type Answer = "once" | "always" | "deny";

const MISPRESS = 500; // ms in which a press was meant for something else
const OUTCOME_STAYS = 1500; // ms for which the outcome stays to be read
const OUTCOMES: Record<Answer, string> = {
  once: "Allowed once.",
  always: "Allowed, always.",
  deny: "Denied.",
};

/** What is asked: the action, its targets, a bounded diff. */
export function approvalBody(event: ApprovalAsked): HTMLElement {
  const classes: Record<string, string> = { "+": "r-add", "-": "r-del", "@": "r-at" };
  const lines = visible(event.text).trimEnd().split("\n");
  const action = visible(event.action);
  const title = lines[0]!.startsWith(action) ? lines.shift()! : `${action} asks for consent to:`;
  // A diff stands behind a rule, so that no line of a file looks like a word of ours; its two heads are no change.
  const sign = /^ *(?:│ )?(?!\+\+\+ |--- )([-+@])/;
  const tinted = lines.map((line) => h("span", { class: classes[sign.exec(line)?.[1] ?? ""] }, `${line}\n`));
  return h(
    "div.r-diff",
    {},
    h("p", {}, h("strong", {}, title)),
    h("pre", { tabindex: 0, role: "region", "aria-label": "What it would do" }, ...tinted),
  );
}

/** @param settled called once, when the question is answered here or elsewhere */
export function approvalCard(event: ApprovalAsked, source: Source, settled: () => void): HTMLElement {
  const shown = performance.now();
  const outcome = h("p.r-quiet", { role: "status" });
  const button = (answer: Answer, ...words: string[]): HTMLButtonElement =>
    h("button.r-button", { type: "button", onclick: () => answerQuestion(answer) }, ...words);
  const deny = button("deny", "Deny");
  const buttons = [
    button("once", "Allow once"),
    ...(event.pattern === null ? [] : [button("always", "Always for ", visible(event.pattern))]),
    deny,
  ];
  const card = h(
    "div.reyn-view.r-approval",
    {
      role: "group",
      "aria-label": visible(`Consent for ${event.action}`),
      onkeydown: (key: KeyboardEvent) => {
        if (key.key === "Escape") answerQuestion("deny");
        else if (key.key !== "Enter" && key.key !== " ") return;
        key.stopPropagation(); // the notebook would run the cell
      },
    },
    h("div.r-body", {}, approvalBody(event), h("div.r-cmd", {}, ...buttons), outcome),
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
    if (heard.name === "settled" && heard.id === event.id)
      close(givenAnswer ? OUTCOMES[givenAnswer] : "Settled elsewhere.");
  });
  let givenAnswer: Answer | null = null;
  function answerQuestion(answer: Answer): void {
    if (!open || givenAnswer || (answer !== "deny" && performance.now() - shown < MISPRESS)) return;
    givenAnswer = answer;
    disableButtons(true);
    fill(outcome, "Answering …");
    source.request("approval.answer", { id: event.id, answer }).then(
      () => close(OUTCOMES[answer]),
      (error) => {
        if (!open) return;
        givenAnswer = null;
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
      card.querySelector<HTMLElement>(".r-cmd button:last-child")?.focus({ preventScroll: true });
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
