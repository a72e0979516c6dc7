// A list of numbers that grows, without an object for each, and how to find one's place in it when it is sorted.

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

  /** How many are less than `number`: the place of the first that is not. */
  countBelow(number: number): number {
    return lowerBound(this.length, (place) => this.at(place) < number);
  }

  clear(): void {
    this.length = 0;
  }
}

/** The first of `length` places where `less` does not hold; it holds for all before and none after. */
export function lowerBound(length: number, less: (place: number) => boolean): number {
  let [low, high] = [0, length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (less(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}
