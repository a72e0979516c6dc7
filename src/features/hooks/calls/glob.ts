// Globs of rules over paths and names: `*` and `?` stand for characters of one segment, also for a first dot, and `**`
// for any number of segments. There is no other syntax. Matching takes at most the product of both lengths. The globs
// of searches have more.

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
function matchesSegment(glob: string, segment: string): boolean {
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

// Whether a search names what a rule denies. A search of all files names nothing, and neither does one of `*.ts`: it is
// judged by its folder. `.env*`, `{a,.e*}` and `*.pem` name files, whatever their program makes of them.

const ALTERNATIVES_MAX = 256;
const SEGMENTS_MAX = 128;
/** Segments of all alternatives of one call. */
const CALL_SEGMENTS_MAX = 4_096;
/** Characters that expanding the globs of one call may read. */
const CALL_CHARS_MAX = 4_194_304;

/** The alternatives of globs, each as its segments. */
export type SearchedNames = readonly (readonly string[])[];

/** @returns null if the globs of one call are too many or have too many alternatives */
export function searchedNames(globs: readonly string[]): SearchedNames | null {
  const limit = { chars: CALL_CHARS_MAX };
  const names: (readonly string[])[] = [];
  let segments = 0;
  for (const glob of globs) {
    const alternatives = alternativesOf(glob.toLowerCase(), limit);
    if (alternatives === null) return null;
    for (const one of alternatives) {
      const plain = plainSegments(one);
      names.push(plain);
      segments += plain.length;
    }
    if (segments > CALL_SEGMENTS_MAX) return null;
  }
  return names;
}

/**
 * Whether some file that the search asks for by name is one that the rule denies.
 * @param path the folder of the search
 */
export function namesDenied(names: SearchedNames, path: string, denied: string): boolean {
  const folder = path === '.' ? [] : path.toLowerCase().split('/');
  const rule = denied.toLowerCase().split('/');
  return names.some((one) => {
    // A program may take a glob as one of the folder, or of each folder below.
    const segments = [...folder, '**', ...one];
    return segments.length > SEGMENTS_MAX || overlaps(segments, rule);
  });
}

interface ReadingLimit {
  chars: number;
}

/** The globs of a text that may have several: those between spaces and commas, with braces expanded. */
function alternativesOf(text: string, limit: ReadingLimit): readonly string[] | null {
  const open = text.split(/[\s,]+/);
  const expanded = expandBraces(withoutGroups(text), limit);
  if (expanded === null) return null;
  return [...new Set([...open, ...expanded.flatMap((one) => one.split(/[\s,]+/))])].filter(
    (one) => one !== '' && !one.startsWith('!'),
  );
}

/** Groups of extended globs as braces: `@(a|b)` is `{a,b}`, and `+(a|b)` begins with one of them. */
function withoutGroups(text: string): string {
  return text.replace(/([@?+*!])\(([^()]*)\)/g, (_, kind: string, inside: string) => {
    const names = `{${inside.replaceAll('|', ',')}}`;
    if (kind === '!') return '*';
    return kind === '@' ? names : kind === '?' ? `{${inside.replaceAll('|', ',')},}` : `${names}*`;
  });
}

function expandBraces(text: string, limit: ReadingLimit): readonly string[] | null {
  let done: string[] = [text];
  for (;;) {
    limit.chars -= done.reduce((sum, one) => sum + one.length, 0);
    const next = done.flatMap(expandOnce);
    if (next.length === done.length && next.every((one, index) => one === done[index])) return done;
    if (next.length > ALTERNATIVES_MAX || limit.chars < 0) return null;
    done = next;
  }
}

/** The innermost braces expanded. */
function expandOnce(text: string): readonly string[] {
  const [braces, inside = ''] = /\{([^{}]*)\}/.exec(text) ?? [];
  if (braces === undefined) return [text];
  return inside.split(',').map((one) => text.replace(braces, () => one));
}

/** The segments with every class as `?`, and an escaped character as itself. */
const plainSegments = (glob: string): readonly string[] =>
  glob
    .replace(/\[([^\]!^\\])\]/g, '$1')
    .replace(/\[[!^]?\]?(?:\[:[a-z]*:\]|\\.|[^\]])*\]/g, '?')
    .replace(/\\(?=.)/g, '')
    .split('/')
    .filter((segment) => segment !== '' && segment !== '.');

/** Whether both globs have a path in common of which the search has named a segment. */
function overlaps(search: readonly string[], rule: readonly string[]): boolean {
  const seen = new Set<string>();
  const open: (readonly [at: number, to: number, named: boolean])[] = [[0, 0, false]];
  for (let state = open.pop(); state !== undefined; state = open.pop()) {
    const [at, to, named] = state;
    if (at === search.length && to === rule.length && named) return true;
    if (seen.has(state.join())) continue;
    seen.add(state.join());
    const [mine, other] = [search[at], rule[to]];
    if (other === '**') open.push([at, to + 1, named], ...(mine === undefined ? [] : [[at + 1, to, named] as const]));
    if (mine === '**') open.push([at + 1, to, named]);
    // Searches leave folders out whose names begin with a dot, unless they are named.
    if (mine === '**' && other !== undefined && !other.startsWith('.')) open.push([at, to + 1, named]);
    if (mine !== undefined && other !== undefined && isAlike(mine, other))
      open.push([at + 1, to + 1, named || (/[^*]/.test(mine) && /[^*]/.test(other))]);
  }
  return false;
}

/** Whether one of two segments matches the plainest name of the other. */
const isAlike = (one: string, other: string): boolean =>
  one !== '**' && other !== '**' && (matchesSegment(one, plainest(other)) || matchesSegment(other, plainest(one)));

const plainest = (segment: string): string => segment.replace(/\*/g, '').replace(/\?/g, 'x');
