// Replaces the key that signs a ledger (decision 0022).
//
//   R1. The new key counts from the moment at which the key history names it: a rotation has happened as a whole or not
//       at all. Until then the old key signs everything; from then on it signs nothing.
//   R2. The note of the rotation names the last head that the old key signs, so nothing is committed meanwhile.
//   R3. What is left is repeated until it is done, by every opening for writing: the entry in the log, the erasures
//       that the old key has signed, and the old private key. The public key in its file is replaced last.
//   R4. Of a store that several processes write, only one that is alone rotates the key, or finishes a rotation. The
//       store keeps the others out from before the new key is drawn until everything is finished.

import { dirname } from 'node:path';
import {
  createPrivateLine,
  drawSeed,
  exchangeFile,
  hasFile,
  shredFile,
  writePublicLine,
} from '../../stores/keys/key-file.js';
import { readHistoryFile, writeHistoryFile } from '../../stores/keys/key-history-file.js';
import { resignErasures } from '../../stores/keys/erasure-list.js';
import { ledgerEventTreeId, readRestoreHistory } from '../../engine/restore-history.js';
import type { TreeEngine } from '../../engine/tree-engine.js';
import { InvariantError, LedgerError, PolicyError, usageError } from '../../core/errors.js';
import { KEY_BYTES } from '../../core/ledger/proof/ed25519.js';
import { keysOf, ROTATIONS_MAX, signRotation, type KeyRotation } from '../../core/ledger/proof/key-history.js';
import { checkExternalHead } from '../../core/ledger/verification/check-external-head.js';
import { notePrivateKey, noteSigner, type NoteSigner } from '../../core/ledger/proof/signed-note.js';
import type { Clock } from '../../engine/ports/clock.js';
import { lockRotation } from '../../stores/sqlite/writer-lock.js';
import type { ExternalHeadStore, LedgerStore } from '../../engine/ports/ledger/ledger-store.js';
import type { Operator } from '../../runtime/operator-acts.js';
import { validateActor, validateField } from '../../runtime/agents/caller-input.js';
import { Identifier } from '../../core/contract/shapes.js';
import type { PolicyCache } from '../../runtime/policy-cache.js';
import type { KeyFolder } from '../home-paths.js';
import {
  createErasureSeal,
  createHeadSeal,
  isRotating,
  readHomeHistory,
  readLedgerSigner,
  readLedgerVerifier,
  readSigner,
  rotationFiles,
} from '../ledger-key.js';
import { endRotationTree, recordRotation, ROTATED, type RotationRecord } from './record-rotation.js';

/** Who rotates a key. */
export interface RotateKeyOptions extends Operator {
  readonly role: string;
}

/** An open ledger, and its key folder. */
export interface RotationParts {
  readonly engine: Pick<TreeEngine, 'submit' | 'peek' | 'exclusively' | 'head'>;
  readonly store: LedgerStore;
  readonly externalHeadStore: ExternalHeadStore;
  readonly keys: KeyFolder;
  readonly policyCache: Pick<PolicyCache, 'current'>;
  readonly clock: Clock;
}

/** The tree that records the n-th rotation of the ledger's key. */
export const rotationTreeId = (number: number): string => ledgerEventTreeId(`turnpike key rotation ${number}`);

/**
 * Replaces the key of the ledger. No other process may sign with it, and no export may be running.
 * @throws PolicyError for a missing key; UsageError, also if the store is not open alone; LedgerError
 */
export async function rotateLedgerKey(parts: RotationParts, options: RotateKeyOptions): Promise<KeyRotation> {
  const [actor, role] = [validateActor(options.actor), validateField('role', Identifier, options.role)];
  if (/\p{Cc}/u.test(actor)) throw usageError('actor: no control characters');
  const { engine, store, externalHeadStore, keys } = parts;
  const { ledgerKey } = keys;
  if (store.caseKeys === undefined) throw usageError('the key of a ledger in this store cannot be rotated');
  const old = readLedgerSigner(ledgerKey);
  if (old === null || externalHeadStore.replaceSeal === undefined) throw unsignedError(ledgerKey.privateKey);
  const number = (old.history?.length ?? 0) + 1;
  if (number > ROTATIONS_MAX) throw usageError(`the key of a ledger can be rotated ${ROTATIONS_MAX} times`);
  await alone(parts, async () => {
    await engine.exclusively(() => replaceKey(parts, old, { number, actor, role }));
    await finishAlone(parts, readHomeHistory(ledgerKey)?.rotations ?? []);
  });
  const rotation = readHomeHistory(ledgerKey)?.rotations.at(-1);
  if (rotation === undefined) throw new InvariantError('a rotation left no key history');
  return rotation;
}

/** R4. Does `work` while no other process can write. What it leaves unfinished keeps the others out. */
async function alone({ store: { rotation }, keys }: RotationParts, work: () => Promise<void>): Promise<void> {
  if (rotation === undefined) return work();
  await withRotationLock(keys, async () => {
    await rotation.begin();
    await work();
    await rotation.end(currentKey(keys));
  });
}

async function withRotationLock({ keys }: KeyFolder, work: () => Promise<void>): Promise<void> {
  const lock = lockRotation(keys);
  try {
    await work();
  } finally {
    lock.release();
  }
}

function currentKey({ ledgerKey }: KeyFolder): string {
  const verifier = readLedgerVerifier(ledgerKey);
  if (verifier === null) throw unsignedError(ledgerKey.privateKey);
  return verifier.vkey;
}

type RotationFacts = Pick<KeyRotation, 'number' | 'actor' | 'role'>;

/** R1. */
async function replaceKey(parts: RotationParts, old: NoteSigner, by: RotationFacts): Promise<void> {
  const {
    engine,
    externalHeadStore,
    keys: { ledgerKey },
    clock,
  } = parts;
  const files = rotationFiles(ledgerKey);
  const next = draftKey(old, files.next);
  // Nothing may be pending: a process that has lost its session could integrate it, and sign a later head.
  const { size, root } = await engine.head();
  // R2: twice, so that neither slot of the head file has a head that the old key may not sign.
  for (let slot = 0; slot < 2; slot += 1) await externalHeadStore.write({ size, root });
  const facts = { ...by, head: { size, root }, at: new Date(clock.now()).toISOString() };
  const notes = readHistoryFile(files.history);
  writeHistoryFile(files.history, [...notes, signRotation(facts, notes.at(-1) ?? null, { old, next })]);
  externalHeadStore.replaceSeal?.(createHeadSeal(readLedgerSigner(ledgerKey) ?? next, ledgerKey));
  for (let slot = 0; slot < 2; slot += 1) await externalHeadStore.write({ size, root });
}

/** Draws the new key. A draft of an interrupted rotation that never counted is destroyed. */
function draftKey(old: NoteSigner, path: string): NoteSigner {
  shredFile(path);
  const used = new Set(keysOf(old).map(({ key_hash }) => key_hash));
  for (;;) {
    const skey = notePrivateKey(old.name, drawSeed(KEY_BYTES)) ?? '';
    const next = noteSigner(skey);
    if (next === null) throw new InvariantError('the name of the log is not valid');
    if (used.has(next.key_hash)) continue;
    createPrivateLine(path, skey);
    return next;
  }
}

/**
 * R3. Does nothing if all rotations are finished and recorded.
 * @throws LedgerError LEDGER_TAMPERED if the log records a rotation that the key history does not have
 * @throws UsageError if something is left, and other processes may write (R4)
 */
export async function finishRotations(parts: RotationParts): Promise<void> {
  const { store, keys } = parts;
  const { rotation } = store;
  const { ledgerKey } = keys;
  const rotations = readHomeHistory(ledgerKey)?.rotations ?? [];
  const recorded = await recordedRotations(store, rotations.length + 1);
  if (recorded[rotations.length] === true) throw shortHistoryError(ledgerKey, rotations.length + 1);
  const missing = rotations.filter((_, index) => recorded[index] !== true);
  await refuseLostEntries(store, missing);
  if (missing.length > 0 || hasUnfinishedRotation(ledgerKey)) await alone(parts, () => finishAlone(parts, rotations));
  // An earlier process may have ended before it drew a key, or after it had finished everything in the folder.
  else if (rotation?.isAlone === true) await withRotationLock(keys, () => rotation.end(currentKey(keys)));
}

/**
 * A rotation is recorded in the log that it vouches for, or in one whose restore says which entries it has replaced. A
 * log from before the rotation would only seem to be altered later.
 * @throws LedgerError LEDGER_BELOW_HEAD
 */
async function refuseLostEntries(store: LedgerStore, missing: readonly KeyRotation[]): Promise<void> {
  if (missing.length === 0 || (await readRestoreHistory(store)).restores > 0) return;
  for (const { head } of missing) await checkExternalHead(store, { read: () => Promise.resolve(head) });
}

/** Whether an interrupted rotation has left something in the key folder. */
export const hasUnfinishedRotation = (ledgerKey: KeyFolder['ledgerKey']): boolean => {
  const { next, retired } = rotationFiles(ledgerKey);
  return isRotating(ledgerKey) || hasFile(next) || hasFile(retired);
};

/** R3. */
async function finishAlone(parts: RotationParts, rotations: readonly KeyRotation[]): Promise<void> {
  const { engine, store, keys } = parts;
  const { ledgerKey } = keys;
  const files = rotationFiles(ledgerKey);
  if (rotations.length === 0) {
    shredFile(files.next);
    return;
  }
  const recorded = await recordedRotations(store, rotations.length);
  const missing = rotations.filter((_, index) => recorded[index] !== true);
  for (const rotation of missing) await recordRotation(parts, recordOf(keys, rotation));
  for (const { number } of isRotating(ledgerKey) ? rotations.slice(-1) : missing)
    await endRotationTree(parts, rotationTreeId(number));
  if (hasUnfinishedRotation(ledgerKey)) {
    // The entry may still be pending. A reader requires it in the log once the public key is replaced.
    await engine.head();
    await engine.exclusively(() => {
      exchangeKeys(keys);
      return Promise.resolve();
    });
  }
}

/** The old private key is destroyed before the public key is replaced, which ends the rotation. */
function exchangeKeys({ ledgerKey, caseKeys }: KeyFolder): void {
  const files = rotationFiles(ledgerKey);
  const signer = readLedgerSigner(ledgerKey);
  if (signer === null) throw unsignedError(ledgerKey.privateKey);
  const seal = createErasureSeal(signer, { acceptRetired: true });
  if (seal !== null && isRotating(ledgerKey)) resignErasures(caseKeys, seal);
  // The current key lies in `next` unless an earlier attempt has exchanged it.
  if (readSigner(files.next)?.vkey === signer.vkey) exchangeFile(files.next, ledgerKey.privateKey, files.retired);
  for (const path of [files.next, files.retired]) shredFile(path);
  writePublicLine(ledgerKey.publicKey, signer.vkey);
}

/** Whether the log records each rotation from the first to `last`. */
async function recordedRotations(store: Pick<LedgerStore, 'marks'>, last: number): Promise<readonly boolean[]> {
  const numbers = Array.from({ length: last }, (_, index) => index + 1);
  const marks = await store.marks(numbers.map((number) => ({ tree_id: rotationTreeId(number), input_id: ROTATED })));
  return marks.map((mark) => mark !== null);
}

/** What is recorded of a rotation of this key. */
function recordOf({ ledgerKey }: KeyFolder, rotation: KeyRotation): RotationRecord {
  const { number, old_key, new_key, actor, role } = rotation;
  const note = readHomeHistory(ledgerKey)?.notes[number - 1] ?? '';
  return {
    tree_id: rotationTreeId(number),
    correlation_id: `key-rotation-${number}`,
    rotation: { purpose: 'ledger', number, old_key, new_key, note },
    ...{ actor, role },
  };
}

export const unsignedError = (path: string): PolicyError =>
  new PolicyError({ code: 'POLICY_UNREADABLE', message: `${path}: this ledger has no key, so none can be rotated` });

const shortHistoryError = ({ privateKey }: KeyFolder['ledgerKey'], number: number): LedgerError =>
  new LedgerError({
    code: 'LEDGER_TAMPERED',
    message:
      `the log records rotation ${number} of its key, and the key history in ${dirname(privateKey)} does not have it: ` +
      'restore key-history.list and the current key from a backup',
  });
