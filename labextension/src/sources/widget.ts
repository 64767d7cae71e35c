// A source over an anywidget model: VS Code, Colab, marimo, and any page that hosts widgets.
//
// Invariants: several views of one model share its channel without taking each other's answers; whatever the kernel
// does, an answer that comes late makes the source live again.
import type { AnyModel } from "@anywidget/types";
import { Connection } from "./connection";
import { PROTOCOL } from "./protocol-version";
import {
  type Host,
  type KernelEvent,
  RequestError,
  type RequestOptions,
  type Source,
  type State,
} from "./source";
import type { Message } from "./wire";
import type { Operations, Welcome } from "../protocol";

const PATIENCE = 300; // ms without an answer, after which the kernel counts as busy
const AGAIN = [1000, 2000, 4000, 8000]; // ms after which hello is said again; a model may open before its kernel hears
const SILENT = "The kernel does not answer.";
const CLOSED = "The kernel's end of this view is closed.";
// What a model of ipywidgets says when its comm is closed, or may have died with its kernel.
const ENDS = ["comm:close", "destroy", "comm_live_update"] as const;

/**
 * @param session the kernel session that the snapshot belongs to; another one's is not gone on with
 */
export class WidgetSource implements Source {
  readonly host: Host = { name: "widget" };
  state: State = "connecting";
  reason = "";
  private connection: Connection;
  private watchers = new Set<(state: State) => void>();
  private timer = 0;
  private greeting = 0;
  private disposed = false;
  private receive = (message: Message): void => {
    this.relax();
    if (this.state === "busy" && this.met) this.become("live");
    this.connection.receive(message);
    if (this.connection.pending) this.expect();
  };
  private met = false; // whether the kernel has said who it is
  private ended = (): void => {
    this.become("gone", CLOSED);
    this.connection.fail(CLOSED);
    this.met = false;
    this.hello();
  };

  constructor(
    private model: AnyModel,
    private session: string,
  ) {
    this.connection = new Connection(
      (message) => {
        this.expect();
        try {
          model.send(message);
        } catch {
          // The comm has died; what says so comes as an event, or as silence.
        }
      },
      Math.floor(Math.random() * 2 ** 40),
    );
    model.on("msg:custom", this.receive);
    for (const end of ENDS) model.on(end, this.ended);
    this.hello();
  }

  async request<O extends keyof Operations>(
    op: O,
    args: Operations[O]["args"],
    options?: RequestOptions,
  ): Promise<Operations[O]["answer"]> {
    if (this.disposed || this.state === "gone") throw new RequestError("gone", this.reason || CLOSED);
    return (await this.connection.request(op, args as object, options)) as Operations[O]["answer"];
  }

  subscribe(listener: (event: KernelEvent) => void): () => void {
    return this.connection.subscribe(listener);
  }

  watch(listener: (state: State) => void): () => void {
    this.watchers.add(listener);
    return () => this.watchers.delete(listener);
  }

  dispose(): void {
    this.disposed = true;
    this.relax();
    clearTimeout(this.greeting);
    this.model.off("msg:custom", this.receive);
    for (const end of ENDS) this.model.off(end, this.ended);
    this.connection.fail("The view is closed.");
    this.watchers.clear();
  }

  private hello(attempt = 0): void {
    clearTimeout(this.greeting);
    const said = { protocol: PROTOCOL, host: "widget", version: "", approves: true };
    this.connection.request("hello", said).then(
      (welcome) => this.meet(welcome as Welcome),
      (error: unknown) => {
        if (!(error instanceof RequestError && error.code === "gone")) this.refused(error);
      },
    );
    this.greeting = window.setTimeout(() => {
      if (attempt < AGAIN.length - 1) this.hello(attempt + 1);
      else if (this.state !== "gone") this.become("gone", SILENT);
    }, AGAIN[attempt]);
  }

  private meet(welcome: Welcome): void {
    clearTimeout(this.greeting);
    if (this.disposed || this.met) return;
    this.met = true;
    if (welcome.session === this.session) this.become("live");
    else this.become("foreign", "It belongs to an earlier session of the kernel.");
  }

  private refused(error: unknown): void {
    clearTimeout(this.greeting);
    const hint = error instanceof RequestError && error.hint ? `. ${error.hint}` : "";
    this.become("missing", `${error instanceof Error ? error.message : String(error)}${hint}`);
  }

  /** An answer is due. */
  private expect(): void {
    this.timer ||= window.setTimeout(() => {
      this.timer = 0;
      const hopeful = this.state === "live" || this.state === "connecting";
      if (this.connection.pending && hopeful) this.become("busy");
    }, PATIENCE);
  }

  private relax(): void {
    clearTimeout(this.timer);
    this.timer = 0;
  }

  private become(state: State, reason = ""): void {
    if (this.disposed) return;
    this.state = state;
    this.reason = reason;
    for (const watcher of [...this.watchers]) watcher(state);
  }
}
