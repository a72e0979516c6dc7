// Folds and skeletons of a name, repeated until they are stable.

import { caseFoldOnce, skeletonOnce, textOfPoints } from './unicode.js';
import type { Points } from './unicode.js';

const ROUNDS_MAX = 16;

/** NFKC_Casefold, decomposed, without spaces and controls. */
export const folded = (points: Points): Points => stable(points, visibleFold);

/** What a folded name looks like. */
export const foldedLook = (points: Points): Points => stable(points, foldedSkeleton);

/** What the points look like as they are written: the case of their prototypes is folded, their own is not. */
export const writtenLook = (points: Points): Points => foldedLook(skeletonOnce(points));

export const isControl = (point: number): boolean =>
  point < 0x20 || (point >= 0x7f && point <= 0x9f) || point === 0x2028 || point === 0x2029;
/** What NFKC_Casefold leaves of white space. */
const isSpace = (point: number): boolean => point === 0x20 || point === 0x1680;

const visibleFold = (points: Points): Points =>
  caseFoldOnce(points).filter((point) => !isControl(point) && !isSpace(point));
const foldedSkeleton = (points: Points): Points => skeletonOnce(visibleFold(points));

/** A second pass can find what the first has made. The number of passes is a limit, not a choice of the caller. */
function stable(points: Points, pass: (points: Points) => Points): Points {
  let [before, after] = [points, pass(points)];
  for (let round = 1; round < ROUNDS_MAX && textOfPoints(before) !== textOfPoints(after); round += 1) {
    [before, after] = [after, pass(after)];
  }
  return after;
}
