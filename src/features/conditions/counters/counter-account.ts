// What one counter has counted of one subject. Windows move forward, so each keeps its sum and where it begins: a step
// costs the same however many a window has.

/** A step that is counted. */
export interface CountedStep {
  /** When it was decided, in ms. */
  readonly at: number;
  readonly adds: number;
}

/** A window as it was read last. */
interface WindowSum {
  from: number;
  /** The index of its first step. */
  first: number;
  sum: number;
}

/** A query of these windows moves them; there are no more than policies have for one counter. */
const WINDOWS_MAX = 8;

export class CounterAccount {
  /** In the order of their times. */
  readonly #steps: CountedStep[] = [];
  readonly #windows = new Map<string, WindowSum>();
  #total = 0;

  /** The sum of all steps, also of those that were dropped. */
  get total(): number {
    return this.#total;
  }

  /**
   * The sum of the steps since `from`, in ms.
   * @param window what identifies the window, such as its JSON
   */
  sumSince(window: string, from: number): number {
    const known = this.#windows.get(window);
    const current = known !== undefined && known.from <= from ? known : this.#newWindow(window, from);
    current.from = from;
    for (let step = this.#steps[current.first]; step !== undefined && step.at < from;) {
      current.sum -= step.adds;
      current.first += 1;
      step = this.#steps[current.first];
    }
    return current.sum;
  }

  add(step: CountedStep): void {
    this.#total += step.adds;
    let index = this.#steps.length;
    while ((this.#steps[index - 1]?.at ?? -Infinity) > step.at) index -= 1;
    this.#steps.splice(index, 0, step);
    for (const window of this.#windows.values()) {
      if (step.at >= window.from) window.sum += step.adds;
      else window.first += 1;
    }
  }

  /** Removes an equal step. One that was dropped changes the total only. */
  remove(step: CountedStep): void {
    this.#total -= step.adds;
    let index = this.#indexOf(step.at);
    while (this.#steps[index]?.at === step.at && this.#steps[index]?.adds !== step.adds) index += 1;
    if (this.#steps[index]?.at !== step.at) return;
    this.#steps.splice(index, 1);
    for (const window of this.#windows.values()) {
      if (step.at >= window.from) window.sum -= step.adds;
      else window.first -= 1;
    }
  }

  /** Drops steps before this time, now and then. No window may begin before it. */
  dropBefore(from: number): void {
    if ((this.#steps[this.#steps.length >> 1]?.at ?? Infinity) >= from) return;
    const dropped = this.#indexOf(from);
    this.#steps.splice(0, dropped);
    this.#windows.clear();
  }

  #newWindow(window: string, from: number): WindowSum {
    const first = this.#indexOf(from);
    const sum = this.#steps.slice(first).reduce((total, { adds }) => total + adds, 0);
    if (this.#windows.size >= WINDOWS_MAX) this.#windows.clear();
    const made = { from, first, sum };
    this.#windows.set(window, made);
    return made;
  }

  /** The index of the first step at this time or later. */
  #indexOf(at: number): number {
    let [low, high] = [0, this.#steps.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#steps[middle]?.at ?? Infinity) < at) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
