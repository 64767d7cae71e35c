// Requests that may take long: a line says how far each is and stops it; one that failed says why and can be repeated.
//
// Invariant: the line of a request is there only while somebody waits for it, or has to decide whether to try again.
// Requests that fail for the same reason share a line: a kernel that is gone says so once, however far one scrolls.
import type { Operations } from "../protocol";
import { errorSentence, RequestError, type Source } from "../sources/source";
import { fill, h, visible } from "./dom/h";
import { errorCard } from "./requests";

const DELAY = 250; // ms before a line appears

export interface RequestProgress {
  /** Where the lines stand. */
  readonly box: HTMLElement;
  /** The answer; rejects when the request was stopped or given up, in which case there is nothing left to say. */
  request<O extends keyof Operations>(
    op: O,
    args: Operations[O]["args"],
    signal?: AbortSignal,
  ): Promise<Operations[O]["answer"]>;
  dispose(): void;
}

interface Failure {
  line: HTMLElement;
  /** Settles each request that failed so: true to try again. */
  waiting: Set<(again: boolean) => void>;
}

/** @param source is asked; @param around gets aria-busy while a request takes long */
export function requestProgress(source: Source, around: HTMLElement): RequestProgress {
  const lines = h("div.r-requests", { "aria-live": "polite" });
  const all = new AbortController();
  const failures = new Map<string, Failure>(); // by what they say
  let busy = 0;

  async function requestOnce<O extends keyof Operations>(
    op: O,
    args: Operations[O]["args"],
    signal: AbortSignal,
  ) {
    if (!["live", "busy", "connecting"].includes(source.state))
      throw new RequestError("gone", source.reason || "The kernel is gone.", "Run the cell again to go on.");
    const [stop, release] = anySignal(signal, all.signal);
    const bar = h("progress", { "aria-label": "Progress" });
    const note = h("span", {}, "Waiting for the kernel …");
    const line = h(
      "div.r-line",
      {},
      bar,
      note,
      h("button.r-button", { type: "button", onclick: () => stop.abort() }, "Cancel"),
    );
    const timer = setTimeout(() => {
      lines.append(line);
      busy += 1;
      around.ariaBusy = "true";
    }, DELAY);
    try {
      return await source.request(op, args, {
        signal: stop.signal,
        progress(done, total, what) {
          bar.max = total || 1;
          bar.value = done;
          fill(note, visible(what));
        },
      });
    } finally {
      release();
      clearTimeout(timer);
      if (line.parentNode && !(busy -= 1)) around.ariaBusy = null;
      line.remove();
    }
  }

  /** Waits for a decision: true to try again. */
  const askWhetherAgain = (error: RequestError, signal: AbortSignal): Promise<boolean> =>
    new Promise((decide) => {
      const [stop, release] = anySignal(signal, all.signal);
      const said = errorSentence(error);
      const failure = failures.get(said) ?? showFailure(said, error);
      const settle = (again: boolean): void => {
        release();
        failure.waiting.delete(settle);
        if (!failure.waiting.size) {
          failures.delete(said);
          failure.line.remove();
        }
        decide(again);
      };
      failure.waiting.add(settle);
      if (stop.signal.aborted) settle(false);
      else stop.signal.addEventListener("abort", () => settle(false));
    });

  function showFailure(said: string, error: RequestError): Failure {
    const waiting: Failure["waiting"] = new Set();
    const settleAll = (again: boolean) => () => [...waiting].forEach((settle) => settle(again));
    const line = source.host.name === "page" ? notInPageCard(error) : errorCard(error, settleAll(true));
    line.append(" ", h("button.r-button", { type: "button", onclick: settleAll(false) }, "Dismiss"));
    lines.append(line);
    const failure = { line, waiting };
    failures.set(said, failure);
    return failure;
  }

  return {
    box: lines,
    async request(op, args, signal = all.signal) {
      for (;;) {
        try {
          return await requestOnce(op, args, signal);
        } catch (error) {
          if (!(error instanceof RequestError) || !(await askWhetherAgain(error, signal))) throw error;
        }
      }
    },
    dispose: () => all.abort(),
  };
}

/** In a saved page, what it does not hold is no failure, and trying again is of no use. */
const notInPageCard = (error: RequestError): HTMLElement =>
  h("div.r-msg.r-muted", { role: "status" }, `${error.message} ${error.hint}`);

/** A controller that aborts with any of these signals, and what lets go of them. */
function anySignal(...signals: AbortSignal[]): [AbortController, () => void] {
  const made = new AbortController();
  const stop = (): void => made.abort();
  for (const each of signals) {
    if (each.aborted) stop();
    each.addEventListener("abort", stop);
  }
  return [made, () => signals.forEach((each) => each.removeEventListener("abort", stop))];
}

/** What a promise that was stopped or given up does to the view: nothing. */
export const ignore = (): void => undefined;
