// Limits unsolicited messages. Reading a message costs far more than sending it, and this process serves other runs
// too. So both the number and the size of messages count.

const MESSAGES_MAX = 1_000;
const WITHIN_MS = 10_000;

/** Counts notifications, requests, stray responses and lines that are not messages, within a time window. */
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
