// The key of a case that another one has replaced: what opens content then, in this folder and in older copies of it.

import { copyFileSync, cpSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { CaseKeys, type CaseCipher } from '../../../src/stores/keys/case-keys.js';
import { CASE_KEYS_MAX } from '../../../src/stores/keys/case-key-notes.js';
import { resignErasures } from '../../../src/stores/keys/erasure-list.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import { notePrivateKey, noteSigner } from '../../../src/core/ledger/proof/signed-note.js';
import { createErasureSeal } from '../../../src/home/ledger-key.js';
import { ledgerFolder, thrownBy, type LedgerFolder } from '../sqlite/sqlite-harness.js';

const TEXT = Buffer.from('what somebody has said');
const HASH = Buffer.from(sha256(TEXT), 'hex');
const BY = { at: '2026-01-01T00:00:00.000Z', by: 'a person', role: 'operator' };
const tampered = (message: string) =>
  expect.objectContaining({ code: 'LEDGER_TAMPERED', message: expect.stringContaining(message) });

describe('a replaced key of a case', () => {
  const signer = noteSigner(notePrivateKey('test/log', Buffer.alloc(32, 7))!)!;
  let at: LedgerFolder;
  let folder: string;
  let sealed: Buffer;
  beforeEach(() => {
    at = ledgerFolder();
    folder = join(at.artifactsDir, 'keys');
    sealed = open().currentKey('case-1').cipher.seal(TEXT, HASH);
  });
  afterEach(() => at.remove());
  const open = (): CaseKeys => new CaseKeys(folder, () => createErasureSeal(signer));
  const path = (name: string): string => join(folder, `case-1.${name}`);
  const opened = (no: number, keys = open()): Buffer | null =>
    (keys.get('case-1', no) as CaseCipher).open(sealed, HASH);
  const replace = (keys = open()) => keys.replace('case-1', 5, BY);

  test('new content gets the next key from the note on, and the note says who, when and how many', () => {
    const keys = open();
    expect(keys.currentKey('case-1').no).toBe(1);
    expect(replace(keys)).toEqual({ case_id: 'case-1', key_no: 1, contents: 5, ...BY });
    for (const each of [keys, open()]) {
      expect(each.currentKey('case-1').no).toBe(2);
      expect(each.currentKey('case-1').cipher.open(sealed, HASH)).toBeNull();
      expect(each.unfinishedReplacements()).toEqual([{ case_id: 'case-1', key_no: 1, contents: 5, ...BY }]);
      expect([each.lastErased('case-1'), each.has('case-1')]).toEqual([0, true]);
    }
    expect(readFileSync(path('1.replaced'), 'utf8')).not.toContain(readFileSync(path('1.key'), 'utf8').slice(18, 50));
  });

  test('the next key opens what the replaced one has encrypted, after that is destroyed, and over several keys', () => {
    replace();
    open().destroyReplaced('case-1');
    expect(existsSync(path('1.key'))).toBe(false);
    expect(open().unfinishedReplacements()).toEqual([]);
    expect(opened(1)).toEqual(TEXT);
    for (let no = 2; no < 6; no += 1) {
      replace();
      open().destroyReplaced('case-1');
    }
    expect(readdirSync(folder).filter((name) => name.endsWith('.key'))).toEqual(['case-1.6.key']);
    expect(opened(1)).toEqual(TEXT);
    const cached = open();
    expect(opened(1, cached)).toEqual(TEXT);
    open().destroy('case-1', 9, BY);
    // Also for the reader that knows the key.
    expect(cached.get('case-1', 1)).toEqual({ erased_below: 9 });
  });

  test('D14: an erasure also erases what replaced keys have encrypted, at once, and their keys at the next opening', () => {
    const key = readFileSync(path('1.key'));
    const keys = open();
    replace(keys);
    expect(keys.destroy('case-1', 7, BY)).toBe(2);
    writeFileSync(path('1.key'), key, { mode: 0o600 });
    for (const no of [1, 2]) expect(open().get('case-1', no)).toEqual({ erased_below: 7 });
    expect([open().lastErased('case-1'), open().erasedCases()]).toEqual([2, [{ case_id: 'case-1', key_no: 2 }]]);
    open().finishErasures();
    expect(readdirSync(folder).filter((name) => name.endsWith('.key'))).toEqual([]);
    expect(open().currentKey('case-1').no).toBe(3);
  });

  test('only the ledger key can sign that a key was replaced, and no note counts for another key', () => {
    const stranger = noteSigner(notePrivateKey('test/log', Buffer.alloc(32, 8))!)!;
    open().currentKey('case-2');
    open().replace('case-2', 5, BY);
    const other = readFileSync(join(folder, 'case-2.1.replaced'), 'utf8');
    const statement = `turnpike replacement\ncase-1\n1\n5\n2026\nme\nrole\n${'A'.repeat(80)}\n`;
    const erasure = createErasureSeal(signer)!.seal('turnpike erasure\ncase-1\n1\n99\n2026\nme\n');
    for (const note of [statement, createErasureSeal(stranger)!.seal(statement), other, erasure, '']) {
      writeFileSync(path('1.replaced'), note, { mode: 0o600 });
      for (const work of [
        () => open().get('case-1', 1),
        () => open().currentKey('case-1'),
        () => replace(),
        () => open().unfinishedReplacements(),
      ]) {
        expect(thrownBy(work)).toEqual(tampered('does not say, under the key of this ledger, that another key'));
      }
    }
    rmSync(path('1.replaced'));
    expect(opened(1)).toEqual(TEXT);
  });

  test('a key that the note does not have is not destroyed', () => {
    const older = join(at.folder, 'older');
    cpSync(folder, older, { recursive: true });
    replace();
    // The key of another folder, in which the next key differs.
    const keys = new CaseKeys(older, () => createErasureSeal(signer));
    keys.replace('case-1', 5, BY);
    copyFileSync(path('1.replaced'), join(older, 'case-1.1.replaced'));
    expect(thrownBy(() => keys.destroyReplaced('case-1'))).toEqual(tampered('case-1.2.key does not open the key in'));
    expect(existsSync(join(older, 'case-1.1.key'))).toBe(true);
    rmSync(join(older, 'case-1.1.key'));
    expect(thrownBy(() => keys.get('case-1', 1))).toEqual(tampered('case-1.2.key does not open the key in'));
  });

  test('a key that was overwritten and not removed is read from the note, and removed', () => {
    replace();
    writeFileSync(path('1.key'), Buffer.alloc(statSync(path('1.key')).size));
    expect(opened(1)).toEqual(TEXT);
    expect(open().unfinishedReplacements()).toHaveLength(1);
    open().destroyReplaced('case-1');
    expect(existsSync(path('1.key'))).toBe(false);
    // Without a note it is missing, and is not made again.
    writeFileSync(path('2.key'), Buffer.alloc(10));
    expect(thrownBy(() => open().currentKey('case-1'))).toEqual(tampered('case-1.2.key'));
  });

  test('content is reported, with the file to restore, if no key of the folder opens it', () => {
    replace();
    open().destroyReplaced('case-1');
    rmSync(path('2.key'));
    expect(thrownBy(() => open().get('case-1', 1))).toEqual(
      tampered('was replaced on 2026-01-01T00:00:00.000Z by a person, and no key of this folder opens it: restore '),
    );
  });

  test('K3: a number is not used again if the note of its end is removed', () => {
    replace();
    open().destroyReplaced('case-1');
    rmSync(path('1.replaced'));
    expect(thrownBy(() => open().currentKey('case-1'))).toEqual(tampered('and the note of its end are missing'));
    expect(existsSync(path('1.key'))).toBe(false);
  });

  test('a key that an attempt made before its note is used', () => {
    writeFileSync(path('2.key'), `turnpike-case-key ${Buffer.alloc(32, 5).toString('base64')}\n`, { mode: 0o600 });
    expect(open().currentKey('case-1').no).toBe(1);
    replace();
    expect(readFileSync(path('2.key'), 'utf8')).toContain(Buffer.alloc(32, 5).toString('base64'));
    open().destroyReplaced('case-1');
    expect(opened(1)).toEqual(TEXT);
  });

  test('a case without a key, and one with too many, is refused', () => {
    expect(thrownBy(() => open().replace('case-9', 0, BY))).toMatchObject({ code: 'USAGE' });
    const seal = createErasureSeal(signer)!;
    for (let no = 1; no < CASE_KEYS_MAX; no += 1) {
      writeFileSync(path(`${no}.erased`), seal.seal(`turnpike erasure\ncase-1\n${no}\n9\n2026\nme\n`), { mode: 0o600 });
    }
    const keys = open();
    expect(keys.currentKey('case-1').no).toBe(CASE_KEYS_MAX);
    expect(thrownBy(() => replace(keys))).toMatchObject({
      code: 'USAGE',
      message: expect.stringContaining('999 times'),
    });
  });

  test('U-06: a rotation of the ledger key signs the notes again', () => {
    replace();
    const next = noteSigner(notePrivateKey('test/log', Buffer.alloc(32, 9))!)!;
    const [old, now] = [createErasureSeal(signer)!, createErasureSeal(next)!];
    resignErasures(folder, {
      seal: (statement) => now.seal(statement),
      open: (note) => old.open(note) ?? now.open(note),
    });
    expect(thrownBy(() => open().replacements())).toEqual(tampered('does not say'));
    const keys = new CaseKeys(folder, () => now);
    expect(keys.replacements()).toHaveLength(1);
    rmSync(path('1.key'));
    expect(opened(1, keys)).toEqual(TEXT);
  });
});
