// A source over an anywidget model: VS Code, Colab, marimo, and any page that hosts widgets.
//
// Invariants: several views of one model share its channel without taking each other's answers; whatever the kernel
// does, an answer that comes late makes the source live again.
import type { AnyModel } from "@anywidget/types";
import type { Welcome } from "../protocol";
import type { ServedMessage } from "./connection";
import { LiveSource } from "./live-source";
import { errorSentence, type Host, PROTOCOL, RequestError, type Source } from "./source";

// ms after which hello is said again; a model may open before its kernel hears
const GREETING_DELAYS = [1000, 2000, 4000, 8000];
const SILENT = "The kernel does not answer.";
const CLOSED = "The kernel's end of this view is closed.";
// What a model of ipywidgets says when its comm is closed, or may have died with its kernel.
const COMM_ENDS = ["comm:close", "destroy", "comm_live_update"] as const;

/**
 * @param session the kernel session that the snapshot belongs to; another one's is not gone on with
 */
export class WidgetSource extends LiveSource implements Source {
  readonly host: Host = { name: "widget" };
  private greeting = 0;
  private disposed = false;
  private onMessage = (message: ServedMessage): void => this.receive(message);
  private onCommEnd = (): void => {
    this.become("gone", CLOSED);
    this.connection.fail(CLOSED);
    this.welcome = null;
    this.hello();
  };

  constructor(
    private model: AnyModel,
    private session: string,
  ) {
    super("connecting", "", Math.floor(Math.random() * 2 ** 40));
    model.on("msg:custom", this.onMessage);
    for (const end of COMM_ENDS) model.on(end, this.onCommEnd);
    this.hello();
  }

  dispose(): void {
    this.disposed = true;
    clearTimeout(this.greeting);
    this.model.off("msg:custom", this.onMessage);
    for (const end of COMM_ENDS) this.model.off(end, this.onCommEnd);
    this.reason = "The view is closed.";
    this.end(this.reason);
  }

  protected override get isOpen(): boolean {
    return !this.disposed && this.state !== "gone" && this.state !== "foreign";
  }

  protected override send(message: object): void {
    try {
      this.model.send(message);
    } catch {
      // The comm has died; what says so comes as an event, or as silence.
    }
  }

  private hello(attempt = 0): void {
    clearTimeout(this.greeting);
    const greeting = { protocol: PROTOCOL, host: "widget", version: "", approves: true };
    this.connection.request("hello", greeting).then(
      (welcome) => this.greetedBy(welcome as Welcome),
      (error: unknown) => {
        if (!(error instanceof RequestError && error.code === "gone")) this.refuse(error);
      },
    );
    this.greeting = window.setTimeout(() => {
      if (attempt < GREETING_DELAYS.length - 1) this.hello(attempt + 1);
      else if (this.state !== "gone") this.become("gone", SILENT);
    }, GREETING_DELAYS[attempt]);
  }

  private greetedBy(welcome: Welcome): void {
    clearTimeout(this.greeting);
    if (this.disposed || this.welcome) return;
    this.welcome = welcome;
    if (welcome.session === this.session) this.become("live");
    else this.become("foreign", "It belongs to another session of the kernel.");
  }

  private refuse(error: unknown): void {
    clearTimeout(this.greeting);
    this.become("missing", errorSentence(error));
  }
}
