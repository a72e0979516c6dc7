/** Where a call went, and with which content. */
export interface PlacedCall {
  readonly run_id: string;
  readonly content: string;
}

const CALLS_REMEMBERED = 4_096;

/** Calls by their marks, so that one that comes again goes into the run that it went into. The oldest are forgotten. */
export class PlacedCalls {
  readonly #placed = new Map<string, PlacedCall>();

  get(mark: string): PlacedCall | undefined {
    return this.#placed.get(mark);
  }

  remember(mark: string, placed: PlacedCall): void {
    this.#placed.delete(mark);
    this.#placed.set(mark, placed);
    const [oldest] = this.#placed.keys();
    if (this.#placed.size > CALLS_REMEMBERED && oldest !== undefined) this.#placed.delete(oldest);
  }
}
