import type { ExecutionCause } from '../../contract/fault.js';

/** Begins the name of every temporary file: never listed, never counted, not addressable. */
export const TEMP_PREFIX = '.turnpike-tmp-';
const ROOT = '/sandbox/';
/** Refused in AUTHORIZE long before (C28); here only so that nothing depends on that. */
const UNFIT = /[\0-\x1f\x7f-\x9f\\]/;
/** The kernel ends the path of a removed file so, and what is not UTF-8 in a path is read as U+FFFD. */
const AMBIGUOUS = / \(deleted\)|\ufffd/;

/** A sandbox path, taken apart. */
export interface ParsedPath {
  readonly parents: readonly string[];
  /** The same with slashes; empty for what stands in the root, and for the root. */
  readonly parent: string;
  readonly name: string;
  /** The path ended with a slash, so it can only mean a directory. */
  readonly slash: boolean;
  /** Might the kernel call something else so, too? */
  readonly ambiguous: boolean;
}

/** Facts are gathered and the action is performed one right after the other, on the same path. */
let latest: { readonly path: string; readonly parsed: ParsedPath } | null = null;

/** Takes a path (attacker-controlled) apart, or says why not. */
export function parsePath(path: unknown): ParsedPath | ExecutionCause {
  if (latest !== null && path === latest.path) return latest.parsed;
  if (typeof path !== 'string') return 'INTERNAL';
  const parsed = parse(path);
  if (typeof parsed !== 'string') latest = { path, parsed };
  return parsed;
}

/** The root is the name `.` in itself, so that nothing else needs to know of it. */
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
