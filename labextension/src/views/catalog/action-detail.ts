// One action, opened: what it does, the form that calls it, and what the last call gave.
//
// Invariant: a call under way is stopped by its own button or when the view ends, by nothing else; a call that fails
// leaves the form as it was.
import { errorCard } from "../requests";
import type { ActionAnswer, OpenedAction, LiveBlob } from "../../protocol";
import { type Source, type ViewFunction } from "../../sources/source";
import { type BlobButton, blobButton } from "../blob/blob-button";
import { drawView } from "../blocks/view";
import { copy, announce } from "../dom/copy";
import { fill, h, visible } from "../dom/h";
import type { ActionRow } from "./action-table";
import { drawForm, type FormView } from "./form";

export interface ActionDetail {
  element: HTMLElement;
  readonly running: boolean;
  /** It is in sight now; asks for the action where that failed before. */
  show(): void;
  dispose(): void;
}

export interface DetailHost {
  inspect: ViewFunction<LiveBlob> | undefined;
  close(): void;
  /** The action's row changed. */
  updateRow(row: ActionRow): void;
}

export function actionDetail(name: string, source: Source, around: DetailHost): ActionDetail {
  const ended = new AbortController();
  let currentCall: AbortController | null = null;
  let isRequested = false;
  let currentBlobButton: BlobButton | null = null;
  const close = h(
    "button.r-button.r-close",
    { type: "button", "aria-label": "Close", onclick: around.close },
    "✕",
  );
  const head = h("div");
  const below = h("div.r-calls");
  const element = h("div.r-one", { "aria-busy": "true" }, close, head, below);

  async function load(): Promise<void> {
    isRequested = true;
    try {
      const shown = await source.request("catalog.action", { name }, { signal: ended.signal });
      fill(head, drawView(shown.view, source.host));
      fill(below, caller(shown));
    } catch (error) {
      if (ended.signal.aborted) return;
      isRequested = false;
      fill(head, errorCard(error));
    }
    element.removeAttribute("aria-busy");
  }

  function caller(shown: OpenedAction): HTMLElement[] {
    const form = drawForm(shown.form);
    const invoke = h(
      "button.r-button",
      {
        type: "submit",
        onclick: (event: Event) => {
          if (!currentCall) return;
          event.preventDefault(); // by the time that a press takes effect, it may be the submit button again
          currentCall.abort();
        },
      },
      "Invoke",
    );
    const line = h("div.r-cmd", { hidden: true });
    const result = h("div.r-result");
    const { insertCell } = source.host;
    const element = h(
      "form.r-form",
      {
        novalidate: true,
        "aria-label": `Arguments of ${visible(name)}`,
        onsubmit: (event: Event) => {
          event.preventDefault();
          if (!currentCall) void call(form, invoke, line, result);
        },
        onkeydown: (event: KeyboardEvent) => {
          if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
          event.preventDefault();
          element.requestSubmit();
        },
      },
      form.element,
      h(
        "div.r-top",
        {},
        invoke,
        h(
          "button.r-button",
          { type: "button", onclick: () => void writeCommand(form, line, copyCommand) },
          "Copy as %reyn",
        ),
        insertCell &&
          h(
            "button.r-button",
            { type: "button", onclick: () => void writeCommand(form, line, insertCell) },
            "Insert cell",
          ),
      ),
      line,
    );
    const copyCommand = async (command: string): Promise<void> => {
      await copy(command);
      announce(element, "Copied");
      line.append(h("span.r-quiet", {}, "copied"));
    };
    return [element, result];
  }

  async function call(
    form: FormView,
    button: HTMLButtonElement,
    line: HTMLElement,
    result: HTMLElement,
  ): Promise<void> {
    const typed = form.readValues();
    if (!typed) return;
    const { signal } = (currentCall = new AbortController());
    button.textContent = "Stop";
    button.type = "button"; // Enter in a field presses the form's submit button, and would stop the call
    currentBlobButton?.dispose();
    fill(result, h("div.r-msg.r-muted", { role: "status" }, "Running …"));
    try {
      const answer = await source.request("catalog.invoke", { name, typed }, { signal });
      around.updateRow(answer.row);
      if (answer.command) showCommand(line, answer.command);
      form.showFaults(answer.errors);
      fill(result, drawBlobButton(answer), drawView(answer.view, source.host));
      announce(result, answer.ok ? "It is done." : "It failed.");
    } catch (error) {
      if (ended.signal.aborted) return;
      fill(result, signal.aborted ? h("div.r-msg.r-warn", { role: "status" }, "Stopped.") : errorCard(error));
    } finally {
      currentCall = null;
      button.textContent = "Invoke";
      button.type = "submit";
    }
  }

  async function writeCommand(
    form: FormView,
    line: HTMLElement,
    use: (command: string) => void | Promise<void>,
  ): Promise<void> {
    const typed = form.readValues();
    if (!typed) return;
    try {
      const request = { name, typed };
      const { command, errors } = await source.request("catalog.command", request, { signal: ended.signal });
      form.showFaults(errors);
      if (!command) return;
      showCommand(line, command);
      await use(command);
    } catch (error) {
      if (ended.signal.aborted) return;
      line.hidden = false;
      line.append(errorCard(error));
    }
  }

  function showCommand(line: HTMLElement, command: string): void {
    line.hidden = false;
    fill(line, h("code", {}, visible(command)));
  }

  function drawBlobButton({ live, view }: ActionAnswer): HTMLElement | null {
    currentBlobButton = live && blobButton("Open the blob", live, name, source, around.inspect, view);
    return currentBlobButton?.element ?? null;
  }

  return {
    element,
    get running() {
      return currentCall !== null;
    },
    show() {
      if (!isRequested) void load();
    },
    dispose() {
      ended.abort();
      currentCall?.abort();
      currentBlobButton?.dispose();
    },
  };
}
