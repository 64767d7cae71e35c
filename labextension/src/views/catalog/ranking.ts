// The kernel's ranking of the actions for what a person types, the same as that of `%reyn search`.
//
// Invariant: one word narrows by its letters as long as some action has them, since a name is being typed; several
// words, and one that no action has, are ranked by what they mean. While an answer is on its way the last one stays.
import type { Source } from "../../sources/source";
import { errorSentence } from "../../sources/source";
import { latestRequest } from "../requests";

const PAUSE = 150; // ms without a key before the kernel is asked
const MOST = 20; // actions
const LONGEST = 1_000; // characters of a query

export interface Ranking {
  /** The names in their order; null where the rows are those that have every word. */
  readonly names: readonly string[] | null;
  /** What to know of it; "" for nothing. */
  readonly remark: string;
  /** Whether an answer is on its way. */
  readonly pending: boolean;
  /** Sees to the ranking for a query. `found` tells whether the catalog has an action with every word of it. */
  want(query: string, category: string, found: boolean): void;
  /** The catalog is another one. */
  forget(): void;
  dispose(): void;
}

/** @param changed called when another ranking has come */
export function kernelRanking(source: Source, changed: () => void): Ranking {
  const request = latestRequest();
  let names: readonly string[] | null = null;
  let remark = "";
  let wanted = ""; // the query and category that is shown or asked for
  let pending = false;
  let timer = 0;

  const stop = (): void => {
    clearTimeout(timer);
    request.stop();
    pending = false;
  };
  const show = (best: readonly string[] | null, said: string): void => {
    pending = false;
    names = best;
    remark = said;
    changed();
  };
  const ask = (query: string, category: string, found: boolean): void =>
    request.start(
      (options) => source.request("catalog.search", { query, category, limit: MOST }, options),
      (answer) => {
        const closest =
          found || !answer.names.length ? "" : "No action has all of these words; nearest first.";
        show(answer.names.length ? answer.names : null, answer.remark || closest);
      },
      (error) => show(null, `Searched by letters alone: ${errorSentence(error)}`),
    );
  return {
    get names() {
      return names;
    },
    get remark() {
      return remark;
    },
    get pending() {
      return pending;
    },
    want(query, category, found) {
      const several = /\s/.test(query.trim());
      const now = query.trim() && (several || !found) ? JSON.stringify([query.trim(), category]) : "";
      if (now === wanted) return;
      wanted = now;
      stop();
      if (!now) {
        names = null;
        remark = "";
        return;
      }
      pending = true;
      timer = window.setTimeout(() => ask(query.trim().slice(0, LONGEST), category, found), PAUSE);
    },
    forget() {
      wanted = "";
    },
    dispose: stop,
  };
}
