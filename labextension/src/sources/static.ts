// A source without a kernel: answers that were recorded when the page was written, and other orders of recorded rows.
import type { AskRows, Operations } from "../protocol";
import { sortedRows } from "./saved-rows";
import {
  type Host,
  type KernelEvent,
  RequestError,
  type RequestOptions,
  type Source,
  type State,
} from "./source";

/** An answer by its request: the name of the operation, a space, its arguments as JSON with sorted keys. */
export type Answers = Record<string, unknown>;

export const keyOf = (op: string, args: unknown): string => `${op} ${canonical(args)}`;

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value ?? null);
  const members = Object.entries(value).filter(([, each]) => each !== undefined);
  const sorted = members.sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${sorted.map(([key, each]) => `${JSON.stringify(key)}:${canonical(each)}`).join(",")}}`;
}

export class StaticSource implements Source {
  readonly host: Host = { name: "page" };
  readonly state: State;
  readonly reason = "This page was saved without its kernel; a notebook shows the rest.";

  constructor(private answers: Answers = {}) {
    this.state = Object.keys(answers).length ? "live" : "gone";
  }

  async request<O extends keyof Operations>(
    op: O,
    args: Operations[O]["args"],
    options?: RequestOptions,
  ): Promise<Operations[O]["answer"]> {
    options?.signal?.throwIfAborted();
    const held = (name: string, given: unknown): unknown => {
      const key = keyOf(name, given);
      return Object.hasOwn(this.answers, key) ? structuredClone(this.answers[key]) : undefined;
    };
    const answer = held(op, args) ?? (op === "frame.rows" ? sortedRows(args as AskRows, held) : null);
    if (answer) return answer as Operations[O]["answer"];
    throw new RequestError("gone", "This part is not in the saved page.", "Open the notebook to see it.");
  }

  subscribe(_listener: (event: KernelEvent) => void): () => void {
    return () => undefined;
  }

  watch(_listener: (state: State) => void): () => void {
    return () => undefined;
  }
}
