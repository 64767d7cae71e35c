// A source over a comm of a notebook's kernel: one for each notebook, however many views it has.
//
// Invariants: at most one comm is open; whatever takes a kernel away fails what waits for an answer; a kernel that is
// merely busy fails nothing. Nothing is ever executed in the kernel from here.
import type { ISessionContext } from "@jupyterlab/apputils";
import type { Kernel, KernelMessage } from "@jupyterlab/services";
import type { Hello, Operations, SentCells, Welcome } from "../protocol";
import type { ServedMessage } from "./connection";
import { LiveSource } from "./live-source";
import {
  errorSentence,
  type Host,
  type KernelEvent,
  PROTOCOL,
  RequestError,
  type RequestOptions,
  type Source,
  type State,
} from "./source";

const TARGET = "reyn.v1";
const GONE_STATUSES: Partial<Record<Kernel.Status, string>> = {
  dead: "The kernel has died.",
  terminating: "The kernel is shutting down.",
  restarting: "The kernel is restarting.",
  autorestarting: "The kernel has died and is restarting.",
};
const WELCOME_PATIENCE = 4000; // ms after a kernel has handled everything that was sent before
const LOADING_CODE = /reyn|%run\b/;
const NO_KERNEL = "No kernel is running.";
const NOT_LOADED = "The extension is not loaded in this kernel.";

/** What a front end says about itself in its first request. */
export type Greeting = Pick<Hello, "host" | "version" | "approves">;

export class KernelSource extends LiveSource {
  private line: Line | null = null;
  private unsent: object[] | null = null; // what waits for the line to be open; null once it is
  private isWanted = false;
  private mayLoadExtension = false; // whether the cell that runs may load the extension

  /** @param greeting what to say in `hello`, asked for at each one */
  constructor(
    private context: ISessionContext,
    private greeting: () => Greeting,
  ) {
    super("gone", NO_KERNEL);
    context.kernelChanged.connect(this.kernelChanged, this);
    context.statusChanged.connect(this.statusChanged, this);
    context.connectionStatusChanged.connect(this.lineChanged, this);
    context.iopubMessage.connect(this.onIopub, this);
    context.disposed.connect(this.dispose, this);
  }

  /** A view needs the kernel: connect, unless that has been done. */
  keepConnected(): void {
    this.isWanted = true;
    this.connect();
  }

  /** Say hello again: what the greeting says has changed. */
  greet(): void {
    if (this.line) void this.hello();
  }

  /** Give the kernel a copy of its notebook; says whether the extension there could take it. */
  sendCells(cells: SentCells): boolean {
    if (!this.line || !this.welcome) return false;
    this.send(cells);
    return true;
  }

  /** This kernel as a view sees it whose snapshot names a session; one that names another, or none, is foreign. */
  bind(session: unknown, host: Host): Source {
    return new BoundSource(this, (answering) => session === answering, host);
  }

  /** This kernel as a panel of the application sees it, which holds nothing that somebody saved. */
  bindPanel(host: Host): Source {
    return new BoundSource(this, () => true, host);
  }

  /** Hang up, and say so to the kernel where it still hears. */
  dispose(): void {
    if (!this.context.isDisposed) {
      this.context.kernelChanged.disconnect(this.kernelChanged, this);
      this.context.statusChanged.disconnect(this.statusChanged, this);
      this.context.connectionStatusChanged.disconnect(this.lineChanged, this);
      this.context.iopubMessage.disconnect(this.onIopub, this);
      this.context.disposed.disconnect(this.dispose, this);
    }
    this.isWanted = false;
    if (!this.unsent) this.line?.close();
    this.disconnect("gone", "The notebook is closed.");
    this.end(this.reason);
  }

  private get kernel(): Kernel.IKernelConnection | null {
    return this.context.session?.kernel ?? null;
  }

  private connect(): void {
    if (!this.isWanted || this.line || this.context.isDisposed) return;
    const kernel = this.kernel;
    const away = kernel ? GONE_STATUSES[kernel.status] : NO_KERNEL;
    if (!kernel || away) return this.become("gone", away ?? NO_KERNEL);
    let line: Line;
    let opened: Promise<unknown>;
    try {
      line = new Line(kernel);
      line.comm.onMsg = (message) => {
        if (this.line === line) this.receive(message.content.data as unknown as ServedMessage);
      };
      line.comm.onClose = () => {
        if (this.line === line) this.disconnect("missing", NOT_LOADED);
      };
      this.line = line;
      this.unsent = [];
      opened = line.comm.open().done;
    } catch (error) {
      this.line = null;
      return this.become("missing", errorSentence(error));
    }
    this.become("connecting");
    // A kernel may read the comm's messages in another thread than its opening, which a busy cell can hold up: so
    // nothing is sent before the opening was handled.
    opened.then(
      () => (this.line === line ? this.flush() : line.close()),
      () => undefined,
    );
    void this.hello();
    void this.expectWelcome(line, kernel);
  }

  /**
   * Open another line where the kernel has handled the opening of this one and the greeting, and is idle, but does not
   * answer: one of them was lost. That a kernel is idle says little by itself: where it reads comms in a thread of
   * their own, it is called so whenever that thread is, while cells still wait before the opening.
   */
  private async expectWelcome(line: Line, kernel: Kernel.IKernelConnection): Promise<void> {
    // The first answer comes after the opening was handled, the second after a greeting that was sent then.
    for (const _ of ["opening", "greeting"]) {
      try {
        await kernel.requestKernelInfo();
      } catch {
        return; // the kernel is gone, which is told elsewhere
      }
      await new Promise((resolve) => setTimeout(resolve, WELCOME_PATIENCE));
      if (this.line !== line || this.welcome) return;
    }
    if (kernel.status !== "idle") return this.expectWelcome(line, kernel);
    line.close();
    this.disconnect("gone", "The kernel did not answer.");
    this.connect();
  }

  private async hello(): Promise<void> {
    const line = this.line;
    try {
      this.welcome = (await this.connection.request("hello", {
        protocol: PROTOCOL,
        ...this.greeting(),
      })) as Welcome;
      this.become("live");
    } catch (error) {
      if (this.line !== line || !line) return; // it was left meanwhile, and that has been told
      line.close();
      this.disconnect("missing", errorSentence(error));
    }
  }

  protected override get isOpen(): boolean {
    return this.line !== null;
  }

  /** A long request of an idle kernel is worked on in the background. */
  protected override get isWorking(): boolean {
    return this.kernel?.status === "idle";
  }

  protected override send(message: object): void {
    if (this.unsent) this.unsent.push(message);
    else if (this.line) {
      try {
        this.line.comm.send(message as never);
      } catch (error) {
        this.disconnect("gone", errorSentence(error));
      }
    }
  }

  private flush(): void {
    const waiting = this.unsent ?? [];
    this.unsent = null;
    for (const message of waiting) this.send(message);
  }

  /** The channel is no more. */
  private disconnect(state: State, reason: string): void {
    const { line, unsent } = this;
    this.line = this.unsent = this.welcome = null;
    this.stopExpecting();
    // One that is not open yet is closed when it is: until then the kernel may be about to close it itself.
    if (!unsent) line?.drop();
    this.become(state, reason);
    this.connection.fail(reason);
  }

  private kernelChanged(): void {
    this.disconnect("gone", NO_KERNEL);
    this.connect();
  }

  private statusChanged(_context: unknown, status: Kernel.Status): void {
    const away = GONE_STATUSES[status];
    if (away) this.disconnect("gone", away);
    else if (status === "idle" && this.state === "gone") this.connect();
    else if (status === "idle" && this.state === "busy" && !this.connection.pending) this.become("live");
  }

  private lineChanged(_context: unknown, status: Kernel.ConnectionStatus): void {
    if (status === "disconnected" && this.line)
      this.disconnect("gone", "The connection to the kernel is lost.");
    else if (status === "connected" && this.state === "gone") this.connect();
  }

  /** Somebody ran a cell: where that may have loaded the extension, see whether it answers now. */
  private onIopub(_context: unknown, message: KernelMessage.IMessage): void {
    if (this.line) return;
    const { code, execution_state: state } = message.content as { code?: string; execution_state?: string };
    if (message.header.msg_type === "execute_input") this.mayLoadExtension = LOADING_CODE.test(code ?? "");
    const parent = message.parent_header as { msg_type?: string };
    if (this.mayLoadExtension && state === "idle" && parent.msg_type === "execute_request") {
      this.mayLoadExtension = false;
      this.keepConnected();
    }
  }
}

/** The kernel for one view: it is foreign where the view does not belong to the session that answers. */
class BoundSource implements Source {
  constructor(
    private kernel: KernelSource,
    private belongsTo: (session: string) => boolean,
    readonly host: Host,
  ) {}

  get state(): State {
    return this.foreign ? "foreign" : this.kernel.state;
  }

  get reason(): string {
    return this.foreign ? "It belongs to another session of the kernel." : this.kernel.reason;
  }

  request<O extends keyof Operations>(
    op: O,
    args: Operations[O]["args"],
    options?: RequestOptions,
  ): Promise<Operations[O]["answer"]> {
    if (this.foreign) return Promise.reject(new RequestError("gone", this.reason));
    return this.kernel.request(op, args, options);
  }

  subscribe(listener: (event: KernelEvent) => void): () => void {
    return this.kernel.subscribe((event) => {
      if (!this.foreign) listener(event);
    });
  }

  watch(listener: (state: State) => void): () => void {
    return this.kernel.watch(() => listener(this.state));
  }

  private get foreign(): boolean {
    const answering = this.kernel.welcome?.session;
    return answering !== undefined && !this.belongsTo(answering);
  }
}

/**
 * A comm, and a second one that is never opened.
 *
 * JupyterLab ends the thread in which a kernel reads the comms of a target as soon as the last of them is closed here. A
 * message that lies there then makes the kernel complain below the cell that runs. The second one keeps the thread
 * until the kernel has handled the end of the first.
 */
class Line {
  readonly comm: Kernel.IComm;
  private readonly keeper: Kernel.IComm;
  private isClosing = false;

  constructor(kernel: Kernel.IKernelConnection) {
    this.comm = kernel.createComm(TARGET);
    this.keeper = kernel.createComm(TARGET);
  }

  /** Close the comm, and say so to the kernel. */
  close(): void {
    if (this.comm.isDisposed || this.isClosing) return this.drop();
    this.isClosing = true;
    const letGo = () => dispose(this.keeper);
    try {
      this.comm.close().done.then(letGo, letGo);
    } catch {
      letGo(); // the kernel is gone, and the comm with it
    }
  }

  /** Forget the comm, of which the kernel knows nothing, or nothing more, unless it is being closed. */
  drop(): void {
    if (this.isClosing) return;
    dispose(this.comm);
    dispose(this.keeper);
  }
}

function dispose(comm: Kernel.IComm): void {
  if (!comm.isDisposed) comm.dispose();
}
