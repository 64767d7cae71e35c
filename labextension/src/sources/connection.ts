// Numbered requests over one channel, whatever carries it.
//
// Invariant: every request settles once; what arrives for a request that is settled already is dropped.
import { type KernelEvent, RequestError, type RequestOptions } from "./source";
import type { ViewAnswer, ViewFailure, ViewEvent, ViewProgress } from "../protocol";

/** What a kernel may send. */
export type ServedMessage = ViewAnswer | ViewFailure | ViewEvent | ViewProgress;

interface PendingRequest {
  resolve(value: unknown): void;
  reject(error: unknown): void;
  options: RequestOptions;
  end(): void;
}

export class Connection {
  private pendingRequests = new Map<number, PendingRequest>();
  private listeners = new Set<(event: KernelEvent) => void>();

  /**
   * @param send puts a message on the channel.
   * @param next the number of the first request; apart from those of others on the same channel
   */
  constructor(
    private send: (message: object) => void,
    private next = 1,
  ) {}

  request(op: string, args: object, options: RequestOptions = {}): Promise<unknown> {
    const { signal } = options;
    if (signal?.aborted) return Promise.reject(abortError());
    return new Promise((resolve, reject) => {
      const id = this.next++;
      const stop = (): void => {
        this.settle(id)?.reject(abortError());
        this.send({ type: "cancel", id });
      };
      signal?.addEventListener("abort", stop, { once: true });
      this.pendingRequests.set(id, {
        resolve,
        reject,
        options,
        end: () => signal?.removeEventListener("abort", stop),
      });
      this.send({ type: "request", id, op, args });
    });
  }

  /** Take a message from the channel. */
  receive(message: ServedMessage): void {
    if (message.type === "event") for (const listener of [...this.listeners]) listener(message.event);
    else if (message.type === "progress")
      this.pendingRequests.get(message.id)?.options.progress?.(message.done, message.total, message.note);
    else if (message.type === "answer") this.settle(message.id)?.resolve(message.value);
    else if (message.type === "error")
      this.settle(message.id)?.reject(new RequestError(message.code, message.message, message.hint));
  }

  subscribe(listener: (event: KernelEvent) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** How many requests wait for an answer. */
  get pending(): number {
    return this.pendingRequests.size;
  }

  /** The channel is gone: nothing that waits will be answered. */
  fail(reason: string, hint = ""): void {
    for (const id of [...this.pendingRequests.keys()])
      this.settle(id)?.reject(new RequestError("gone", reason, hint));
  }

  private settle(id: number): PendingRequest | undefined {
    const found = this.pendingRequests.get(id);
    this.pendingRequests.delete(id);
    found?.end();
    return found;
  }
}

const abortError = (): DOMException => new DOMException("no longer wanted", "AbortError");
