// A source over a comm of a notebook's kernel: one for each notebook, however many views it has.
//
// Invariants: at most one comm is open; whatever takes a kernel away fails what waits for an answer; a kernel that is
// merely busy fails nothing. Nothing is ever executed in the kernel from here. All messages to the kernel go over its
// control channel, which it reads while a cell runs.
import type { ISessionContext } from "@jupyterlab/apputils";
import { type Kernel, KernelMessage } from "@jupyterlab/services";
import { UUID } from "@lumino/coreutils";
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
const LOADING_CODE = /reyn|%run\b/;
const NO_KERNEL = "No kernel is running.";
const NOT_LOADED = "The extension is not loaded in this kernel.";
const LOST = "The connection to the kernel is lost.";

/** What a front end says about itself in its first request. */
export type Greeting = Pick<Hello, "host" | "version" | "approves">;

export class KernelSource extends LiveSource {
  private line: Line | null = null;
  private isDisposed = false;
  private isAsking = false; // whether the extension is loaded in the kernel
  private isAskedAgain = false;
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
    this.isDisposed = true;
    this.line?.close();
    this.disconnect("gone", "The notebook is closed.");
    this.end(this.reason);
  }

  private get kernel(): Kernel.IKernelConnection | null {
    return this.context.session?.kernel ?? null;
  }

  /** Connect if the extension is loaded in the kernel, unless that has been done. */
  connect(): void {
    if (this.isDisposed || this.line || this.context.isDisposed) return;
    const kernel = this.kernel;
    const away = kernel ? GONE_STATUSES[kernel.status] : NO_KERNEL;
    if (!kernel || away) return this.become("gone", away ?? NO_KERNEL);
    if (this.isAsking) this.isAskedAgain = true;
    else void this.find(kernel);
  }

  /** A kernel without the extension is asked one question, and sent nothing else. */
  private async find(kernel: Kernel.IKernelConnection): Promise<void> {
    this.isAsking = true;
    this.isAskedAgain = false;
    if (this.state !== "missing") this.become("connecting");
    const isLoaded = await hasTarget(kernel).catch(() => false);
    this.isAsking = false;
    if (kernel !== this.kernel || this.isAskedAgain) return this.connect();
    if (this.isDisposed || this.line || GONE_STATUSES[kernel.status]) return;
    if (!isLoaded) return this.become("missing", NOT_LOADED);
    this.line = new Line(kernel);
    this.become("connecting");
    void this.hello();
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
    try {
      this.line?.send(message);
    } catch (error) {
      this.disconnect("gone", errorSentence(error));
    }
  }

  /** The channel is no more. */
  private disconnect(state: State, reason: string): void {
    this.line = this.welcome = null;
    this.stopExpecting();
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
    if (status === "disconnected" && this.line) this.disconnect("gone", LOST);
    else if (status === "connected" && this.state === "gone") this.connect();
  }

  /** Somebody ran a cell: where that may have loaded the extension, see whether it answers now. */
  private onIopub(_context: unknown, message: KernelMessage.IMessage): void {
    if (this.line) {
      const { comm_id: id, data } = message.content as { comm_id?: string; data?: unknown };
      if (id !== this.line.id) return;
      if (message.header.msg_type === "comm_msg") this.receive(data as ServedMessage);
      else if (message.header.msg_type === "comm_close") this.disconnect("missing", NOT_LOADED);
      return;
    }
    const { code, execution_state: state } = message.content as { code?: string; execution_state?: string };
    if (message.header.msg_type === "execute_input") this.mayLoadExtension = LOADING_CODE.test(code ?? "");
    const parent = message.parent_header as { msg_type?: string };
    if (this.mayLoadExtension && state === "idle" && parent.msg_type === "execute_request") {
      this.mayLoadExtension = false;
      this.connect();
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

/** Whether the extension is loaded in a kernel, which then has a comm of our target. */
async function hasTarget(kernel: Kernel.IKernelConnection): Promise<boolean> {
  const spec = await kernel.spec;
  if (spec && !/python/i.test(spec.language)) return false;
  const asked = control(kernel, "comm_info_request", { target_name: TARGET });
  const { content } = (await kernel.sendControlMessage(asked as never, true).done) as unknown as {
    content: { comms?: object };
  };
  return Object.keys(content.comms ?? {}).length > 0;
}

/** A message of a kind that kernels take on the shell channel, which a cell holds up, for the control channel. */
function control(kernel: Kernel.IKernelConnection, msgType: string, content: object): object {
  return KernelMessage.createMessage({
    channel: "control",
    msgType,
    content,
    session: kernel.clientId,
    username: kernel.username,
  } as never);
}

/**
 * A comm whose messages to the kernel go over its control channel. JupyterLab's own comms would go over the shell
 * channel, and start a thread of the kernel for them.
 */
class Line {
  readonly id = UUID.uuid4();
  private isOpen = false;

  constructor(private kernel: Kernel.IKernelConnection) {}

  send(data: object): void {
    if (this.isOpen) return this.put("comm_msg", { data });
    this.isOpen = true;
    this.put("comm_open", { target_name: TARGET, data });
  }

  /** Say to the kernel that nobody is here any more. */
  close(): void {
    try {
      if (this.isOpen && !this.kernel.isDisposed) this.put("comm_close", { data: {} });
    } catch {
      // the kernel is gone, and the comm with it
    }
  }

  private put(msgType: string, content: object): void {
    const message = control(this.kernel, msgType, { comm_id: this.id, ...content });
    this.kernel.sendControlMessage(message as never, false, true);
  }
}
