// Loads specs: a document that a caller passes, or a file, which is checked for changes at every step.

import { realpathSync, statSync } from 'node:fs';
import type { SpecFact } from '../contract/session-records.js';
import { SPEC_BYTES_MAX, type SessionSpec } from '../contract/session-spec.js';
import { UsageError, usageError } from '../../../core/errors.js';
import { readSmallFile } from '../../../system/files/small-file.js';
import { structureHash } from '../rules/spec/spec-structure.js';
import { readSpec, type SpecFileCheck } from './read-spec.js';
import type { SpecMaterial } from '../session-inputs.js';

const FINDINGS_SHOWN = 5;

export class SpecSource {
  /** The hash of a file whose stamp has not changed: most steps change no spec. */
  readonly #known = new Map<string, { readonly stamp: string; readonly fact: SpecFact }>();

  /** @throws UsageError for an invalid spec, with its problems */
  load(given: string | SessionSpec, lanes: ReadonlySet<string>): SpecMaterial {
    const file = typeof given === 'string' ? resolveFile(given) : null;
    // A document is serialized and parsed like a file: the caller's object may have getters, and may change.
    const bytes = file === null ? bytesOf(given) : readFile(file);
    const check = readSpec(bytes, lanes);
    if (check.spec === null) throw invalidSpecError(check);
    return { spec: check.spec, file };
  }

  /** The present state of the file; null for a spec without a file. */
  readFact(file: string | null): SpecFact | null {
    if (file === null) return null;
    const stamp = stampOf(file);
    if (stamp === null) return { problem: 'not_found' };
    const known = this.#known.get(file);
    if (known?.stamp === stamp) return known.fact;
    const fact = parseFact(file);
    this.#known.set(file, { stamp, fact });
    return fact;
  }
}

function parseFact(file: string): SpecFact {
  try {
    const { spec } = readSpec(readFile(file), null);
    return spec === null ? { problem: 'unreadable' } : { structure_hash: structureHash(spec) };
  } catch {
    return { problem: 'unreadable' };
  }
}

/** The absolute path of a file, for later reads. @throws UsageError if there is no such file */
function resolveFile(path: string): string {
  try {
    return realpathSync(path);
  } catch (cause) {
    throw unreadableError(path, cause);
  }
}

/** Reads a regular file of at most SPEC_BYTES_MAX bytes. @throws UsageError for anything else */
function readFile(path: string): Uint8Array {
  let bytes: Uint8Array | null;
  try {
    bytes = readSmallFile(path, { bytesMax: SPEC_BYTES_MAX });
  } catch (cause) {
    throw unreadableError(path, cause);
  }
  if (bytes === null) throw unreadableError(path);
  return bytes;
}

/** A value that changes whenever the file does; null if there is no file. */
function stampOf(path: string): string | null {
  try {
    const { ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
    return `${ino} ${size} ${mtimeNs} ${ctimeNs}`;
  } catch {
    // Deleted, in a folder without permission, or a circular link: no spec can be read from this path.
    return null;
  }
}

const unreadableError = (path: string, cause?: unknown): UsageError =>
  new UsageError({ code: 'USAGE', message: `the spec ${JSON.stringify(path)} cannot be read`, cause });

/** @throws UsageError for a value that JSON cannot represent: a cycle, a function, or unbounded nesting */
function bytesOf(given: unknown): Uint8Array {
  let text: unknown;
  try {
    text = JSON.stringify(given);
  } catch (cause) {
    throw new UsageError({ code: 'USAGE', message: 'the spec is not JSON', cause });
  }
  if (typeof text !== 'string') throw usageError('the spec is not JSON');
  return Buffer.from(text);
}

function invalidSpecError({ findings }: SpecFileCheck): UsageError {
  const shown = findings.slice(0, FINDINGS_SHOWN).map(({ line, path, rule, message }) => {
    return `line ${line}${path === '' ? '' : ` ${path}`}: ${message} (${rule})`;
  });
  return usageError(['the spec cannot be worked through:', ...shown].join('\n'));
}
