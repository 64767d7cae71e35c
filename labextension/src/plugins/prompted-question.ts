// A question of a run in a cell, in the card of the run: a press types the answer's key at the prompt that waits.
//
// Invariants: a question is shown only while a prompt of the very same words waits in the output area of its card, so
// that none that somebody saved is ever asked; what is typed is what a person would type there, and nothing else. The
// prompt itself is out of sight as long as the card stands for it, and no longer.
import type { PromptChoice, PromptedQuestion, QuestionLine } from "../protocol";
import { type ApprovalCard, approvalCard, leaveQuestion } from "../views/approval";
import { RequestError } from "../sources/source";
import { waitForPerson } from "./waiting";

const HIDDEN = "reyn-prompt";
const OUTCOME_STAYS = 1500; // ms

interface Page {
  lines: readonly QuestionLine[];
  choices: readonly PromptChoice[];
}

/** What had the focus before a prompt of JupyterLab's took it. */
const focusedBefore = new WeakMap<EventTarget, Element | null>();
document.addEventListener(
  "focusin",
  (event) => {
    const target = event.target as Element;
    if (target.matches(".jp-Stdin-input"))
      focusedBefore.set(target, event.relatedTarget instanceof Element ? event.relatedTarget : null);
  },
  true,
);

/** The outputs of a cell, of which the echo of what was typed is taken out again. */
export interface Outputs {
  readonly length: number;
  get(index: number): { toJSON(): { output_type: string; name?: unknown } };
  add(output: { output_type: string; data: object; metadata: object }): unknown;
  remove?(index: number): void;
}

export class PromptedCard {
  private question: PromptedQuestion | null = null;
  private card: ApprovalCard | null = null;
  private shown = 0; // lines
  private observer: MutationObserver | null = null;
  private resolveRest: ((page: Page) => void) | null = null;
  private notWaiting: () => void = () => undefined;
  private answered = new WeakSet<HTMLInputElement>(); // prompts that go

  /** @param outputs of the cell in whose output the card stands */
  constructor(
    private node: HTMLElement,
    private outputs: () => Outputs | null,
  ) {}

  /** The card asks this now; null once it asks nothing. */
  update(question: PromptedQuestion | null): void {
    if (question?.id !== this.question?.id) this.close();
    this.question = question;
    if (!question) return;
    this.observe();
    this.place();
  }

  dispose(): void {
    this.close();
  }

  private close(): void {
    this.observer?.disconnect();
    this.observer = null;
    this.question = null;
    this.card?.close();
  }

  /** The card was answered; what became of it stays to be read for a moment. */
  private retire(): void {
    const { card } = this;
    this.card = this.resolveRest = null;
    this.notWaiting();
    if (!card) return;
    if (card.element.contains(document.activeElement)) leaveQuestion(this.node);
    setTimeout(() => card.element.remove(), OUTCOME_STAYS);
  }

  /** The prompt comes by another way than the card, before it or after it. */
  private observe(): void {
    const area = this.node.closest(".jp-OutputArea");
    if (this.observer || !area) return;
    this.observer = new MutationObserver(() => this.place());
    this.observer.observe(area, { childList: true, subtree: true });
  }

  /** The input of the prompt that waits for this question's answer. */
  private get input(): HTMLInputElement | null {
    const inputs = this.node.closest(".jp-OutputArea")?.querySelectorAll<HTMLInputElement>(".jp-Stdin-input");
    const words = this.question?.prompt;
    const waits = (each: HTMLInputElement): boolean =>
      !this.answered.has(each) && each.closest("pre")?.textContent === words;
    return [...(inputs ?? [])].find(waits) ?? null;
  }

  private place(): void {
    const { input, question } = this;
    const view = this.node.querySelector<HTMLElement>(".reyn-view");
    if (!input || !question || !view) return;
    const had = document.activeElement === input;
    const isNew = !this.card;
    if (isNew) this.draw(question);
    else if (this.resolveRest && question.lines.length > this.shown) this.showRest(question);
    if (this.card && this.card.element.parentElement !== view) view.append(this.card.element);
    input.closest(".jp-OutputArea-stdin-item")!.classList.add(HIDDEN);
    if (had) this.takeFocus(input, isNew);
  }

  private draw(question: PromptedQuestion): void {
    const rest = async (): Promise<Page> => {
      this.type(question.more);
      return new Promise((resolve) => (this.resolveRest = resolve));
    };
    const answer = async (choice: PromptChoice): Promise<void> => this.type(choice.key);
    this.card = approvalCard(
      question,
      { rest, answer },
      () => this.retire(),
      () => leaveQuestion(this.node),
    );
    this.shown = question.lines.length;
    this.notWaiting = waitForPerson(question.id);
  }

  private showRest(question: PromptedQuestion): void {
    this.resolveRest?.({ lines: question.lines.slice(this.shown), choices: question.choices });
    this.resolveRest = null;
    this.shown = question.lines.length;
  }

  /** JupyterLab gives a prompt the focus; whoever typed elsewhere goes on there. */
  private takeFocus(input: HTMLInputElement, isNew: boolean): void {
    const before = focusedBefore.get(input);
    const cell = this.node.closest(".jp-Cell");
    if (before instanceof HTMLElement && before.isConnected && !cell?.contains(before)) before.focus();
    else if (isNew) this.card?.focus();
  }

  private type(key: string): void {
    const { input } = this;
    if (!input)
      throw new RequestError("gone", "Nothing waits for this answer any more.", "Run the cell again.");
    this.answered.add(input);
    input.value = key;
    input.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true }));
    setTimeout(() => this.dropEcho());
  }

  /** The prompt and what was typed there would stand below the card, which says it already. */
  private dropEcho(): void {
    const outputs = this.outputs();
    const last = outputs ? outputs.length - 1 : -1;
    if (last < 0) return;
    const { output_type, name } = outputs!.get(last).toJSON();
    if (output_type !== "stream" || name !== "stdin" || !outputs!.remove) return;
    // JupyterLab adds what comes next on a stream to the last output, as long as nothing else came between.
    outputs!.add({ output_type: "display_data", data: { "text/plain": "" }, metadata: {} });
    outputs!.remove(last + 1);
    outputs!.remove(last);
  }
}
