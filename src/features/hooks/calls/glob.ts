// Globs over paths and names: `*` and `?` stand for characters of one segment, also for a first dot, and `**` for any
// number of segments. There is no other syntax. Matching takes at most the product of both lengths.

/** Whether the glob matches the whole path. */
export function matchesGlob(glob: string, path: string): boolean {
  const segments = path.split('/');
  // For each number of segments: whether the globs so far match exactly those.
  let reached: readonly boolean[] = segments.map(() => false);
  reached = [true, ...reached];
  for (const one of glob.split('/')) {
    if (one === '**') {
      const first = reached.indexOf(true);
      reached = reached.map((_, index) => first >= 0 && index >= first);
    } else {
      reached = reached.map((_, index) => {
        const segment = segments[index - 1];
        return segment !== undefined && reached[index - 1] === true && matchesSegment(one, segment);
      });
    }
  }
  return reached[segments.length] === true;
}

/** Like `matchesGlob`, for names that a file system may compare without case. */
export const matchesGlobInAnyCase = (glob: string, path: string): boolean =>
  matchesGlob(glob.toLowerCase(), path.toLowerCase());

/** Whether the glob matches the whole segment. */
export function matchesSegment(glob: string, segment: string): boolean {
  let [inGlob, inSegment, star, retry] = [0, 0, -1, 0];
  while (inSegment < segment.length) {
    const symbol = glob.charAt(inGlob);
    if (symbol === '*') {
      [star, retry] = [inGlob, inSegment];
      inGlob += 1;
    } else if (symbol !== '' && (symbol === '?' || symbol === segment.charAt(inSegment))) {
      inGlob += 1;
      inSegment += 1;
    } else if (star >= 0) {
      retry += 1;
      [inGlob, inSegment] = [star + 1, retry];
    } else {
      return false;
    }
  }
  while (glob.charAt(inGlob) === '*') inGlob += 1;
  return inGlob === glob.length;
}
