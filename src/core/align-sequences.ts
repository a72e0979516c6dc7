// Aligns two sequences: the common items, and those of only one, in an order that fits both.

export interface AlignedPair {
  readonly a: number | null;
  readonly b: number | null;
}

/** Above this many cells, only the common beginning and end are aligned; everything between counts as different. */
const CELLS_MAX = 4_000_000;

/** Aligns by a longest common subsequence. */
export function alignSequences(a: readonly string[], b: readonly string[]): readonly AlignedPair[] {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end += 1;
  const [left, right] = [a.slice(start, a.length - end), b.slice(start, b.length - end)];
  const both = (place: number, ofA: number, ofB: number): AlignedPair => ({ a: ofA + place, b: ofB + place });
  return [
    ...Array.from({ length: start }, (_, place) => both(place, 0, 0)),
    ...alignMiddle(left, right).map((row) => ({ a: offsetBy(row.a, start), b: offsetBy(row.b, start) })),
    ...Array.from({ length: end }, (_, place) => both(place, a.length - end, b.length - end)),
  ];
}

const offsetBy = (place: number | null, by: number): number | null => (place === null ? null : place + by);

function alignMiddle(a: readonly string[], b: readonly string[]): readonly AlignedPair[] {
  if ((a.length + 1) * (b.length + 1) > CELLS_MAX) {
    return [...a.map((_, place) => ({ a: place, b: null })), ...b.map((_, place) => ({ a: null, b: place }))];
  }
  const wide = b.length + 1;
  const lengths = new Uint16Array((a.length + 1) * wide);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      const [down, across] = [lengths[(i + 1) * wide + j] ?? 0, lengths[i * wide + j + 1] ?? 0];
      lengths[i * wide + j] = a[i] === b[j] ? (lengths[(i + 1) * wide + j + 1] ?? 0) + 1 : Math.max(down, across);
    }
  }
  const found: AlignedPair[] = [];
  for (let [i, j] = [0, 0]; i < a.length || j < b.length;) {
    if (i < a.length && j < b.length && a[i] === b[j]) found.push({ a: i++, b: j++ });
    else if (
      j >= b.length ||
      (i < a.length && (lengths[(i + 1) * wide + j] ?? 0) >= (lengths[i * wide + j + 1] ?? 0))
    ) {
      found.push({ a: i++, b: null });
    } else found.push({ a: null, b: j++ });
  }
  return found;
}
