// Asking the kernel: only the newest of several questions counts, and what went wrong is said with what to do next.
import type { RequestOptions } from "../sources/source";
import { h, visible } from "./dom/h";

/** An error as a card: its message, its hint, and a button where trying again makes sense. */
export function errorCard(error: unknown, again?: () => void): HTMLElement {
  const { message = error, hint = "" } = (error ?? {}) as { message?: unknown; hint?: string };
  const button = again && h("button.r-button", { type: "button", onclick: again }, "Try again");
  return h(
    "div.r-msg.r-bad",
    { role: "alert" },
    h("p", {}, visible(message)),
    Boolean(hint) && h("p.r-hint", {}, visible(hint)),
    button,
  );
}

export interface LatestRequest {
  /** Ask; whatever was asked before is dropped, and nothing of it is heard any more. */
  start<T>(
    request: (options: RequestOptions) => Promise<T>,
    done: (answer: T) => void,
    failed: (error: unknown) => void,
  ): void;
  stop(): void;
}

export function latestRequest(): LatestRequest {
  let current: AbortController | null = null;
  return {
    start(request, done, failed) {
      current?.abort();
      const mine = (current = new AbortController());
      request({ signal: mine.signal }).then(
        (answer) => current === mine && done(answer),
        (error: unknown) => current === mine && failed(error),
      );
    },
    stop() {
      const mine = current;
      current = null;
      mine?.abort();
    },
  };
}
