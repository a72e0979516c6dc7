// A growing list of numbers without an object for each, and a binary search for sorted lists.

export class NumberList {
  #values = new Int32Array(8);
  length = 0;

  push(number: number): void {
    if (this.length === this.#values.length) {
      const wider = new Int32Array(this.length * 2);
      wider.set(this.#values);
      this.#values = wider;
    }
    this.#values[this.length++] = number;
  }

  at(place: number): number {
    return this.#values[place] ?? -1;
  }

  get last(): number {
    return this.length === 0 ? -1 : this.at(this.length - 1);
  }

  /** How many numbers are less than `number`: the index of the first one that is not. */
  countBelow(number: number): number {
    return lowerBound(this.length, (place) => this.at(place) < number);
  }

  clear(): void {
    this.length = 0;
  }
}

/** The first of `length` indexes for which `less` is false; it is true for all earlier and false for all later ones. */
export function lowerBound(length: number, less: (place: number) => boolean): number {
  let [low, high] = [0, length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (less(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}
