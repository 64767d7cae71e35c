// What a kernel may send.
import type { Answered, Failed, Happened, Progressed } from "../protocol";

export type Message = Answered | Failed | Happened | Progressed;
