// Computes which rows of a long list are drawn: the visible ones, and a few more on each side.

export const ROW_HEIGHT = 24;

const SPARE = 3;

export function rowWindowOf(count: number, top: number, height: number, row = ROW_HEIGHT) {
  const from = Math.max(0, Math.min(count, Math.floor(top / row) - SPARE));
  const to = Math.min(count, Math.ceil((top + height) / row) + SPARE);
  return { from, to: Math.max(from, to) };
}

/** The maximum number of rows of a window: a list needs that many elements, whatever part of it is visible. */
export const slotCountFor = (height: number, row = ROW_HEIGHT): number => Math.ceil(height / row) + 1 + 2 * SPARE;

/** The scroll position that makes a place visible; the current one if it is visible already. */
export function scrollTopFor(place: number, top: number, height: number, row = ROW_HEIGHT): number {
  const [upper, lower] = [place * row, (place + 1) * row];
  if (upper >= top && lower <= top + height) return top;
  // A distant place is scrolled to the middle, a near one only into view.
  if (upper < top - row || lower > top + height + row) return Math.max(0, upper - Math.floor(height / 2 / row) * row);
  return upper < top ? upper : lower - height;
}
