/** Of sorted numbers. */
export const median = (sorted) => (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
export const ascending = (numbers) => [...numbers].sort((one, other) => one - other);

/**
 * The interval that contains the true median with 95 %, without an assumption about the distribution: the pair of order
 * statistics that leaves at most 2.5 % on each side (ranks of a binomial distribution).
 */
export function interval(sorted) {
  const n = sorted.length;
  let below = 0;
  let term = 2 ** -n;
  let rank = 0;
  while (rank < n / 2 && below + term <= 0.025) {
    below += term;
    term *= (n - rank) / (rank + 1);
    rank += 1;
  }
  return rank === 0 ? [sorted[0], sorted[n - 1]] : [sorted[rank - 1], sorted[n - rank]];
}

/** One figure of two variants, measured in pairs. */
export function compare(figure, before, after) {
  const ratios = ascending(before.map((value, pair) => after[pair] / value));
  const [low, high] = interval(ratios);
  const round = (number, digits) => Number(number.toFixed(digits));
  return {
    figure,
    before: round(median(ascending(before)), 1),
    after: round(median(ascending(after)), 1),
    ratio: round(median(ratios), 3),
    low: round(low, 3),
    high: round(high, 3),
  };
}
