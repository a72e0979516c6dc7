/** A map with a limit that evicts the least recently used entry. */
export interface LruMap<V> {
  get(key: string): V | undefined;
  set(key: string, value: V): void;
}

/** @param entries_max maximum number of entries, 1 or more */
export function createLruMap<V>(entries_max: number): LruMap<V> {
  // A Map keeps the order of insertion, so the first key is the oldest.
  const entries = new Map<string, V>();
  const set = (key: string, value: V): void => {
    entries.set(key, value);
    if (entries.size <= entries_max) return;
    for (const oldest of entries.keys()) {
      entries.delete(oldest);
      return;
    }
  };
  const get = (key: string): V | undefined => {
    const value = entries.get(key);
    if (value === undefined) return undefined;
    entries.delete(key);
    entries.set(key, value);
    return value;
  };
  return { get, set };
}
