// How much of what nobody has asked for is listened to. Reading a message costs far more than sending it, and whoever
// reads has other runs to serve: so it counts by its size as well as by its number.

const MESSAGES_MAX = 1_000;
const WITHIN_MS = 10_000;

/** Notifications, requests, stray answers and lines that are no message: so many, and so large, in so much time. */
export class UnsolicitedLimit {
  readonly #charsMax: number;
  #messages = 0;
  #chars = 0;
  #since = 0;

  constructor(charsMax: number) {
    this.#charsMax = charsMax;
  }

  get isExceeded(): boolean {
    return this.#messages > MESSAGES_MAX || this.#chars > this.#charsMax;
  }

  count(text: string): void {
    const now = performance.now();
    if (now - this.#since > WITHIN_MS) {
      this.#messages = 0;
      this.#chars = 0;
      this.#since = now;
    }
    this.#messages += 1;
    this.#chars += text.length;
  }
}
