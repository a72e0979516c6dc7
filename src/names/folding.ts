// Case folds and skeletons of a name, repeated until they are stable.

import { caseFoldOnce, skeletonOnce, textOfPoints } from './unicode.js';
import type { Points } from './unicode.js';

const ROUNDS_MAX = 16;

/** NFKC_Casefold, decomposed, without spaces and controls. */
export const folded = (points: Points): Points => stable(points, visibleFold);

/** The skeleton of a folded name. */
export const foldedLook = (points: Points): Points => stable(points, foldedSkeleton);

/** The skeleton of the points as written: the prototypes are case-folded, the points themselves are not. */
export const writtenLook = (points: Points): Points => foldedLook(skeletonOnce(points));

export const isControl = (point: number): boolean =>
  point < 0x20 || (point >= 0x7f && point <= 0x9f) || point === 0x2028 || point === 0x2029;
/** The white space that NFKC_Casefold leaves. */
const isSpace = (point: number): boolean => point === 0x20 || point === 0x1680;

const visibleFold = (points: Points): Points =>
  caseFoldOnce(points).filter((point) => !isControl(point) && !isSpace(point));
const foldedSkeleton = (points: Points): Points => skeletonOnce(visibleFold(points));

/** A pass can produce input for the next one. The number of passes has a fixed limit. */
function stable(points: Points, pass: (points: Points) => Points): Points {
  let [before, after] = [points, pass(points)];
  for (let round = 1; round < ROUNDS_MAX && textOfPoints(before) !== textOfPoints(after); round += 1) {
    [before, after] = [after, pass(after)];
  }
  return after;
}
