/**
 * A map with a limit that evicts the least recently used entry. Below half of the limit a use does not move its entry,
 * because moving costs more than the look-up; an entry that is still used moves long before it could be evicted.
 */
export interface LruMap<V> {
  get(key: string): V | undefined;
  set(key: string, value: V): void;
  delete(key: string): void;
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
    if (value === undefined || entries.size < entries_max / 2) return value;
    entries.delete(key);
    entries.set(key, value);
    return value;
  };
  return { get, set, delete: (key) => void entries.delete(key) };
}
