// Sandbox paths, checked as text: strings of an attacker that may become names in a file system. The sandbox itself
// checks what exists at a path, at the time of use.
//
// VALIDATE_ARGS (`checkSandboxPath`) and AUTHORIZE (`canonicalizePath`) check the text independently of each other.

import { VISIBLE_NAMES } from '../contract/policy/flags.js';
import { SEGMENT_BYTES_MAX, type ActionDefinition } from '../contract/policy/actions.js';
import { passWith, rejectWith, type CheckedValue } from '../contract/fault.js';
import { hasInvisibleCharacter } from '../contract/invisible.js';
import type { Policy } from './policy.js';

declare const brand: unique symbol;

/** A path that passed a check of this file; only that of `canonicalizePath` is canonical as well. */
export type SandboxPath = string & { readonly [brand]: 'SandboxPath' };

export interface SandboxPathOptions {
  /** C27: may it end with a slash? The root `/sandbox/` always does. */
  readonly trailingSlash: boolean;
  /** C22: is a `..` segment invalid, or resolved by AUTHORIZE? */
  readonly dotdot: 'reject' | 'defer';
  readonly path_bytes_max: number;
  /** C28: refuse names that another platform would take for something else. */
  readonly portable_names: boolean;
  /** C88: refuse characters that are invisible. */
  readonly visible: boolean;
}

/** What the policy, and the action itself, say about the paths of an action. */
export const pathOptionsOf = ({ trailingSlash }: ActionDefinition, policy: Policy): SandboxPathOptions => ({
  trailingSlash,
  dotdot: policy.knobs.dotdot,
  path_bytes_max: policy.limits.path_bytes_max,
  portable_names: policy.sandbox.portable_names,
  visible: policy.flags.has(VISIBLE_NAMES),
});

/** The part of the path above everything an agent may name. */
export const SANDBOX_ROOT = '/sandbox/';

/** Names that begin like this, in either case, belong to the executor: its half-written files (C30). */
const RESERVED_PREFIX = '.turnpike-';

// C0, DEL, C1 and the backslash (C28): each of them means something to some reader of names.
const ILLEGAL_CHARACTER = /[\u0000-\u001f\u007f-\u009f\\]/;
const ASCII = /^[\u0000-\u007f]*$/;

/** Windows opens a device for these, whatever follows the first point. */
const DEVICE_NAME = /^(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9\u00b9\u00b2\u00b3]) *(?:\.|$)/i;
/** Windows makes a second, short name for long ones: PROGRA~1. */
const SHORT_NAME = /^[^.]{1,6}~\d{1,6}(?:\.[^.]{0,3})?$/;
const NOT_PORTABLE_CHARACTER = /[<>:"|?*]/;

/**
 * The path check of VALIDATE_ARGS: is this how a path below `/sandbox/` is spelt? (S0-42 to S0-44, C21, C22, C27, C28)
 * @returns the path as it was given, or INVALID_ARGS
 */
export function checkSandboxPath(raw: string, options: SandboxPathOptions): CheckedValue<SandboxPath> {
  const problem = textProblem(raw, options) ?? spellingProblem(raw, options);
  return problem === null ? passWith(asSandboxPath(raw)) : rejectWith('INVALID_ARGS', `path.${problem}`);
}

/**
 * The path check of AUTHORIZE: resolves `.` and `..` first, then decides whether the result lies inside `/sandbox/`
 * (S0-47), then repeats every rule of `sandboxPath`, and keeps reserved names for the executor.
 * A slash at the end stays, so that an executor can insist on a directory.
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

/** C26: an ending as it is written, on the canonical path. `/sandbox/.txt` has one, `/sandbox/a.TXT` has not. */
export const isExtensionAllowed = (path: SandboxPath, endings: readonly string[]): boolean =>
  endings.some((ending) => path.endsWith(ending));

/** How many names stand below the root: `/sandbox/` has none, `/sandbox/a/b.txt` two. */
export const segmentCount = (path: SandboxPath): number => segmentsOf(path).length;

/** The one place where the brand is given. */
const asSandboxPath = (path: string): SandboxPath => path as SandboxPath;

/** What makes a text no path at all, whatever it may name. */
function textProblem(raw: string, { path_bytes_max, visible }: SandboxPathOptions): string | null {
  if (Buffer.byteLength(raw) > path_bytes_max) return 'path_bytes_max';
  if (ILLEGAL_CHARACTER.test(raw) || !raw.isWellFormed()) return 'illegal_character';
  if (ASCII.test(raw)) return null;
  if (visible && hasInvisibleCharacter(raw)) return 'invisible_character';
  // One file has one spelling: the file system compares bytes, people do not (C28).
  return raw === raw.normalize('NFC') ? null : 'not_nfc';
}

/** Which rule the path breaks as it is spelt, before anything is resolved. */
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

/** What stands between the slashes below the root; a slash at the end is not followed by an empty name. */
function segmentsOf(path: string): readonly string[] {
  const below = path.slice(SANDBOX_ROOT.length);
  if (below === '') return [];
  return (below.endsWith('/') ? below.slice(0, -1) : below).split('/');
}

/** Lexically, as POSIX does; the sandbox itself is always spelt with its slash. A relative path stays relative. */
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
