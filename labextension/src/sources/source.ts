// What a view gets its data from, whoever carries the messages.
//
// Invariant: a request settles exactly once: with its answer, with a RequestError, or with an AbortError when its
// signal fires. It survives a busy kernel (it stays queued) and fails when the kernel is gone.
import type {
  ViewEvent,
  LiveBlob,
  LiveCatalog,
  LiveDiff,
  LiveFrame,
  LiveTrace,
  Operations,
  View,
} from "../protocol";

/** The version of the protocol that these views speak; `notebook/serving/protocol.py` holds the same number. */
export const PROTOCOL = 1;

/** What a view may go on with while its kernel lives. */
export type Live = LiveBlob | LiveCatalog | LiveDiff | LiveFrame | LiveTrace;
export type KernelEvent = ViewEvent["event"];

/** Where a source stands. A view shows the snapshot with a caption in every state but "live" and "busy".
 *
 * - connecting: the first answer has not come yet
 * - live: the kernel answers
 * - busy: no answer for 300 ms; requests stay queued
 * - missing: a kernel is there, but the extension is not loaded in it (or is of another version)
 * - foreign: a kernel is there, but the snapshot belongs to another session
 * - gone: the kernel is dead or was never there (an exported page, a reopened notebook)
 */
export type State = "connecting" | "live" | "busy" | "missing" | "foreign" | "gone";

export interface RequestOptions {
  signal?: AbortSignal;
  /** Called with how much of how much is done, and what is being done. */
  progress?: (done: number, total: number, note: string) => void;
}

export class RequestError extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly hint = "",
  ) {
    super(message);
    this.name = "RequestError";
  }

  /** By name: the modules that one page loads apart each carry a class of their own. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return value instanceof Error && value.name === "RequestError";
  }
}

/** An error with its hint, in a sentence or two. */
export function errorSentence(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const hint = error instanceof RequestError ? error.hint : "";
  return hint ? `${message.replace(/\.$/, "")}. ${hint}` : message;
}

/** What the page around a view can do for it. */
export interface Host {
  /** "jupyterlab", "notebook", "widget" or "page". */
  readonly name: string;
  /** Put code into a new cell below, unexecuted; left out where there are no cells. `output` is shown below it. */
  insertCell?: (code: string, output?: object) => void;
  /** Show another object beside the view (a run, a blob) in a tab of its own; left out where there are no tabs. */
  open?: (live: Live, title: string) => void;
  /** Show a blob in an element, in place of what is there; left out where nothing answers. */
  inspect?: (element: HTMLElement, blob: LiveBlob) => void;
  /** Draw a chart of what is shown into an element; left out where nothing answers. */
  chart?: (element: HTMLElement) => void;
}

export interface Source {
  readonly host: Host;
  readonly state: State;
  /** Why, in a sentence, when the state is none of "live", "busy", "connecting". */
  readonly reason: string;
  /** Ask the kernel. Rejects with RequestError, or AbortError. */
  request<O extends keyof Operations>(
    op: O,
    args: Operations[O]["args"],
    options?: RequestOptions,
  ): Promise<Operations[O]["answer"]>;
  /** Hear what the kernel says unasked. Returns a function that ends it. */
  subscribe(listener: (event: KernelEvent) => void): () => void;
  /** Hear of changes of `state`. Returns a function that ends it. */
  watch(listener: (state: State) => void): () => void;
}

/**
 * A view: draws into `element`, returns what takes it out again (listeners, observers, requests under way).
 *
 * `before` is the snapshot as it was drawn, already out of the page, and `saved` what it shows: a view shows that until
 * it has something newer, and for good when it cannot open.
 */
export type ViewFunction<M> = (
  element: HTMLElement,
  model: M,
  source: Source,
  before?: HTMLElement | null,
  saved?: View | null,
) => () => void;
