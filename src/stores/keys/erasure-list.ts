// The list of all erasures of a ledger, next to the keys of its cases. It is kept outside of backups: a restore
// destroys again what was erased after its backup, so that no backup brings erased content back.
//
//   L1. Each record is signed with the ledger key, and has its number and the hash of the record before it. So a record
//       cannot be changed, left out or moved. That the last records are missing shows in comparison with an older list.
//   L2. A record is durable before the key is destroyed.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { formatHeader, refuseOtherFormat, type FileFormat } from '../../core/contract/file-format.js';
import { readJson } from '../../core/contract/json.js';
import { sha256 } from '../../core/contract/hash.js';
import type { ErasureSeal } from '../../engine/ports/ledger/ledger-store.js';
import { folderNames } from '../../system/files/folder-names.js';
import { readSmallFile, replaceFile } from '../../system/files/small-file.js';
import { tamperedError } from '../ledger/store-errors.js';
import { withFileLock } from '../sqlite/writer-lock.js';

/** In the folder of the case keys. */
export const ERASURE_LIST = 'erasures.list';
const LIST_BYTES_MAX = 64 * 1_024 * 1_024;
const NOTE_BYTES_MAX = 4_096;
const FORMAT: FileFormat = { prefix: 'turnpike-erasures ', newest: 1 };
const HEADER = formatHeader(FORMAT);
const NO_RECORD = '0'.repeat(64);
const RECORD = /^turnpike erasure list\n(\d{1,15})\n([0-9a-f]{64})\n([^\n]+)\n([1-9]\d{0,8})\n([^\n]*)\n([^\n]*)\n$/;

/** An erased key of a case. */
export interface ListedErasure {
  readonly case_id: string;
  readonly key_no: number;
  readonly at: string;
  readonly by: string;
}

/** A list whose records are signed and complete from the first one on. */
export interface ErasureList {
  readonly erasures: readonly ListedErasure[];
  /** The SHA-256 of each record, in order. */
  readonly hashes: readonly string[];
}

export const EMPTY_LIST: ErasureList = { erasures: [], hashes: [] };

/** @returns an empty list if there is no file @throws LedgerError as `parseErasureList` */
export function readErasureList(path: string, seal: ErasureSeal): ErasureList {
  const bytes = readSmallFile(path, { bytesMax: LIST_BYTES_MAX });
  return bytes === null ? EMPTY_LIST : parseErasureList(Buffer.from(bytes).toString('utf8'), seal, path);
}

/**
 * @throws LedgerError LEDGER_TAMPERED for a record that is not signed by the ledger, or does not continue the list,
 *   LEDGER_UNSUPPORTED for a later format
 */
function parseErasureList(text: string, seal: ErasureSeal, path: string): ErasureList {
  refuseOtherFormat(text, FORMAT, path);
  const [header, ...lines] = text.split('\n');
  if (header !== HEADER || lines.pop() !== '') throw damagedError(path, 'is not a complete list of erasures');
  const list = { erasures: [] as ListedErasure[], hashes: [] as string[] };
  for (const line of lines) {
    const statement = seal.open(noteIn(line));
    if (statement === null) throw damagedError(path, `record ${list.hashes.length + 1} is not signed by this ledger`);
    const [, number, before, case_id = '', key_no, at = '', by = ''] = RECORD.exec(statement) ?? [];
    if (Number(number) !== list.hashes.length + 1 || before !== (list.hashes.at(-1) ?? NO_RECORD)) {
      throw damagedError(path, `record ${list.hashes.length + 1} does not continue the record before it`);
    }
    list.erasures.push({ case_id, key_no: Number(key_no), at, by });
    list.hashes.push(sha256(statement));
  }
  return list;
}

function noteIn(line: string): string {
  const value = readJson(line);
  return typeof value === 'string' ? value : '';
}

/** Adds erasures that the list does not have yet, durably. @throws LedgerError LEDGER_TAMPERED, LEDGER_LOCKED */
export function appendErasures(path: string, seal: ErasureSeal, found: readonly ListedErasure[]): void {
  if (found.length === 0) return;
  withFileLock(path, () => {
    const list = readErasureList(path, seal);
    const listed = new Set(list.erasures.map(keyOf));
    const added = found.filter((erasure) => !listed.has(keyOf(erasure))).sort(byTime);
    if (added.length === 0) return;
    let before = list.hashes.at(-1) ?? NO_RECORD;
    const lines = added.map(({ case_id, key_no, at, by }, index) => {
      const number = list.hashes.length + index + 1;
      const statement = `turnpike erasure list\n${number}\n${before}\n${case_id}\n${key_no}\n${at}\n${by}\n`;
      before = sha256(statement);
      return `${JSON.stringify(seal.seal(statement))}\n`;
    });
    replaceFile(path, `${existsSync(path) ? textIn(path) : `${HEADER}\n`}${lines.join('')}`, 0o600);
  });
}

/**
 * Signs what a replaced key has signed in the folder of the case keys: the notes of erased and replaced keys, and the
 * list of erasures. Each file is replaced in one step, so this can be interrupted and repeated. A note that `seal` does
 * not open stays as it is: reading it reports that.
 * @param seal opens notes of the old keys, and signs with the new one
 */
export function resignErasures(directory: string, seal: ErasureSeal): void {
  for (const name of folderNames(directory)) {
    if (!/\.\d+\.(?:erased|replaced)$/.test(name)) continue;
    const path = join(directory, name);
    const bytes = readSmallFile(path, { bytesMax: NOTE_BYTES_MAX, forbiddenMode: 0o077 });
    const statement = bytes === null ? null : seal.open(Buffer.from(bytes).toString('utf8'));
    if (statement !== null) replaceFile(path, seal.seal(statement), 0o600);
  }
  resignErasureList(join(directory, ERASURE_LIST), seal);
}

/** Signs every record again. Numbers and hashes stay, because signatures are not part of them. @throws LedgerError */
function resignErasureList(path: string, seal: ErasureSeal): void {
  if (!existsSync(path)) return;
  withFileLock(path, () => {
    readErasureList(path, seal);
    const [header = '', ...lines] = textIn(path).trimEnd().split('\n');
    const signed = lines.map((line) => JSON.stringify(seal.seal(seal.open(noteIn(line)) ?? '')));
    replaceFile(path, `${[header, ...signed].join('\n')}\n`, 0o600);
  });
}

const textIn = (path: string): string =>
  Buffer.from(readSmallFile(path, { bytesMax: LIST_BYTES_MAX }) ?? []).toString('utf8');

const keyOf = ({ case_id, key_no }: ListedErasure): string => `${case_id} ${key_no}`;

const byTime = (one: ListedErasure, other: ListedErasure): number =>
  one.at === other.at ? one.key_no - other.key_no : one.at < other.at ? -1 : 1;

/** Whether `list` begins with all records of `older`. */
export const extendsList = (list: ErasureList, older: Pick<ErasureList, 'hashes'>): boolean =>
  older.hashes.length <= list.hashes.length && older.hashes.every((hash, index) => list.hashes[index] === hash);

/** The highest erased key of each case. */
export function erasedKeys(list: ErasureList): ReadonlyMap<string, ListedErasure> {
  const last = new Map<string, ListedErasure>();
  for (const erasure of list.erasures) {
    if (erasure.key_no > (last.get(erasure.case_id)?.key_no ?? 0)) last.set(erasure.case_id, erasure);
  }
  return last;
}

const damagedError = (path: string, why: string): Error =>
  tamperedError(`${path} ${why}: use the newest copy of the list that is kept outside of the backups`);
