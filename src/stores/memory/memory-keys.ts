/** Not `slice`: the slice of a Buffer shares its memory. */
export const copyBytes = (bytes: Uint8Array): Uint8Array => new Uint8Array(bytes);

export const scopedKey = (scope: string | null, id: string): string => JSON.stringify([scope, id]);

export const hasRepeated = (keys: readonly string[], known: ReadonlyMap<string, unknown>): boolean =>
  new Set(keys).size < keys.length || keys.some((key) => known.has(key));
