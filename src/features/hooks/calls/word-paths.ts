// The paths that a word of a command may name. Programs take paths as words, behind an option, and as a part of a
// word: `cat .env`, `grep -hf.env x`, `git show HEAD:.env`, `--include=.env`. Only the file system knows where a path
// leads, so the gate records the paths that it resolves otherwise than they are written.

import { isJsonObject, type Json } from '../../../core/contract/json.js';

/** More of them have no reading. */
const NAMED_PATHS_MAX = 2_048;
/** Of all of them together. More have no reading: each is resolved and compared with every rule. */
const NAMED_CHARS_MAX = 131_072;

/** The path of a text of a command, relative to the project if it is inside. */
type WordPaths = ReadonlyMap<string, string>;

/** Each text in the words that may be a path, once; null if there are too many. */
export function namedPaths(words: readonly string[]): readonly string[] | null {
  const named = new Set<string>();
  let chars = 0;
  for (const word of words) {
    for (const piece of piecesOf(word)) {
      if (!named.has(piece)) chars += piece.length;
      named.add(piece);
    }
    if (named.size > NAMED_PATHS_MAX || chars > NAMED_CHARS_MAX) return null;
  }
  return [...named];
}

/** The addresses of other machines, whose path is no path here. */
const ADDRESS = /^(?:[a-z]+\+)?(?:https?|ssh|git|ftps?):\/\//i;

/** What a search leaves out is not read. */
const LEAVES_OUT = /^--exclude(?:-dir)?=/;

function piecesOf(word: string): readonly string[] {
  const isWhole = ADDRESS.test(word) || LEAVES_OUT.test(word);
  // `:(top)path` is a path for git.
  const pieces = isWhole ? [word] : [word, ...word.split(/[=,@)]|:(?!\/\/)/)];
  const value = /^--[^=]+=(.+)$/s.exec(word)?.[1];
  const file = /file:\/\/[^/]*(\/.*)$/is.exec(word)?.[1];
  return [...pieces, ...(isWhole || value === undefined ? [] : [value]), ...(file === undefined ? [] : [file])]
    .flatMap((piece) => [piece, ...behindOptions(piece)])
    .filter(isNamed);
}

/** What may follow options that are written together: `-hf.env` can be `-h -f .env`. */
const behindOptions = (piece: string): readonly string[] =>
  /^-[^-]/.test(piece)
    ? Array.from(piece)
        .slice(2)
        .map((_, index, rest) => rest.slice(index).join(''))
    : [];

const isNamed = (piece: string): boolean => piece !== '' && piece !== '-' && piece !== '--';

/** The path without `.`, as far as its text says. `..` cannot be resolved without the file system, and is left out. */
export function writtenPath(text: string, folder: string): string {
  const path = withoutDots(text);
  if (/^[/~]/.test(text)) return path;
  if (path === '') return folder;
  return folder === '.' ? path : `${folder}/${path}`;
}

const withoutDots = (text: string): string =>
  text
    .split('/')
    .filter((segment, index) => segment !== '.' && segment !== '..' && (segment !== '' || index === 0))
    .join('/');

/** The paths that a text of a command names in a folder, as written and as resolved. */
export function pathsOfText(text: string, folder: string, resolved: WordPaths): readonly string[] {
  const found = resolved.get(text);
  const written = writtenPath(text, folder);
  if (found === undefined) return [written];
  // An absolute path of the project is inside of it. A relative one also counts by its name, which may be a link.
  return /^[/~]/.test(text) ? [found] : [found, written];
}

/** The recorded paths of the words of a command; null if they are malformed. */
export function readWordPaths(recorded: Json | undefined): WordPaths | null {
  if (recorded === undefined) return new Map();
  if (!Array.isArray(recorded)) return null;
  const paths = new Map<string, string>();
  for (const one of recorded as readonly Json[]) {
    if (!isJsonObject(one)) return null;
    const { word, path } = one;
    if (typeof word !== 'string' || typeof path !== 'string') return null;
    paths.set(word, path);
  }
  return paths;
}
