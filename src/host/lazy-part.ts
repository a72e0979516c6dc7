// A part of a Turnpike that only some services use. It is created when it is first used, so that its modules are not
// loaded before.
//
// Invariants:
//   L1. A part is created at most once. If its creation fails, the call that needed it rejects, and the next call tries
//       again.
//   L2. `close` creates nothing. It waits for a creation in flight and closes that part too. A part that is created
//       after it is closed at once.

export class LazyPart<Part> {
  readonly #create: () => Promise<Part>;
  #creation: Promise<Part> | null = null;
  #current: Part | null = null;
  /** Set by `close`. */
  #closePart: ((part: Part) => unknown) | null = null;

  /** @param create imports the module of the part and creates it */
  constructor(create: () => Promise<Part>) {
    this.#create = create;
  }

  /** The part, which the first call creates. @throws what its creation throws (L1) */
  get(): Promise<Part> {
    this.#creation ??= this.#create().then(
      async (part) => {
        this.#current = part;
        await this.#closePart?.(part);
        return part;
      },
      (error: unknown) => {
        this.#creation = null;
        throw error;
      },
    );
    return this.#creation;
  }

  /** Closes the part if it was used (L2). */
  async close(closePart: (part: Part) => unknown): Promise<void> {
    const part = this.#current;
    this.#closePart = closePart;
    if (part !== null) await closePart(part);
    // The call that needed the part reports the error of its creation.
    else await this.#creation?.catch(() => undefined);
  }
}
