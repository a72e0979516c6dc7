import type { ExecutionCause } from '../../core/contract/fault.js';

/** Prefix of every temporary file: never listed, never counted, not addressable. */
export const TEMP_PREFIX = '.turnpike-tmp-';
const ROOT = '/sandbox/';
/** AUTHORIZE denies these before (C28); checked again so that nothing depends on it. */
const UNFIT = /[\0-\x1f\x7f-\x9f\\]/;
/** The kernel appends ` (deleted)` to the path of a removed file, and invalid UTF-8 in a path reads as U+FFFD. */
const AMBIGUOUS = / \(deleted\)|\ufffd/;

/** A parsed sandbox path. */
export interface ParsedPath {
  readonly parents: readonly string[];
  /** The parents joined with slashes; empty for a name in the root, and for the root itself. */
  readonly parent: string;
  readonly name: string;
  /** The path ends with a slash, so it can only name a directory. */
  readonly slash: boolean;
  /** Whether the kernel may report this path for another file too. */
  readonly ambiguous: boolean;
}

/** Facts are gathered and then the action runs on the same path, so the last result is cached. */
let latest: { readonly path: string; readonly parsed: ParsedPath } | null = null;

/** Parses a path (attacker-controlled). @returns the parsed path, or why it is invalid */
export function parsePath(path: unknown): ParsedPath | ExecutionCause {
  if (latest !== null && path === latest.path) return latest.parsed;
  if (typeof path !== 'string') return 'INTERNAL';
  const parsed = parse(path);
  if (typeof parsed !== 'string') latest = { path, parsed };
  return parsed;
}

/** The root has the name `.` in itself, so that no other code needs a special case for it. */
function parse(path: string): ParsedPath | ExecutionCause {
  if (path === ROOT) return { parents: [], parent: '', name: '.', slash: true, ambiguous: false };
  if (!path.startsWith(ROOT) || !path.isWellFormed() || UNFIT.test(path)) return 'INTERNAL';
  const slash = path.endsWith('/');
  const parents = path.slice(ROOT.length, slash ? -1 : undefined).split('/');
  if (parents.some((segment) => segment === '' || segment === '.' || segment === '..')) return 'INTERNAL';
  if (parents.some((segment) => segment.toLowerCase().startsWith(TEMP_PREFIX))) return 'PERMISSION_DENIED';
  const name = parents.pop() ?? '';
  return { parents, parent: parents.join('/'), name, slash, ambiguous: AMBIGUOUS.test(path) };
}
