// Loads specs: a document that a caller passes, or a file, which is checked for changes at every step.

import type { SpecFact } from '../contract/session-command.js';
import type { SessionSpec } from '../contract/session-spec.js';
import { UsageError, usageError } from '../../../core/errors.js';
import type { SpecFiles } from './spec-files.js';
import { structureHash } from '../rules/spec/spec-structure.js';
import { readSpec, type SpecFileCheck } from './read-spec.js';
import type { SpecMaterial } from '../session-inputs.js';

const FINDINGS_SHOWN = 5;

export class SpecSource {
  readonly #files: SpecFiles;
  /** The hash of a file whose stamp has not changed: most steps change no spec. */
  readonly #known = new Map<string, { readonly stamp: string; readonly fact: SpecFact }>();

  constructor(files: SpecFiles) {
    this.#files = files;
  }

  /** @throws UsageError for an invalid spec, with its problems */
  load(given: string | SessionSpec, lanes: ReadonlySet<string>): SpecMaterial {
    const file = typeof given === 'string' ? this.#files.resolve(given) : null;
    // A document is serialized and parsed like a file: the caller's object may have getters, and may change.
    const bytes = file === null ? bytesOf(given) : this.#files.read(file);
    const check = readSpec(bytes, lanes);
    if (check.spec === null) throw invalidSpecError(check);
    return { spec: check.spec, file };
  }

  /** The present state of the file; null for a spec without a file. */
  readFact(file: string | null): SpecFact | null {
    if (file === null) return null;
    const stamp = this.#files.stamp(file);
    if (stamp === null) return { problem: 'not_found' };
    const known = this.#known.get(file);
    if (known?.stamp === stamp) return known.fact;
    const fact = this.#parseFact(file);
    this.#known.set(file, { stamp, fact });
    return fact;
  }

  #parseFact(file: string): SpecFact {
    try {
      const { spec } = readSpec(this.#files.read(file), null);
      return spec === null ? { problem: 'unreadable' } : { structure_hash: structureHash(spec) };
    } catch {
      return { problem: 'unreadable' };
    }
  }
}

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
