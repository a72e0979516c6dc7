// Waiting items by token, each token's items in order of arrival.

/** An item of a queue. */
export interface QueueItem {
  readonly token: string;
}

export class FairQueue<Item extends QueueItem> {
  readonly #tokens = new Map<string, Set<Item>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The number of waiting items of a token. */
  sizeOf(token: string): number {
    return this.#tokens.get(token)?.size ?? 0;
  }

  push(item: Item): void {
    let items = this.#tokens.get(item.token);
    if (items === undefined) this.#tokens.set(item.token, (items = new Set()));
    if (items.has(item)) return;
    items.add(item);
    this.#size += 1;
  }

  /** @returns whether the item was in the queue */
  remove(item: Item): boolean {
    const items = this.#tokens.get(item.token);
    if (items?.delete(item) !== true) return false;
    this.#size -= 1;
    if (items.size === 0) this.#tokens.delete(item.token);
    return true;
  }

  /** The first item of each token. */
  *heads(): Generator<Item> {
    for (const items of this.#tokens.values()) {
      for (const item of items) {
        yield item;
        break;
      }
    }
  }
}
