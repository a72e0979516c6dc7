// Reads the untrusted JSON of a bag. A file was hashed once with the bag. Parsing reads it again, so it is hashed again
// and must not have changed.

import { createHash } from 'node:crypto';
import type { InfoElement } from '../bagit/bag-info.js';
import { LineReader } from '../bagit/line-reader.js';
import type { FileRecord } from '../bagit/inventory.js';
import { type Json, scanJson, canonicalJson } from '../../../core/contract/json.js';
import type { ExportBundle } from '../../../core/contract/evidence/export-bundle.js';
import { isConforming } from '../../../core/contract/validators.js';
import { BagError } from '../../../core/errors.js';
import type { NoteVerifier } from '../../../core/ledger/proof/signed-note.js';
import type { BagTree } from '../../../engine/ports/bag-tree.js';
import type { Static, TSchema } from 'typebox';
import { EXPORT_BAG_LIMITS } from '../bag-format.js';
import type { ExportBagFindings, LogLimits } from './bag-report.js';

/** A bag whose files were hashed. */
export interface ExportBagReading {
  readonly tree: BagTree;
  readonly files: ReadonlyMap<string, FileRecord>;
  readonly findings: ExportBagFindings;
}

/** A bag whose manifest has been read. */
export interface BagUnderCheck {
  readonly reading: ExportBagReading;
  readonly manifest: ExportBundle;
  readonly info: readonly InfoElement[];
  /** The key that must have signed the bag; null if the caller names none. */
  readonly key: NoteVerifier | null;
  readonly limits: LogLimits;
}

export interface ExportBagLine {
  /** From 1. */
  readonly number: number;
  readonly text: string;
}

const RETURN = 0x0d;
const NEWLINE = 0x0a;

/**
 * The lines of a file below `data/`, each of which must end with a line feed, in groups per piece of the file: a
 * promise per line would need far more memory than the lines. Ends early, with a finding, if the file is missing,
 * malformed or changed.
 */
export async function* readLines(reading: ExportBagReading, path: string): AsyncGenerator<readonly ExportBagLine[]> {
  const lines = new LineReader('UTF-8', EXPORT_BAG_LIMITS.line_characters_max);
  let number = 0;
  let last = NEWLINE;
  const toLine = (text: string): ExportBagLine => ({ number: (number += 1), text: copyText(text) });
  for await (const piece of readPieces(reading, path)) {
    last = piece.at(-1) ?? last;
    const found = piece.includes(RETURN) ? 'encoding' : lines.push(piece);
    if (typeof found === 'string') {
      addFault(reading, path, found);
      return;
    }
    yield found.map(toLine);
  }
  const rest = lines.end();
  if (typeof rest === 'string') {
    addFault(reading, path, rest);
    return;
  }
  yield rest.map(toLine);
  if (last !== NEWLINE || lines.hasByteOrderMark) addFault(reading, path, 'encoding');
}

function addFault({ findings }: ExportBagReading, path: string, fault: 'encoding' | 'line'): void {
  if (fault === 'line') findings.add('bundle.limit', path, 'a line is too long');
  else findings.add('bundle.json_not_canonical', path, 'it is not lines of UTF-8, each with a line feed at its end');
}

/** A whole file; null, with a finding, if it is missing, too large, not UTF-8 or changed. */
export async function readBagText(
  reading: ExportBagReading,
  path: string,
  bytesMax: number = EXPORT_BAG_LIMITS.manifest_bytes_max,
): Promise<string | null> {
  const { files, findings } = reading;
  if ((files.get(path)?.bytes ?? 0) > bytesMax) {
    findings.add('bundle.limit', path, `more than ${bytesMax} bytes`);
    return null;
  }
  const known = findings.errors;
  const pieces: Uint8Array[] = [];
  for await (const piece of readPieces(reading, path)) pieces.push(piece);
  if (findings.errors > known) return null;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.concat(pieces));
  } catch {
    findings.add('bundle.json_malformed', path, 'it is not UTF-8');
    return null;
  }
}

async function* readPieces({ tree, files, findings }: ExportBagReading, path: string): AsyncGenerator<Uint8Array> {
  const record = files.get(path);
  const expected = record?.expected.sha256;
  if (record === undefined || expected === undefined) {
    findings.add('bundle.file_missing', path, 'a bundle has this file, and its SHA-256 in a manifest');
    return;
  }
  const hash = createHash('sha256');
  let bytes = 0;
  try {
    for await (const piece of tree.read(path)) {
      bytes += piece.length;
      if (bytes > record.bytes) break;
      hash.update(piece);
      yield piece;
    }
  } catch (error) {
    if (!(error instanceof BagError)) throw error;
    findings.add('bundle.file_changed', path, error.message);
    return;
  }
  if (bytes !== record.bytes || hash.digest('hex') !== expected) {
    findings.add('bundle.file_changed', path, 'it is not what its manifest says, or changed while it was read');
  }
}

/** A copy of the text: a substring would keep its source, and in the end the whole file, in memory. */
export const copyText = (text: string): string => Buffer.from(text).toString();

/** Limits of the values that a text contains, checked before parsing. */
export interface TextBounds {
  readonly groups_max: number;
  readonly commas_max: number;
}

export const LINE_BOUNDS: TextBounds = {
  groups_max: EXPORT_BAG_LIMITS.line_groups_max,
  commas_max: EXPORT_BAG_LIMITS.line_commas_max,
};
export const MANIFEST_BOUNDS: TextBounds = {
  groups_max: EXPORT_BAG_LIMITS.manifest_groups_max,
  commas_max: EXPORT_BAG_LIMITS.manifest_commas_max,
};

/** Why a text is invalid. The caller adds its place. */
export type TextProblem = readonly ['bundle.limit' | 'bundle.json_malformed' | 'bundle.schema', string];

/** Parses a text strictly and within limits, and validates it against `schema`. */
export function parseText<T extends TSchema>(schema: T, text: string, bounds: TextBounds): Static<T> | TextProblem {
  if (!isBounded(text, bounds)) return ['bundle.limit', 'it holds too many values'];
  const scanned = scanJson(text, EXPORT_BAG_LIMITS.depth_max);
  if (!scanned.ok) return ['bundle.json_malformed', `it is not strict JSON: ${scanned.problem}`];
  return isInstance(schema, scanned.value) ? scanned.value : ['bundle.schema', 'it is not of its schema'];
}

const isInstance = <T extends TSchema>(schema: T, value: Json): value is Json & Static<T> =>
  isConforming(schema, value);

export const isTextProblem = (value: unknown): value is TextProblem => Array.isArray(value);

/** Whether the text is the canonical JSON of its value. */
export const isCanonical = (text: string, value: unknown): boolean => canonicalJson(value) === text;

/** Counts characters inside strings, too: the limits leave room for that in valid text. */
function isBounded(text: string, { groups_max, commas_max }: TextBounds): boolean {
  let [groups, commas] = [0, 0];
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 0x2c) commas += 1;
    else if (code === 0x7b || code === 0x5b) groups += 1;
  }
  return groups <= groups_max && commas <= commas_max;
}
