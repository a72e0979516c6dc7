// Which rows of a long list are drawn: those in sight, and a few more on each side.

export const ROW_HEIGHT = 24;

export interface RowWindow {
  readonly from: number;
  readonly to: number;
}

const SPARE = 3;

export function rowWindowOf(count: number, top: number, height: number, row = ROW_HEIGHT): RowWindow {
  const from = Math.max(0, Math.min(count, Math.floor(top / row) - SPARE));
  const to = Math.min(count, Math.ceil((top + height) / row) + SPARE);
  return { from, to: Math.max(from, to) };
}

/** The most rows that a window can have: so many elements show a list, whatever part of it is in sight. */
export const slotCountFor = (height: number, row = ROW_HEIGHT): number => Math.ceil(height / row) + 1 + 2 * SPARE;

/** Where a list must be scrolled to so that a place is in sight; where it is now if it already is. */
export function scrollTopFor(place: number, top: number, height: number, row = ROW_HEIGHT): number {
  const [upper, lower] = [place * row, (place + 1) * row];
  if (upper >= top && lower <= top + height) return top;
  // What is far is brought to the middle, what is next to the edge only into sight.
  if (upper < top - row || lower > top + height + row) return Math.max(0, upper - Math.floor(height / 2 / row) * row);
  return upper < top ? upper : lower - height;
}

/** Browsers draw nothing higher than some 30 million pixels: a list of more rows than fit is shown a part at a time. */
export const LIST_ROWS_MAX = 1_000_000;
