// Rotations of the ledger key with everything that the old key has signed: erasures, bags, backups, archives of a
// thief. What a process that is killed leaves: test/crash/rotate.nightly.test.ts.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openBagFolder } from '../../../src/features/exports/bag/bag-folder.js';
import { openLineFile } from '../../../src/system/files/open-line-file.js';
import { writeHistoryFile } from '../../../src/stores/keys/key-history-file.js';
import { resignErasures, ERASURE_LIST, readErasureList } from '../../../src/stores/keys/erasure-list.js';
import { manifestPolicySource } from '../../../src/home/policy/manifest-policy-source.js';
import { winstonLog } from '../../../src/system/winston-log.js';
import { signRotation } from '../../../src/core/ledger/proof/key-history.js';
import { noteSigner, noteVerifier, type NoteVerifier } from '../../../src/core/ledger/proof/signed-note.js';
import { openEvidence, verifyEvidence } from '../../../src/runtime/ledger/open-evidence.js';
import { writeEvidence } from '../../../src/features/evidence/write-evidence.js';
import { verifyExportBag } from '../../../src/features/exports/verify/verify-export-bag.js';
import { backupHome } from '../../../src/features/backup/backup-home.js';
import { restoreHome } from '../../../src/features/backup/restore-home.js';
import { resolveLocation } from '../../../src/home/ledger-location.js';
import { homePaths, openHome } from '../../../src/home/home.js';
import {
  createErasureSeal,
  generateLedgerKey,
  readHomeHistory,
  readLedgerSigner,
  readLedgerVerifier,
} from '../../../src/home/ledger-key.js';
import { LedgerReader } from '../../../src/runtime/ledger/ledger-reader.js';
import { openTurnpike, type Turnpike } from '../../../src/host/turnpike.js';
import { tempFolder } from '../../fixtures/temp-folder.js';
import { createRichLedger, exportCase, frozenClock, serviceOptions } from '../../features/backup/copy/rich-ledger.js';

const BY = { actor: 'otto operator', role: 'operator' } as const;
const MADE = { madeBy: '0.0.0', madeAt: '2026-03-01T12:00:00.000Z', contract: null } as const;

let folder: string;
/** A home before its rotation, which a thief has copied, and the same home after it. */
let before: string;
let home: string;
let oldKey: NoteVerifier;
let ids = 20_000;

const at = (name: string): string => join(folder, name);
const open = (path: string): Promise<Turnpike> =>
  openTurnpike({
    ...serviceOptions(folder, (ids += 1_000)),
    clock: frozenClock(Date.parse('2026-03-02')),
    home: path,
    exports: join(path, 'exports'),
  });
const keyOf = (path: string): NoteVerifier => readLedgerVerifier(homePaths(path).ledgerKey)!;
const bareKey = (key: NoteVerifier): NoteVerifier => noteVerifier(key.vkey)!;

async function verdictOf(path: string) {
  const { store, externalHeadStore } = openHome(homePaths(path), { readOnly: true });
  try {
    return await new LedgerReader(store, externalHeadStore).verify();
  } finally {
    await externalHeadStore.close();
    await store.close();
  }
}
const rulesOf = async (path: string): Promise<readonly string[]> => {
  const verdict = await verdictOf(path);
  return verdict.verdict === 'refused' ? verdict.problems.map(({ rule }) => rule) : [];
};

/** Writes the bundle of a home with any key. @returns what is wrong with it for a verifier with `trusted` */
async function bundleProblem(path: string, signer = readLedgerSigner(homePaths(path).ledgerKey)!, trusted = oldKey) {
  const { store, externalHeadStore } = openHome(homePaths(path), { readOnly: true });
  const lines: string[] = [];
  await writeEvidence(store, await store.head(), signer, (line) => Promise.resolve(void lines.push(line)));
  await externalHeadStore.close();
  await store.close();
  const file = join(tempFolder('bundle'), 'bundle');
  writeFileSync(file, lines.join(''));
  const opened = await openLineFile(file);
  try {
    const verdict = await verifyEvidence(await openEvidence(opened, trusted), { replay: false });
    return verdict.verdict === 'refused' ? verdict.problems.map(({ message }) => message).join() : null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    await opened.close();
  }
}

beforeAll(async () => {
  folder = tempFolder('rotation');
  const rich = await createRichLedger(folder);
  before = at('before');
  const first = await open(rich);
  await exportCase(first, 'case-a', 'first');
  await first.close();
  cpSync(rich, before, { recursive: true });
  await backupHome({ from: resolveLocation(rich), to: at('backup-before'), ...MADE, keys: true });
  oldKey = bareKey(keyOf(rich));
  home = rich;
  const turnpike = await open(home);
  await turnpike.rotateLedgerKey(BY);
  await exportCase(turnpike, 'case-a', 'second');
  await turnpike.close();
  await backupHome({ from: resolveLocation(home), to: at('backup-after'), ...MADE, keys: true });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('a rotation', () => {
  test('leaves a ledger that verifies and replays, and erasures that only the new key has signed', async () => {
    expect(await rulesOf(home)).toEqual([]);
    const { caseKeys } = homePaths(home);
    const list = join(caseKeys, ERASURE_LIST);
    const opened = readErasureList(list, createErasureSeal(bareKey(keyOf(home)))!);
    expect(opened.erasures.map(({ case_id }) => case_id)).toEqual(['case-gone']);
    expect(() => readErasureList(list, createErasureSeal(oldKey)!)).toThrow(/not signed by this ledger/);
    expect(opened.hashes).toEqual(
      readErasureList(join(homePaths(before).caseKeys, ERASURE_LIST), createErasureSeal(oldKey)!).hashes,
    );
  });

  test('rejects an erasure that the old key signs after it', async () => {
    const forged = at('forged');
    cpSync(home, forged, { recursive: true });
    const { caseKeys } = homePaths(forged);
    const thief = readLedgerSigner(homePaths(before).ledgerKey)!;
    const note = createErasureSeal(thief)!.seal('turnpike erasure\ncase-a\n1\n999\n2026-03-03T00:00:00.000Z\nthief\n');
    writeFileSync(join(caseKeys, 'case-a.1.erased'), note, { mode: 0o600 });
    expect(await rulesOf(forged)).toContain('artifact.unreadable');
    await (await open(forged)).close();
    expect(existsSync(join(caseKeys, 'case-a.1.key'))).toBe(true);
  });

  test('of a running ledger signs what follows with the new key, and can be repeated', async () => {
    const copy = at('repeated');
    cpSync(home, copy, { recursive: true });
    const turnpike = await open(copy);
    for (let round = 2; round <= 4; round += 1) {
      const { number } = await turnpike.rotateLedgerKey(BY);
      expect(number).toBe(round);
      await (await turnpike.startAgent({ case: 'case-a' })).end();
      expect(await turnpike.ledger.verify()).toMatchObject({ problems: [] });
    }
    await turnpike.erase({ case: 'case-erasable', actor: 'otto operator' });
    await turnpike.close();
    expect(await rulesOf(copy)).toEqual([]);
    expect(readHomeHistory(homePaths(copy).ledgerKey)?.rotations).toHaveLength(4);
  });

  test.each(['first', 'second'])('the bag %s verifies with the old key and with the new one', async (name) => {
    const bag = () => openBagFolder(join(home, 'exports', name));
    const authentic = { valid: true, authentication: { verdict: 'authenticated' } };
    expect(await verifyExportBag(bag(), keyOf(home))).toMatchObject(authentic);
    expect(await verifyExportBag(bag(), oldKey)).toMatchObject(authentic);
    const alone = await verifyExportBag(bag(), bareKey(keyOf(home)));
    // Only the first bag needs the history from elsewhere.
    expect(alone.valid).toBe(name === 'second');
  });

  test('refuses a ledger without a key, a person without a name, and an invalid role', async () => {
    const turnpike = await open(at('fresh'));
    await expect(turnpike.rotateLedgerKey({ actor: 'a\nb c', role: 'operator' })).rejects.toMatchObject({
      code: 'USAGE',
    });
    await expect(turnpike.rotateLedgerKey({ actor: 'otto', role: 'a role' })).rejects.toMatchObject({ code: 'USAGE' });
    await turnpike.close();
    expect(readHomeHistory(homePaths(at('fresh')).ledgerKey)).toBeNull();
  });
});

describe('a thief with the old key', () => {
  const thief = () => readLedgerSigner(homePaths(before).ledgerKey)!;

  test('cannot sign a later ledger for a verifier with the new key, or with the history', async () => {
    expect(await bundleProblem(home, thief(), bareKey(keyOf(home)))).toContain('is not signed by this key');
    expect(await bundleProblem(home, thief(), keyOf(home))).toContain('which was retired at');
    // Without the history: the log itself records the rotation.
    expect(await bundleProblem(home, thief())).toContain('the log records rotation 1 of its key');
    const fork = at('fork');
    cpSync(before, fork, { recursive: true });
    const turnpike = await open(fork);
    for (let runs = 0; runs < 3; runs += 1) await (await turnpike.startAgent({ case: 'case-a' })).end();
    await turnpike.close();
    expect(await bundleProblem(fork, thief(), keyOf(home))).toContain('which was retired at');
    // A verifier who has only the old key cannot tell: docs/trust.md.
    expect(await bundleProblem(fork, thief())).toBeNull();
  });

  test('cannot write a head file that opens, or a history that names another key', async () => {
    const heads = at('heads');
    cpSync(home, heads, { recursive: true });
    const stolen = openHome(homePaths(before), { readOnly: true });
    await stolen.store.close();
    cpSync(join(before, 'keys/ledger.key'), join(heads, 'keys/ledger.key'));
    await expect(open(heads)).rejects.toMatchObject({ message: /is not the current key/ });
    const branch = at('branch');
    cpSync(before, branch, { recursive: true });
    const other = noteSigner(generateLedgerKey(oldKey.name))!;
    const facts = { number: 1, head: { size: 5, root: 'a'.repeat(64) }, at: MADE.madeAt, ...BY };
    const note = signRotation(facts, null, { old: thief(), next: other });
    writeHistoryFile(join(heads, 'keys/key-history.list'), [note]);
    await expect(verdictOf(heads)).rejects.toMatchObject({ message: /does not contain the key/ });
  });
});

describe('a history and a log that do not agree', () => {
  /** A home whose owner pretends a rotation. */
  async function pretended(name: string, root: string | null): Promise<string> {
    const copy = at(name);
    cpSync(before, copy, { recursive: true });
    const { ledgerKey, ...paths } = homePaths(copy);
    const old = readLedgerSigner(ledgerKey)!;
    const skey = generateLedgerKey(old.name);
    const next = noteSigner(skey)!;
    const { store, externalHeadStore } = openHome({ ...paths, ledgerKey }, { readOnly: true });
    const head = await store.head();
    await store.close();
    await externalHeadStore.close();
    const facts = { number: 1, head: { size: head.size, root: root ?? head.root }, at: MADE.madeAt, ...BY };
    writeHistoryFile(join(copy, 'keys/key-history.list'), [signRotation(facts, null, { old, next })]);
    resignErasures(paths.caseKeys, {
      open: (note) => createErasureSeal(old)!.open(note),
      seal: (statement) => createErasureSeal(next)!.seal(statement),
    });
    writeFileSync(ledgerKey.privateKey, `${skey}\n`, { mode: 0o600 });
    writeFileSync(ledgerKey.publicKey, `${next.vkey}\n`);
    return copy;
  }

  test('a rotation that the log does not record is reported', async () => {
    const copy = await pretended('unrecorded', null);
    expect(await rulesOf(copy)).toContain('key.unrecorded');
    expect(await bundleProblem(copy)).toContain('the log does not record it');
  });

  test('a rotation that vouches for another log is reported', async () => {
    expect(await rulesOf(await pretended('differs', 'b'.repeat(64)))).toContain('key.differs');
  });
});

describe('a backup', () => {
  const restoreTo = (backup: string, name: string, keys: string | null) =>
    restoreHome({
      backup: at(backup),
      home: at(name),
      keys,
      erasures: keys === null ? 'none' : null,
      heads: [],
      policies: manifestPolicySource(at('contract')),
      actor: 'otto operator',
      log: winstonLog('silent'),
    });

  test('from before the rotation is restored with the new key, and the log records the rotation', async () => {
    const restored = await restoreTo('backup-before', 'restored', join(home, 'keys'));
    expect(restored.verdict).toMatchObject({ problems: [] });
    expect(keyOf(at('restored')).vkey).toBe(keyOf(home).vkey);
    expect(await rulesOf(at('restored'))).toEqual([]);
    const turnpike = await open(at('restored'));
    await (await turnpike.startAgent({ case: 'case-a' })).end();
    await turnpike.rotateLedgerKey(BY);
    await turnpike.close();
    expect(await rulesOf(at('restored'))).toEqual([]);
    expect(await bundleProblem(at('restored'))).toBeNull();
    expect(await bundleProblem(at('restored'), undefined, bareKey(keyOf(at('restored'))))).toBeNull();
  });

  test('from before the rotation is restored with its own key, as it was', async () => {
    const restored = await restoreTo('backup-before', 'as-it-was', null);
    expect(restored.verdict).toMatchObject({ problems: [] });
    expect(keyOf(at('as-it-was')).vkey).toBe(oldKey.vkey);
  });

  test('from after the rotation has the whole history, and only the new private key', async () => {
    const restored = await restoreTo('backup-after', 'later', null);
    expect(restored.verdict).toMatchObject({ problems: [] });
    expect(keyOf(at('later')).vkey).toBe(keyOf(home).vkey);
    const secret = readFileSync(join(before, 'keys/ledger.key'), 'utf8').trim();
    expect(readFileSync(join(at('backup-after'), 'data/keys/ledger.key'), 'utf8').trim()).not.toBe(secret);
    expect(await bundleProblem(at('later'))).toBeNull();
  });

  test('from after the rotation is refused with the old key folder', async () => {
    await expect(restoreTo('backup-after', 'wrong', join(before, 'keys'))).rejects.toMatchObject({
      code: 'LEDGER_TAMPERED',
    });
  });
});
