// Stores repeated texts once and identifies them by number.

export class StringTable {
  readonly #places = new Map<string, number>();
  readonly #texts: string[] = [];

  get size(): number {
    return this.#texts.length;
  }

  /** The number of a text; adds a new text. */
  add(text: string): number {
    const known = this.#places.get(text);
    if (known !== undefined) return known;
    this.#places.set(text, this.#texts.length);
    return this.#texts.push(text) - 1;
  }

  /** The number of a text, or -1. */
  find(text: string): number {
    return this.#places.get(text) ?? -1;
  }

  at(number: number): string {
    return this.#texts[number] ?? '';
  }
}
