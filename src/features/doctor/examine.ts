// What an examination of an installation reports.

import { inspectPath, machineFacts } from '../../system/machine-facts.js';
import { bindingProblem, bindingVersion } from '../../stores/sqlite/sqlite-binding.js';
import { diskSpace } from '../../system/files/file-disk-space.js';
import { folderNames } from '../../system/files/folder-names.js';
import { CaseKeys } from '../../stores/keys/case-keys.js';
import { ERASURE_LIST, readErasureList } from '../../stores/keys/erasure-list.js';
import { join } from 'node:path';
import { PolicyError, UsageError, LedgerError } from '../../core/errors.js';
import { refuseTrackedKeys } from '../../home/tracked-keys.js';
import type { HomePaths } from '../../home/home-paths.js';
import { hasFile } from '../../stores/keys/key-file.js';
import { listKeys } from '../../home/keys/list-keys.js';
import {
  createErasureSeal,
  isRotating,
  readLedgerSigner,
  readLedgerVerifier,
  rotationFiles,
} from '../../home/ledger-key.js';
import { waterMarksOf } from '../../runtime/storage/storage-guard.js';
import { parseOwnJson } from '../../core/contract/json.js';
import type { Clock } from '../../engine/ports/clock.js';
import type { LedgerStore, ExternalHeadStore } from '../../engine/ports/ledger/ledger-store.js';
import { readRestoreHistory } from '../../engine/restore-history.js';
import { checkExternalHead } from '../../core/ledger/verification/check-external-head.js';
import { LedgerReader } from '../../runtime/ledger/ledger-reader.js';

/**
 * `ok`: as it should be. `note`: worth knowing. `unchecked`: it could not be examined. `problem`: something is wrong,
 * and the text says what to do.
 */
export type DoctorLevel = 'ok' | 'note' | 'unchecked' | 'problem';

/** The subjects, in the order of the report. */
export const DOCTOR_SUBJECTS = [
  'versions',
  'format',
  'ledger',
  'keys',
  'permissions',
  'disk',
  'clock',
  'settings',
  'effects',
] as const;
export type DoctorSubject = (typeof DOCTOR_SUBJECTS)[number];

/** One line of the report. */
export interface DoctorFinding {
  readonly subject: DoctorSubject;
  readonly level: DoctorLevel;
  readonly text: string;
}

export const doctorFinding = (subject: DoctorSubject, level: DoctorLevel, text: string): DoctorFinding => ({
  subject,
  level,
  text,
});

// Permissions, keys, disk and machine of an installation. Nothing is written.

const NODE_MIN = [20, 19] as const;
const OTHERS = 0o077;
const DAY_MS = 86_400_000;
/** Age of a ledger key in days after which a note says so. */
const KEY_DAYS_MAX = 365;

/** @param version of this package */
export function examineMachine(version: string): readonly DoctorFinding[] {
  const { node, platform, isRoot } = machineFacts();
  const [major = 0, minor = 0] = node.split('.').map(Number);
  const isOld = major < NODE_MIN[0] || (major === NODE_MIN[0] && minor < NODE_MIN[1]);
  const binding = bindingVersion();
  const problem = bindingProblem(node, binding);
  return [
    doctorFinding('versions', 'ok', `turnpike ${version}`),
    isOld
      ? doctorFinding('versions', 'problem', `Node ${node} is too old: install Node ${NODE_MIN.join('.')} or later`)
      : doctorFinding('versions', 'ok', `Node ${node}`),
    doctorFinding('versions', problem === null ? 'ok' : 'problem', problem ?? `better-sqlite3 ${binding}`),
    platform === 'linux'
      ? doctorFinding('settings', 'ok', 'the file sandbox is safe on this platform')
      : doctorFinding('settings', 'problem', `the file sandbox is not safe on ${platform}: run on Linux`),
    ...(isRoot
      ? [doctorFinding('settings', 'note', 'commands run as root here: give the service a user of its own')]
      : []),
  ];
}

/** Files and folders that other users can reach. */
export function examinePermissions(paths: HomePaths): readonly DoctorFinding[] {
  const { next, retired } = rotationFiles(paths.ledgerKey);
  const ledgerKeys = [paths.ledgerKey.privateKey, next, retired];
  const secrets = [...ledgerKeys, paths.sessionKey, paths.tokens, join(paths.keys, 'overlay.key')];
  const cases = folderNames(paths.caseKeys).map((name) => join(paths.caseKeys, name));
  const found: DoctorFinding[] = [];
  for (const path of [paths.home, paths.keys, paths.caseKeys, paths.ledger, ...secrets, ...cases]) {
    const stat = inspectPath(path);
    if (stat === null) continue;
    if ((stat.mode & OTHERS) !== 0) {
      const fix = `run chmod go-rwx ${path}`;
      found.push(doctorFinding('permissions', 'problem', `other users have access to ${path}: ${fix}`));
    }
    if (!stat.isOwn) found.push(doctorFinding('permissions', 'problem', `${path} belongs to another user: chown it`));
  }
  return found.length > 0 ? found : [doctorFinding('permissions', 'ok', 'only the owner has access')];
}

/** The keys of the ledger, the list of erasures, and whether Git tracks any of them. */
export async function examineKeys(paths: HomePaths, now: number): Promise<readonly DoctorFinding[]> {
  const found: DoctorFinding[] = [];
  const attempt = (text: string, work: () => string | null): void => {
    try {
      const problem = work();
      found.push(doctorFinding('keys', problem === null ? 'ok' : 'problem', problem ?? text));
    } catch (error) {
      found.push(doctorFinding('keys', 'problem', error instanceof Error ? error.message : String(error)));
    }
  };
  attempt('the ledger key signs heads and erasures', () => {
    const signer = readLedgerSigner(paths.ledgerKey);
    if (signer === null)
      return `${paths.ledgerKey.privateKey} is missing: restore it, or open the ledger once for writing`;
    const vkey = readLedgerVerifier(paths.ledgerKey)?.vkey;
    return vkey === signer.vkey
      ? null
      : `${paths.ledgerKey.publicKey} is not the public half of the ledger key: restore it`;
  });
  attempt('no private key of a retired ledger key exists', () => {
    const { next, retired } = rotationFiles(paths.ledgerKey);
    if (!isRotating(paths.ledgerKey) && !hasFile(next) && !hasFile(retired)) return null;
    return 'a rotation of the ledger key was interrupted, and a private key of it still exists: open the home for writing';
  });
  attempt('no replaced key of a case exists', () => {
    const acceptRetired = isRotating(paths.ledgerKey);
    const seal = createErasureSeal(readLedgerVerifier(paths.ledgerKey), { acceptRetired });
    const [unfinished] = new CaseKeys(paths.caseKeys, () => seal).unfinishedReplacements();
    if (unfinished === undefined) return null;
    const { case_id, key_no } = unfinished;
    return (
      `the rotation of key ${key_no} of ${case_id} was interrupted, and the old key still exists: ` +
      `run \`turnpike keys rotate --case ${case_id}\` again`
    );
  });
  found.push(...examineAge(paths, now));
  attempt('the list of erasures is signed and complete', () => {
    const acceptRetired = isRotating(paths.ledgerKey);
    const seal = createErasureSeal(readLedgerVerifier(paths.ledgerKey), { acceptRetired });
    if (seal !== null) readErasureList(join(paths.caseKeys, ERASURE_LIST), seal);
    return null;
  });
  try {
    await refuseTrackedKeys(paths);
    found.push(doctorFinding('keys', 'ok', 'Git tracks no key'));
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    found.push(doctorFinding('keys', 'problem', error.message));
  }
  return found;
}

/** How long the ledger key has been used. */
function examineAge(paths: HomePaths, now: number): readonly DoctorFinding[] {
  const since = currentKeySince(paths);
  if (since === null) return [];
  const days = Math.max(0, Math.floor((now - Date.parse(since)) / DAY_MS));
  const text = `the ledger key is ${days} days old`;
  return days <= KEY_DAYS_MAX
    ? [doctorFinding('keys', 'ok', text)]
    : [doctorFinding('keys', 'note', `${text}: \`turnpike keys rotate --signing\` replaces it`)];
}

function currentKeySince(paths: HomePaths): string | null {
  try {
    return listKeys(paths).find(({ purpose, state }) => purpose === 'ledger' && state === 'current')?.since ?? null;
  } catch (error) {
    // Reported above.
    if (error instanceof PolicyError) return null;
    throw error;
  }
}

/** Free space of the disk of the ledger. */
export function examineDisk({ reserve }: HomePaths): readonly DoctorFinding[] {
  const space = diskSpace(reserve).measure();
  if (space === null) return [doctorFinding('disk', 'unchecked', 'the free space cannot be measured')];
  const { low } = waterMarksOf({}, space);
  const text = `${mebibytes(space.free)} of ${mebibytes(space.total)} MiB are free`;
  return space.free < low
    ? [doctorFinding('disk', 'problem', `${text}, less than ${mebibytes(low)} MiB: free space, or no run starts`)]
    : [doctorFinding('disk', 'ok', text)];
}

const mebibytes = (bytes: number): number => Math.floor(bytes / 1_048_576);

// The state of a ledger, as a reader sees it. Another process may be writing.

/** Newest run trees that are read for unknown outcomes. */
const TREES_READ = 256;
/** How far the clock may be behind the newest entry. */
const CLOCK_MS_MAX = 5_000;

interface ExaminedLedger {
  readonly store: LedgerStore;
  readonly externalHeadStore: ExternalHeadStore;
  readonly clock: Clock;
}

export async function examineLedger(ledger: ExaminedLedger): Promise<readonly DoctorFinding[]> {
  return [...(await examineHead(ledger)), ...(await examineClock(ledger)), ...(await examineEffects(ledger))];
}

async function examineHead({ store, externalHeadStore }: ExaminedLedger): Promise<readonly DoctorFinding[]> {
  try {
    const external = await externalHeadStore.read();
    await checkExternalHead(store, externalHeadStore, { acceptMissing: true });
    const { size } = await store.head();
    const found = [doctorFinding('ledger', 'ok', `${size} entries; \`turnpike ledger verify\` checks them all`)];
    if (external === null && size > 0) {
      found.push(doctorFinding('ledger', 'problem', 'the head file is missing: restore it from a backup'));
    }
    const { restores, unacknowledged } = await readRestoreHistory(store);
    if (restores > 0) found.push(doctorFinding('ledger', 'note', `restored from a backup: ${restores} times`));
    if (unacknowledged !== null) {
      const text = `execution is suspended since restore ${unacknowledged}: run \`turnpike restore acknowledge\``;
      found.push(doctorFinding('ledger', 'problem', text));
    }
    return found;
  } catch (error) {
    if (!(error instanceof LedgerError)) throw error;
    return [doctorFinding('ledger', 'problem', `${error.code}: ${error.message}`)];
  }
}

async function examineClock({ store, externalHeadStore, clock }: ExaminedLedger): Promise<readonly DoctorFinding[]> {
  const { size } = await store.head();
  const archived = (await new LedgerReader(store, externalHeadStore).begin()).size;
  let newest: string | null = null;
  for await (const { type, text } of store.log(Math.max(archived, size - TREES_READ))) {
    if (type !== 'input') continue;
    const { time } = (parseOwnJson(text) as { readonly body: { readonly time?: string } }).body;
    if (time !== undefined && time > (newest ?? '')) newest = time;
  }
  if (newest === null) return [doctorFinding('clock', 'ok', 'no entry has a time to compare with')];
  const behind = Date.parse(newest) - clock.now();
  if (behind <= CLOCK_MS_MAX) return [doctorFinding('clock', 'ok', `not behind the newest entry (${newest})`)];
  const text = `the clock is ${Math.round(behind / 1_000)} s behind the newest entry (${newest}): set it`;
  return [doctorFinding('clock', 'problem', text)];
}

async function examineEffects({ store, externalHeadStore }: ExaminedLedger): Promise<readonly DoctorFinding[]> {
  let unfinished = 0;
  for await (const tree of store.openTrees()) unfinished += tree.unfinished ? 1 : 0;
  let unknown = 0;
  let first: string | null = null;
  for await (const tree of new LedgerReader(store, externalHeadStore).trees(TREES_READ)) {
    for (const [run_id, settlement] of tree.unknown) {
      if (settlement !== null) continue;
      unknown += 1;
      first ??= run_id;
    }
  }
  const open = `${unfinished} run trees have unfinished work; a service that runs, or the next opening, finishes it`;
  const found = [
    doctorFinding('effects', unfinished > 0 ? 'note' : 'ok', unfinished > 0 ? open : 'no unfinished work'),
  ];
  if (first !== null) {
    const text = `${unknown} effects have an unknown outcome (first: ${first}): find it out, and run \`turnpike runs resolve\``;
    found.push(doctorFinding('effects', 'problem', text));
  }
  return found;
}
