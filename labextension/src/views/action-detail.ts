// One action, opened: what it does, the form that calls it, and what the last call gave.
//
// Invariant: a call under way is stopped by its own button or when the view ends, by nothing else; a call that fails
// leaves the form as it was.
import type { ActionAnswer, ActionShown } from "../protocol";
import type { LiveBlob } from "../sources/messages";
import { RequestError, type Source, type ViewFunction } from "../sources/source";
import type { ActionRow } from "./action-table";
import { copy, say } from "./copy";
import { drawForm, type FormView } from "./form";
import { fill, h } from "./h";
import { type StoredButton, storedButton } from "./stored";
import { visible } from "./text";
import { drawView } from "./view";

export interface Detail {
  element: HTMLElement;
  readonly running: boolean;
  /** It is in sight now; asks for the action where that failed before. */
  show(): void;
  dispose(): void;
}

export interface Around {
  inspect: ViewFunction<LiveBlob> | undefined;
  close(): void;
  /** The action's row changed. */
  renewed(row: ActionRow): void;
}

export function actionDetail(name: string, source: Source, around: Around): Detail {
  const ended = new AbortController();
  let calling: AbortController | null = null;
  let asked = false;
  let inspected: StoredButton | null = null;
  const close = h(
    "button.r-button.r-close",
    { type: "button", "aria-label": "Close", onclick: around.close },
    "✕",
  );
  const head = h("div");
  const below = h("div.r-calls");
  const element = h("div.r-one", { "aria-busy": "true" }, close, head, below);

  async function load(): Promise<void> {
    asked = true;
    try {
      const shown = await source.request("catalog.action", { name }, { signal: ended.signal });
      fill(head, drawView(shown.view, source.host));
      fill(below, caller(shown));
    } catch (error) {
      if (ended.signal.aborted) return;
      asked = false;
      fill(head, failure(error));
    }
    element.removeAttribute("aria-busy");
  }

  function caller(shown: ActionShown): HTMLElement[] {
    const form = drawForm(shown.form);
    const invoke = h(
      "button.r-button",
      {
        type: "submit",
        onclick: (event: Event) => {
          if (!calling) return;
          event.preventDefault(); // by the time that a press takes effect, it may be the submit button again
          calling.abort();
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
          if (!calling) void call(form, invoke, line, result);
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
          { type: "button", onclick: () => void write(form, line, copied) },
          "Copy as %reyn",
        ),
        insertCell &&
          h(
            "button.r-button",
            { type: "button", onclick: () => void write(form, line, insertCell) },
            "Insert cell",
          ),
      ),
      line,
    );
    const copied = async (command: string): Promise<void> => {
      await copy(command);
      say(element, "Copied");
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
    const typed = form.typed();
    if (!typed) return;
    const { signal } = (calling = new AbortController());
    button.textContent = "Stop";
    button.type = "button"; // Enter in a field presses the form's submit button, and would stop the call
    inspected?.dispose();
    fill(result, h("div.r-msg.r-muted", { role: "status" }, "Running …"));
    try {
      const answer = await source.request("catalog.invoke", { name, typed }, { signal });
      around.renewed(answer.row);
      if (answer.command) spell(line, answer.command);
      form.mark(answer.errors);
      fill(result, stored(answer), drawView(answer.view, source.host));
      say(result, answer.ok ? "It is done." : "It failed.");
    } catch (error) {
      if (ended.signal.aborted) return;
      fill(result, signal.aborted ? h("div.r-msg.r-warn", { role: "status" }, "Stopped.") : failure(error));
    } finally {
      calling = null;
      button.textContent = "Invoke";
      button.type = "submit";
    }
  }

  async function write(
    form: FormView,
    line: HTMLElement,
    use: (command: string) => void | Promise<void>,
  ): Promise<void> {
    const typed = form.typed();
    if (!typed) return;
    try {
      const request = { name, typed };
      const { command, errors } = await source.request("catalog.command", request, { signal: ended.signal });
      form.mark(errors);
      if (!command) return;
      spell(line, command);
      await use(command);
    } catch (error) {
      if (ended.signal.aborted) return;
      line.hidden = false;
      line.append(failure(error));
    }
  }

  function spell(line: HTMLElement, command: string): void {
    line.hidden = false;
    fill(line, h("code", {}, visible(command)));
  }

  function stored({ live, view }: ActionAnswer): HTMLElement | null {
    inspected = live && storedButton("Open the stored result", live, name, source, around.inspect, view);
    return inspected?.element ?? null;
  }

  return {
    element,
    get running() {
      return calling !== null;
    },
    show() {
      if (!asked) void load();
    },
    dispose() {
      ended.abort();
      calling?.abort();
      inspected?.dispose();
    },
  };
}

function failure(error: unknown): HTMLElement {
  const [message, hint] = error instanceof RequestError ? [error.message, error.hint] : [String(error), ""];
  return h("div.r-msg.r-bad", { role: "alert" }, visible(message), hint && h("p.r-hint", {}, visible(hint)));
}
