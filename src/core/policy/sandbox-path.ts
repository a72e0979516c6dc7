// Sandbox paths, checked as text: strings of an attacker that may become names in a file system. The sandbox itself
// checks what exists at a path, at the time of use.
//
// VALIDATE_ARGS (`checkSandboxPath`) and AUTHORIZE (`canonicalizePath`) check the text independently of each other.

import { SEGMENT_BYTES_MAX, type ActionDefinition } from '../contract/policy/catalogue.js';
import { passWith, rejectWith, type CheckedValue } from '../contract/fault.js';
import { hasInvisibleCharacter } from '../contract/invisible.js';
import type { Policy } from './policy.js';

declare const brand: unique symbol;

/** A path that passed a check of this file; only that of `canonicalizePath` is canonical as well. */
export type SandboxPath = string & { readonly [brand]: 'SandboxPath' };

export interface SandboxPathOptions {
  /** C27: whether the path may end with a slash. The root `/sandbox/` always does. */
  readonly trailingSlash: boolean;
  /** C22: `reject` makes a `..` segment invalid; `defer` lets AUTHORIZE resolve it. */
  readonly dotdot: 'reject' | 'defer';
  readonly path_bytes_max: number;
  /** C28: whether to reject names that have another meaning on another platform. */
  readonly portable_names: boolean;
}

/** The path options that the policy and the action's definition set. */
export const pathOptionsOf = ({ trailingSlash }: ActionDefinition, policy: Policy): SandboxPathOptions => ({
  trailingSlash,
  dotdot: policy.knobs.dotdot,
  path_bytes_max: policy.limits.path_bytes_max,
  portable_names: policy.sandbox.portable_names,
});

/** The root of every path that an agent may name. */
export const SANDBOX_ROOT = '/sandbox/';

/** Reserved for temporary files of the executor (C30). The comparison ignores upper and lower case. */
const RESERVED_PREFIX = '.turnpike-';

// Control characters and the backslash (C28): each has a special meaning for some program that reads names.
const ILLEGAL_CHARACTER = /[\u0000-\u001f\u007f-\u009f\\]/;
const ASCII = /^[\u0000-\u007f]*$/;

/** Windows opens a device for these names, with any text after the first point. */
const DEVICE_NAME = /^(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9\u00b9\u00b2\u00b3]) *(?:\.|$)/i;
/** Windows creates a second, short name for a long one: PROGRA~1. */
const SHORT_NAME = /^[^.]{1,6}~\d{1,6}(?:\.[^.]{0,3})?$/;
const NOT_PORTABLE_CHARACTER = /[<>:"|?*]/;

/**
 * The path check of VALIDATE_ARGS: whether the text is a valid path below `/sandbox/` (S0-42 to S0-44, C21, C22, C27,
 * C28).
 * @returns the path unchanged, or INVALID_ARGS
 */
export function checkSandboxPath(raw: string, options: SandboxPathOptions): CheckedValue<SandboxPath> {
  const problem = textProblem(raw, options) ?? spellingProblem(raw, options);
  return problem === null ? passWith(asSandboxPath(raw)) : rejectWith('INVALID_ARGS', `path.${problem}`);
}

/**
 * The path check of AUTHORIZE: resolves `.` and `..`, decides whether the result is inside `/sandbox/` (S0-47), repeats
 * every rule of `checkSandboxPath`, and denies the names that are reserved for the executor.
 * The result retains a slash at the end, so that an executor can require a directory.
 * @returns the canonical path, or POLICY_VIOLATION with cause SANDBOX
 */
export function canonicalizePath(raw: string, options: SandboxPathOptions): CheckedValue<SandboxPath> {
  const unreadable = textProblem(raw, options);
  if (unreadable !== null) return rejectWith('POLICY_VIOLATION', `sandbox.${unreadable}`, 'SANDBOX');
  const canonical = resolveDots(raw);
  if (!canonical.startsWith(SANDBOX_ROOT)) return rejectWith('POLICY_VIOLATION', 'sandbox.outside', 'SANDBOX');
  const problem = spellingProblem(raw, options) ?? reservedProblem(canonical);
  return problem === null
    ? passWith(asSandboxPath(canonical))
    : rejectWith('POLICY_VIOLATION', `sandbox.${problem}`, 'SANDBOX');
}

/** C26: compares the exact ending of the canonical path. For `.txt`, `/sandbox/.txt` matches, `/sandbox/a.TXT` not. */
export const isExtensionAllowed = (path: SandboxPath, endings: readonly string[]): boolean =>
  endings.some((ending) => path.endsWith(ending.startsWith('.') ? ending : `/${ending}`));

/** Returns the number of names below the root: 0 for `/sandbox/`, 2 for `/sandbox/a/b.txt`. */
export const segmentCount = (path: SandboxPath): number => segmentsOf(path).length;

/** The only place that creates a `SandboxPath`. */
const asSandboxPath = (path: string): SandboxPath => path as SandboxPath;

/** Returns the problem of a text that cannot be a path, or null. */
function textProblem(raw: string, { path_bytes_max }: SandboxPathOptions): string | null {
  if (Buffer.byteLength(raw) > path_bytes_max) return 'path_bytes_max';
  if (ILLEGAL_CHARACTER.test(raw) || !raw.isWellFormed()) return 'illegal_character';
  if (ASCII.test(raw)) return null;
  // C88
  if (hasInvisibleCharacter(raw)) return 'invisible_character';
  // Each file has exactly one spelling: the file system compares bytes, people compare what they see (C28).
  return raw === raw.normalize('NFC') ? null : 'not_nfc';
}

/** Returns the rule that the text of the path breaks before `.` and `..` are resolved, or null. */
function spellingProblem(raw: string, options: SandboxPathOptions): string | null {
  if (!raw.startsWith(SANDBOX_ROOT)) return 'prefix';
  if (raw === SANDBOX_ROOT) return null;
  if (raw.endsWith('/') && !options.trailingSlash) return 'trailing_slash';
  for (const segment of segmentsOf(raw)) {
    const problem = segmentProblem(segment, options);
    if (problem !== null) return problem;
  }
  return null;
}

function segmentProblem(segment: string, { dotdot, portable_names }: SandboxPathOptions): string | null {
  if (segment === '') return 'empty_segment';
  if (segment === '.') return 'dot_segment';
  if (segment === '..') return dotdot === 'reject' ? 'dotdot_segment' : null;
  if (Buffer.byteLength(segment) > SEGMENT_BYTES_MAX) return 'segment_bytes_max';
  return portable_names && !isPortable(segment) ? 'not_portable' : null;
}

const isPortable = (segment: string): boolean =>
  !NOT_PORTABLE_CHARACTER.test(segment) &&
  !DEVICE_NAME.test(segment) &&
  !SHORT_NAME.test(segment) &&
  !segment.endsWith('.') &&
  !segment.endsWith(' ');

const reservedProblem = (canonical: string): string | null =>
  segmentsOf(canonical).some((segment) => segment.toLowerCase().startsWith(RESERVED_PREFIX)) ? 'reserved_name' : null;

/** Returns the names between the slashes below the root. A slash at the end adds no empty name. */
function segmentsOf(path: string): readonly string[] {
  const below = path.slice(SANDBOX_ROOT.length);
  if (below === '') return [];
  return (below.endsWith('/') ? below.slice(0, -1) : below).split('/');
}

/** Resolves `.` and `..` lexically, as POSIX does. The root keeps its slash; a relative path stays unchanged. */
function resolveDots(raw: string): string {
  if (!raw.startsWith('/')) return raw;
  const names: string[] = [];
  for (const segment of raw.split('/')) {
    if (segment === '..') names.pop();
    else if (segment !== '' && segment !== '.') names.push(segment);
  }
  const path = `/${names.join('/')}`;
  return raw.endsWith('/') || `${path}/` === SANDBOX_ROOT ? `${path}/` : path;
}
