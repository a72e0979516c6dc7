/** Names that differ in more places are not suggested. */
const DISTANCE_MAX = 2;
/** A longer name is compared with nothing: the cost grows with the product of both lengths. */
const LENGTH_MAX = 64;

/** The name that a misspelt one most probably means: the nearest within two edits, or null. */
export function nearestName(name: string, known: readonly string[]): string | null {
  if (name.length > LENGTH_MAX) return null;
  let [best, bestDistance]: [string | null, number] = [null, DISTANCE_MAX + 1];
  for (const candidate of known) {
    const distance = editDistance(name, candidate);
    // In a short name two edits replace most of it.
    if (distance < bestDistance && distance < candidate.length / 2) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

/** The number of characters to insert, delete, replace or swap with their neighbour. */
function editDistance(one: string, other: string): number {
  if (Math.abs(one.length - other.length) > DISTANCE_MAX) return DISTANCE_MAX + 1;
  let [beforePrevious, previous]: [readonly number[], readonly number[]] = [[], range(other.length + 1)];
  for (let i = 1; i <= one.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const replaced = (previous[j - 1] ?? 0) + (one[i - 1] === other[j - 1] ? 0 : 1);
      const isSwap = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      const swapped = isSwap ? (beforePrevious[j - 2] ?? 0) + 1 : replaced;
      row.push(Math.min(replaced, swapped, (previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1));
    }
    [beforePrevious, previous] = [previous, row];
  }
  return previous[other.length] ?? 0;
}

const range = (length: number): number[] => Array.from({ length }, (_, index) => index);
