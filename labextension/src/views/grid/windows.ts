// Windows of a table that lies in the kernel: what was fetched is kept within bounds, what is not wanted any more is
// called off.
//
// Invariant: at most 60 windows are kept; a row that is not there yet is asked for once, never waited for.
import type { AskRows, FrameRows } from "../../protocol";
import type { Source } from "../../sources/source";

export const WINDOW = 200;
export const PAGE = 40; // columns at once
const MOST_WINDOWS = 60;
const PAUSE = 25; // ms; a scrollbar that is dragged passes many windows by

/** What is asked for: rows in an order, of a page of columns. */
export type Query = Pick<AskRows, "blob" | "sort" | "filter" | "first_column" | "column_count">;

export class Windows {
  private windows = new Map<number, FrameRows>();
  private requests = new Map<number, AbortController>();
  private missing: number[] = [];
  private timer = 0;

  constructor(
    readonly query: Query,
    private source: Source,
    private onrows: (rows: FrameRows) => void,
    private onerror: (error: unknown) => void,
  ) {}

  /** Keep a window that was fetched already. */
  put(rows: FrameRows): void {
    const place = Math.floor(rows.start / WINDOW);
    this.windows.delete(place);
    this.windows.set(place, rows);
    const oldest = this.windows.keys().next().value;
    if (this.windows.size > MOST_WINDOWS && oldest !== undefined) this.windows.delete(oldest);
  }

  /** The window that holds a row, if it is there. */
  of(row: number): FrameRows | undefined {
    return this.windows.get(Math.floor(row / WINDOW));
  }

  /** See to it that these rows come; calls off what was wanted before and is not now. */
  want(first: number, stop: number): void {
    this.missing = [];
    for (let place = Math.floor(first / WINDOW); place * WINDOW < stop; place += 1) {
      const known = this.windows.get(place);
      if (known) this.put(known);
      else this.missing.push(place);
    }
    for (const [place, request] of this.requests) if (!this.missing.includes(place)) request.abort();
    clearTimeout(this.timer);
    if (this.missing.length)
      this.timer = window.setTimeout(() => this.missing.forEach((place) => void this.fetch(place)), PAUSE);
  }

  dispose(): void {
    clearTimeout(this.timer);
    for (const request of this.requests.values()) request.abort();
  }

  private async fetch(place: number): Promise<void> {
    if (this.requests.has(place)) return;
    const request = new AbortController();
    this.requests.set(place, request);
    const { signal } = request;
    try {
      const rows = await this.source.request(
        "frame.rows",
        { ...this.query, start: place * WINDOW, count: WINDOW },
        { signal },
      );
      this.put(rows);
      this.onrows(rows);
    } catch (error) {
      if (!signal.aborted) this.onerror(error);
    } finally {
      if (this.requests.get(place) === request) this.requests.delete(place);
    }
  }
}
