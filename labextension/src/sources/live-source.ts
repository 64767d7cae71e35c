// What every source over a kernel does, whichever channel carries its messages: it asks, listens, and says where it
// stands.
//
// Invariant: a kernel that is merely busy fails nothing; whatever it says, however late, makes the source live again.
import type { Operations, Welcome } from "../protocol";
import { Connection, type ServedMessage } from "./connection";
import { type KernelEvent, RequestError, type RequestOptions, type State } from "./source";

const BUSY_AFTER = 300; // ms without an answer

export abstract class LiveSource {
  /** Who answers, once somebody has. */
  welcome: Welcome | null = null;
  protected connection: Connection;
  private watchers = new Set<(state: State) => void>();
  private timer = 0;

  /** @param firstRequest the number of the first request; apart from those of others on the same channel */
  constructor(
    public state: State,
    public reason: string,
    firstRequest = 1,
  ) {
    this.connection = new Connection((message) => {
      this.send(message);
      if (this.connection.pending) this.expectAnswer();
      else if (this.state === "busy" && this.welcome) this.become("live"); // what it was too busy for is called off
    }, firstRequest);
  }

  async request<O extends keyof Operations>(
    op: O,
    args: Operations[O]["args"],
    options?: RequestOptions,
  ): Promise<Operations[O]["answer"]> {
    if (!this.isOpen) throw new RequestError("gone", this.reason);
    return (await this.connection.request(op, args as object, options)) as Operations[O]["answer"];
  }

  subscribe(listener: (event: KernelEvent) => void): () => void {
    return this.connection.subscribe(listener);
  }

  watch(listener: (state: State) => void): () => void {
    this.watchers.add(listener);
    return () => this.watchers.delete(listener);
  }

  /** Whether there is a channel to ask over. */
  protected abstract get isOpen(): boolean;

  /** Puts a message on the channel. */
  protected abstract send(message: object): void;

  /** Whether the kernel is known to work on an answer in the background, which is no reason to call it busy. */
  protected get isWorking(): boolean {
    return false;
  }

  /** Takes a message from the channel. */
  protected receive(message: ServedMessage): void {
    this.stopExpecting();
    if (this.state === "busy") this.become(this.welcome ? "live" : "connecting");
    this.connection.receive(message);
    if (this.connection.pending) this.expectAnswer();
  }

  protected become(state: State, reason = ""): void {
    this.state = state;
    this.reason = reason;
    for (const watcher of [...this.watchers]) watcher(state);
  }

  protected stopExpecting(): void {
    clearTimeout(this.timer);
    this.timer = 0;
  }

  /** Nobody watches any more, and nothing that waits will be answered. */
  protected end(reason: string): void {
    this.stopExpecting();
    this.connection.fail(reason);
    this.watchers.clear();
  }

  private expectAnswer(): void {
    this.timer ||= window.setTimeout(() => {
      this.timer = 0;
      if (!this.connection.pending || (this.state !== "live" && this.state !== "connecting")) return;
      if (this.isWorking) this.expectAnswer();
      else this.become("busy");
    }, BUSY_AFTER);
  }
}
