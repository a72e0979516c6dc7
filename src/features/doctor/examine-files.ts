// Permissions, keys, disk and machine of an installation. Nothing is written.

import { inspectPath, machineFacts } from '../../system/machine-facts.js';
import { bindingProblem, bindingVersion } from '../../stores/sqlite/sqlite-binding.js';
import { diskSpace } from '../../system/files/file-disk-space.js';
import { folderNames } from '../../system/files/folder-names.js';
import { CaseKeys } from '../../stores/keys/case-keys.js';
import { ERASURE_LIST, readErasureList } from '../../stores/keys/erasure-list.js';
import { join } from 'node:path';
import { PolicyError, UsageError } from '../../core/errors.js';
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
import { doctorFinding, type DoctorFinding } from './finding.js';

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
