// The signed overlay on a real disk: what is refused, what is stored, and that a change applies at the next call.

import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { generateKeyPairSync, sign } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import {
  OVERLAY_BYTES_MAX,
  overlayFile,
  overlayFiles,
  signOverlay,
  verifyOverlay,
  type OverlayFiles,
} from '../../../src/home/policy/overlay-file.js';
import { readOverlay, writeOverlay, type OverlayChange } from '../../../src/home/policy/overlay-writer.js';
import { openSigningKey, readVerifyingKey, type SigningKey } from '../../../src/stores/keys/signing-key.js';
import { canonicalJson } from '../../../src/core/contract/json.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import { OverlayFact, type Overlay, type OverlayRule } from '../../../src/core/contract/policy/overlay.js';
import { isConforming } from '../../../src/core/contract/validators.js';
import type { OverlaySource } from '../../../src/engine/ports/policy-sources.js';
import { sized } from '../../fixtures/campaign.js';
import { diskFolder } from '../../fixtures/temp-folder.js';

const ISSUED = '2026-01-01T00:00:00.000Z';
const LANE: OverlayRule = { rule_id: 'deny-1', reason: 'why', lane_id: 'LANE_A' };
const INVALID = { epoch: null, problem: 'invalid' };
const MISSING = { epoch: null, problem: 'missing' };
const ROLLED_BACK = { epoch: null, problem: 'rolled_back' };

let folder: string;
let files: OverlayFiles;
let keys: string;
let source: OverlaySource;
beforeEach(() => {
  folder = diskFolder('overlay');
  keys = join(folder, 'keys');
  files = overlayFiles(join(folder, 'overlay.json'), keys);
  source = overlayFile(files);
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

const write = (rules: OverlayChange['rules'] = (former) => former, more: Partial<OverlayChange> = {}) =>
  writeOverlay(files, { issued_at_utc: ISSUED, rules, ...more });
const add = (): Promise<Overlay> =>
  write((former, epoch) => [...former, { rule_id: `deny-${epoch}`, reason: 'why', lane_id: 'LANE_A' }]);
/** A source in a process that has just started. */
const again = () => overlayFile(files).current();
const key = (): SigningKey => openSigningKey({ ...files, make: false });
/** Waits until the file is old enough for its times to be reliable. */
const settled = (): Promise<void> => setTimeout(120);
const bytesOf = (path = files.path): Buffer => readFileSync(path);
/** Writes a validly signed overlay without the writer. */
const plant = (overlay: Partial<Overlay>): void =>
  writeFileSync(files.path, signOverlay({ epoch: 1, issued_at_utc: ISSUED, rules: [], ...overlay }, key()));

describe('the source', () => {
  test('D1: without an overlay, ever, there is no fact and no file is created', () => {
    expect(source.current()).toBeNull();
    expect(source.current()).toBeNull();
    expect(readdirSync(folder)).toEqual([]);
  });

  test('D1: a new file, and every later one, applies at the next call', async () => {
    expect(source.current()).toBeNull();
    await add();
    expect(source.current()).toEqual({ epoch: 1, rules: [LANE] });
    await add();
    expect(source.current()).toEqual({ epoch: 2, rules: [LANE, { ...LANE, rule_id: 'deny-2' }] });
    await write(() => []);
    expect(source.current()).toEqual({ epoch: 3, rules: [] });
    expect(isConforming(OverlayFact, source.current())).toBe(true);
  });

  test('while nothing has changed, it is the same object, and the file is not read again', async () => {
    await add();
    const fact = source.current();
    expect(source.current()).toBe(fact);
    await settled();
    expect(source.current()).toBe(fact);
    // A read of the file would notice the missing key.
    rmSync(files.publicKeyPath);
    expect(source.current()).toBe(fact);
    expect(again()).toEqual(INVALID);
  });

  test('the first key, which is created before the first overlay, denies nothing to a running process', async () => {
    expect(source.current()).toBeNull();
    mkdirSync(keys);
    openSigningKey({ ...files, make: true });
    expect(source.current()).toBeNull();
    await add();
    expect(source.current()).toMatchObject({ epoch: 1 });
  });

  test('a key without an overlay at the start means that the overlay was removed', async () => {
    await add();
    rmSync(files.path);
    rmSync(files.seenPath);
    expect(again()).toEqual(MISSING);
  });
});

describe('refused files', () => {
  beforeEach(async () => {
    await add();
    expect(source.current()).toMatchObject({ epoch: 1 });
  });

  test('D1: the signed file with any bit of any byte flipped', () => {
    const right = bytesOf();
    const verifying = readVerifyingKey(files.publicKeyPath);
    expect(verifyOverlay(right, verifying).epoch).toBe(1);
    const passed: number[] = [];
    for (let bit = 0; bit < right.length * 8; bit += 1) {
      const flipped = Buffer.from(right);
      flipped[bit >> 3]! ^= 1 << (bit & 7);
      try {
        verifyOverlay(flipped, verifying);
        passed.push(bit);
      } catch (error) {
        if ((error as { code?: unknown }).code !== 'POLICY_INVALID') throw error;
      }
    }
    expect(passed).toEqual([]);
  });

  test('D1: the signed file with any byte omitted, doubled or replaced, for the source too', () => {
    const right = bytesOf();
    for (let at = 0; at < right.length; at += sized(5, 1)) {
      const [before, byte, after] = [right.subarray(0, at), right.subarray(at, at + 1), right.subarray(at + 1)];
      const others = [[before, after], [before, byte, byte, after], [before, Buffer.from(' '), after], [before]];
      for (const parts of others) {
        const other = Buffer.concat(parts);
        if (other.equals(right)) continue;
        writeFileSync(files.path, other);
        expect(source.current()).toEqual(INVALID);
      }
    }
    writeFileSync(files.path, right);
    expect(source.current()).toEqual({ epoch: 1, rules: [LANE] });
  });

  test.each<[string, (text: string) => string | Buffer]>([
    ['is empty', () => ''],
    ['has another end of line', (text) => text.replace('\n', '\r\n')],
    ['has a byte order mark', (text) => `\ufeff${text}`],
    ['is not UTF-8', (text) => Buffer.concat([Buffer.from(text.slice(0, -1)), Buffer.from([0xff])])],
    ['says a member twice', (text) => text.replace('"epoch":1', '"epoch":1,"epoch":1')],
    ['has a member more', (text) => text.replace('{"key_id"', '{"a":1,"key_id"')],
    ['has __proto__', (text) => text.replace('{"key_id"', '{"__proto__":{},"key_id"')],
    ['is in another order', (text) => text.replace(/^\{("key_id":"\w+"),(.*)\}$/m, '{$2,$1}')],
    ['is spelt with an escape', (text) => text.replace('"why"', '"wh\\u0079"')],
    ['has its epoch as 1.0', (text) => text.replace('"epoch":1', '"epoch":1.0')],
    ['is indented', (text) => JSON.stringify(JSON.parse(text), null, 1)],
    ['is an array of itself', (text) => `[${text}]`],
    ['is deep', () => '['.repeat(200_000)],
  ])('D1: a file that %s', (_what, change) => {
    const right = bytesOf().toString();
    const changed = change(right);
    expect(changed).not.toBe(right);
    writeFileSync(files.path, changed);
    expect(source.current()).toEqual(INVALID);
    expect(again()).toEqual(INVALID);
  });

  test('D1: a file signed with another key, or with this key for another purpose', () => {
    const other = generateKeyPairSync('ed25519').privateKey;
    const overlay: Overlay = { epoch: 2, issued_at_utc: ISSUED, rules: [] };
    const canonical = canonicalJson(overlay);
    const { key_id, sign: signText } = key();
    const forged = (signature: string): string => `${canonicalJson({ overlay, key_id, signature })}\n`;
    writeFileSync(
      files.path,
      forged(sign(null, Buffer.from(`turnpike overlay v1\n${canonical}`), other).toString('base64')),
    );
    expect(source.current()).toEqual(INVALID);
    for (const text of [canonical, `turnpike overlay v2\n${canonical}`]) {
      writeFileSync(files.path, forged(signText(text)));
      expect(source.current()).toEqual(INVALID);
    }
    writeFileSync(files.path, forged(signText(`turnpike overlay v1\n${canonical}`)));
    expect(source.current()).toEqual({ epoch: 2, rules: [] });
  });

  test('D1: signed invalid content: two rules of one id, a rule without a matcher', () => {
    const signed = (rules: readonly object[]): string => {
      const { key_id, sign: signText } = key();
      const overlay = { epoch: 2, issued_at_utc: ISSUED, rules };
      const signature = signText(`turnpike overlay v1\n${canonicalJson(overlay)}`);
      return `${canonicalJson({ overlay, key_id, signature })}\n`;
    };
    for (const rules of [
      [LANE, LANE],
      [{ rule_id: 'deny-1', reason: 'why' }],
      Array.from({ length: 65 }, () => LANE),
    ]) {
      writeFileSync(files.path, signed(rules));
      expect(source.current()).toEqual(INVALID);
    }
    expect(() => signOverlay({ epoch: 2, issued_at_utc: ISSUED, rules: [LANE, LANE] }, key())).toThrow('twice');
    expect(() => signOverlay({ epoch: 0, issued_at_utc: ISSUED, rules: [] }, key())).toThrow('overlay schema');
  });

  test('D1: a symbolic link, even to the right file; a folder; a FIFO, without waiting for it', () => {
    renameSync(files.path, join(folder, 'elsewhere'));
    symlinkSync('elsewhere', files.path);
    expect(source.current()).toEqual(INVALID);
    rmSync(files.path);
    mkdirSync(files.path);
    expect(source.current()).toEqual(INVALID);
    rmSync(files.path, { recursive: true });
    execFileSync('mkfifo', [files.path]);
    expect(source.current()).toEqual(INVALID);
    rmSync(files.path);
    renameSync(join(folder, 'elsewhere'), files.path);
    expect(source.current()).toEqual({ epoch: 1, rules: [LANE] });
  });

  test('D1: a file that is too large is not read; the largest that the schema allows fits', async () => {
    writeFileSync(files.path, Buffer.alloc(OVERLAY_BYTES_MAX + 1, 0x20));
    expect(source.current()).toEqual(INVALID);
    const [word, wide] = ['a'.repeat(120), '\u0001'];
    const ids = { role_id: word, lane_id: word, tool: word, table: word, run_id: word, case_id: 'a'.repeat(80) };
    const largest = { ...ids, action: 'A'.repeat(64), reason: wide.repeat(200), actor_id: wide.repeat(120) };
    await write(
      () =>
        Array.from({ length: 64 }, (_, n) => ({
          ...largest,
          rule_id: `deny-${999_999_900 + n}`,
        })),
      { repair: true },
    );
    expect(source.current()).toMatchObject({ epoch: 2 });
    expect(bytesOf().length).toBeGreaterThan(OVERLAY_BYTES_MAX / 2);
  });

  test('D1: a public key that is missing, of another pair, or writable by others', () => {
    const pem = bytesOf(files.publicKeyPath);
    rmSync(files.publicKeyPath);
    expect(again()).toEqual(INVALID);
    const other = generateKeyPairSync('ed25519').publicKey.export({ format: 'pem', type: 'spki' });
    writeFileSync(files.publicKeyPath, other);
    expect(again()).toEqual(INVALID);
    writeFileSync(files.publicKeyPath, pem);
    chmodSync(files.publicKeyPath, 0o666);
    const broken = overlayFile(files);
    expect(broken.current()).toEqual(INVALID);
    chmodSync(files.publicKeyPath, 0o644);
    expect(broken.current()).toEqual({ epoch: 1, rules: [LANE] });
  });

  test('D1: a path whose folder was replaced by a file', () => {
    rmSync(keys, { recursive: true });
    writeFileSync(keys, 'x');
    expect(again()).toEqual(INVALID);
    const below = overlayFiles(join(files.path, 'overlay.json'), keys);
    expect(overlayFile(below).current()).toEqual(INVALID);
  });
});

describe('stored epochs', () => {
  test('D1: a file that vanished', async () => {
    await add();
    const right = bytesOf();
    expect(source.current()).toMatchObject({ epoch: 1 });
    rmSync(files.path);
    expect(source.current()).toEqual(MISSING);
    expect(source.current()).toEqual(MISSING);
    expect(again()).toEqual(MISSING);
    writeFileSync(files.path, right);
    expect(source.current()).toEqual({ epoch: 1, rules: [LANE] });
  });

  test('D1: a file that was never valid and vanished does not allow everything', () => {
    writeFileSync(files.path, 'junk');
    expect(source.current()).toEqual(INVALID);
    rmSync(files.path);
    expect(source.current()).toEqual(MISSING);
  });

  test('D1: an epoch seen before, and the same epoch with other rules, also after a restart', async () => {
    await add();
    const first = bytesOf();
    await add();
    const second = bytesOf();
    expect(source.current()).toMatchObject({ epoch: 2 });
    writeFileSync(files.path, first);
    for (const fact of [source.current(), again()]) expect(fact).toEqual(ROLLED_BACK);
    plant({ epoch: 2, rules: [] });
    for (const fact of [source.current(), again()]) expect(fact).toEqual(ROLLED_BACK);
    writeFileSync(files.path, second);
    for (const fact of [source.current(), again()]) expect(fact).toMatchObject({ epoch: 2, rules: { length: 2 } });
    plant({ epoch: 7, rules: [] });
    for (const fact of [source.current(), again()]) expect(fact).toEqual({ epoch: 7, rules: [] });
  });

  test('D1: a problem ends only with a valid file of the highest epoch or a higher one', async () => {
    await add();
    await add();
    expect(source.current()).toMatchObject({ epoch: 2 });
    writeFileSync(files.path, 'junk');
    expect(source.current()).toEqual(INVALID);
    plant({ epoch: 1, rules: [LANE] });
    expect(source.current()).toEqual(ROLLED_BACK);
    rmSync(files.path);
    expect(source.current()).toEqual(MISSING);
    plant({ epoch: 3, rules: [LANE] });
    expect(source.current()).toEqual({ epoch: 3, rules: [LANE] });
  });

  test('D1: a process that never read the overlay knows what the command wrote', async () => {
    await add();
    const first = bytesOf();
    await add();
    writeFileSync(files.path, first);
    expect(again()).toEqual(ROLLED_BACK);
    rmSync(files.path);
    expect(again()).toEqual(MISSING);
  });

  test('D1: a process knows of an overlay that existed between two of its calls', async () => {
    expect(source.current()).toBeNull();
    await add();
    rmSync(files.path);
    expect(source.current()).toEqual(MISSING);
  });

  test('D1: the seen epoch is stored when it rises, and a lost one is stored again', async () => {
    await add();
    expect(bytesOf(files.seenPath).toString()).toMatch(/^turnpike-overlay-seen 1 1 [0-9a-f]{64}\n$/);
    expect(statSync(files.seenPath).mode & 0o777).toBe(0o600);
    plant({ epoch: 5 });
    expect(source.current()).toMatchObject({ epoch: 5 });
    const hash = sha256(canonicalJson({ epoch: 5, issued_at_utc: ISSUED, rules: [] }));
    expect(bytesOf(files.seenPath).toString()).toBe(`turnpike-overlay-seen 1 5 ${hash}\n`);
    rmSync(files.seenPath);
    expect(again()).toMatchObject({ epoch: 5 });
    expect(bytesOf(files.seenPath).toString()).toBe(`turnpike-overlay-seen 1 5 ${hash}\n`);
  });

  test('D1: the process remembers the epoch, whatever happens to the stored one', async () => {
    await add();
    const first = bytesOf();
    await add();
    source.current();
    rmSync(files.seenPath);
    writeFileSync(files.path, first);
    expect(source.current()).toEqual(ROLLED_BACK);
  });

  test.each(['', 'junk', 'turnpike-overlay-seen 1 0 ', 'turnpike-overlay-seen 2 1 '])(
    'D1: the stored epoch is damaged: %j',
    async (text) => {
      await add();
      writeFileSync(files.seenPath, text === '' || text === 'junk' ? text : `${text}${'0'.repeat(64)}\n`);
      const anew = overlayFile(files);
      expect(anew.current()).toEqual(INVALID);
      expect(() => readOverlay(files)).toThrow(expect.objectContaining({ code: 'POLICY_INVALID' }));
      rmSync(files.seenPath);
      expect(anew.current()).toMatchObject({ epoch: 1 });
    },
  );

  test('D1: an epoch that cannot be stored does not count until it can', async () => {
    await add();
    plant({ epoch: 2 });
    // Root may write anywhere, so the name is blocked: a folder cannot be replaced by a file.
    rmSync(files.seenPath);
    mkdirSync(join(files.seenPath, 'full'), { recursive: true });
    expect(source.current()).toEqual(INVALID);
    rmSync(files.seenPath, { recursive: true });
    expect(source.current()).toMatchObject({ epoch: 2 });
  });

  test('a change within one tick of the file system is noticed, with any size and time of the file', async () => {
    await add();
    for (let n = 0; n < 50; n += 1) {
      const right = bytesOf();
      const { atime, mtime } = statSync(files.path);
      const wrong = Buffer.from(right);
      wrong[wrong.indexOf('why')] = 0x78;
      for (const bytes of [wrong, right]) {
        writeFileSync(files.path, bytes);
        utimesSync(files.path, atime, mtime);
        expect(source.current()).toMatchObject({ epoch: bytes === right ? 1 : null });
      }
    }
  });

  test('a file that was changed just now is read again, since its times may stay the same while it changes', async () => {
    await add();
    chmodSync(files.path, 0o600);
    const now = jest.spyOn(Date, 'now').mockReturnValue(Math.floor(statSync(files.path).ctimeMs));
    source.current();
    now.mockRestore();
    rmSync(files.publicKeyPath);
    expect(source.current()).toEqual(INVALID);
  });

  test('a change that keeps size and time of an older file is noticed', async () => {
    await add();
    source.current();
    await settled();
    expect(source.current()).toMatchObject({ epoch: 1 });
    const { atime, mtime } = statSync(files.path);
    const bytes = bytesOf();
    bytes[bytes.indexOf('why')] = 0x78;
    writeFileSync(files.path, bytes);
    utimesSync(files.path, atime, mtime);
    expect(source.current()).toEqual(INVALID);
  });
});

describe('writing', () => {
  test('only the owner can access the file, and no other file is left', async () => {
    await add();
    await add();
    expect(statSync(files.path).mode & 0o777).toBe(0o600);
    expect(statSync(keys).mode & 0o777).toBe(0o700);
    expect(readdirSync(folder).sort()).toEqual(['keys', 'overlay.json']);
    expect(readdirSync(keys).sort()).toEqual(['overlay.key', 'overlay.pub', 'overlay.seen']);
  });

  test('it is the canonical text, signed over its domain', async () => {
    const overlay = await add();
    const { key_id } = key();
    const signature = key().sign(`turnpike overlay v1\n${canonicalJson(overlay)}`);
    expect(bytesOf().toString()).toBe(`${canonicalJson({ overlay, key_id, signature })}\n`);
    expect(readOverlay(files)).toEqual(overlay);
  });

  test('concurrent writers get one epoch each, and no rule is lost', async () => {
    const written = await Promise.all(Array.from({ length: 12 }, add));
    expect(written.map(({ epoch }) => epoch).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 12 }, (_, n) => n + 1),
    );
    expect(readOverlay(files)?.rules.map(({ rule_id }) => rule_id)).toEqual(
      Array.from({ length: 12 }, (_, n) => `deny-${n + 1}`),
    );
  });

  test('a lock that is never released is waited for with a timeout, and not broken', async () => {
    await add();
    const before = bytesOf();
    writeFileSync(files.lockPath, '1\n');
    await expect(write(undefined, { lockWaitMs: 60 })).rejects.toMatchObject({ code: 'POLICY_UNREADABLE' });
    expect(existsSync(files.lockPath)).toBe(true);
    expect(bytesOf()).toEqual(before);
    const waiting = write(undefined, { lockWaitMs: 5_000 });
    rmSync(files.lockPath);
    expect(await waiting).toMatchObject({ epoch: 2 });
    expect(existsSync(files.lockPath)).toBe(false);
  });

  test('an exception of the change callback changes nothing, and releases the lock', async () => {
    await add();
    const before = bytesOf();
    const no = write(() => {
      throw new Error('no');
    });
    await expect(no).rejects.toThrow('no');
    await expect(write(() => [LANE, LANE])).rejects.toMatchObject({ code: 'POLICY_INVALID' });
    expect(bytesOf()).toEqual(before);
    expect(readdirSync(folder).sort()).toEqual(['keys', 'overlay.json']);
    expect(await add()).toMatchObject({ epoch: 2 });
  });

  test('a creation that was interrupted after the private or the public key is continued', async () => {
    mkdirSync(keys);
    const { key_id } = openSigningKey({ ...files, make: true });
    expect(await add()).toMatchObject({ epoch: 1 });
    expect(key().key_id).toBe(key_id);
    rmSync(files.publicKeyPath);
    expect(await add()).toMatchObject({ epoch: 2, rules: { length: 2 } });
  });

  test('D1: a crash between the overlay and its seen epoch leaves a valid overlay', async () => {
    await add();
    const seen = bytesOf(files.seenPath);
    await add();
    writeFileSync(files.seenPath, seen);
    expect(again()).toMatchObject({ epoch: 2 });
  });
});

describe('lost or damaged files', () => {
  beforeEach(async () => {
    await add();
    await add();
    expect(source.current()).toMatchObject({ epoch: 2 });
  });

  const LOSSES: readonly (readonly [string, boolean, () => void])[] = [
    ['the overlay', false, () => rmSync(files.path)],
    ['the overlay, by damage', false, () => writeFileSync(files.path, 'junk')],
    ['the private key', true, () => rmSync(files.privateKeyPath)],
    ['the key pair', false, () => [files.privateKeyPath, files.publicKeyPath].forEach((path) => rmSync(path))],
    ['the seen epoch, by damage', false, () => writeFileSync(files.seenPath, 'junk')],
    [
      'the public key, replaced by another one',
      false,
      () =>
        writeFileSync(
          files.publicKeyPath,
          generateKeyPairSync('ed25519').publicKey.export({ format: 'pem', type: 'spki' }),
        ),
    ],
  ];

  test.each(LOSSES)(
    '%s: only repair overwrites it, and a running process accepts the result',
    async (_what, kept, lose) => {
      lose();
      const before = existsSync(files.path) ? bytesOf() : null;
      await expect(add()).rejects.toMatchObject({ code: expect.stringMatching(/^POLICY_/) });
      expect(existsSync(files.path) ? bytesOf() : null).toEqual(before);
      expect(existsSync(files.lockPath)).toBe(false);
      const { epoch, rules } = await write(undefined, { repair: true });
      expect({ epoch, rules: rules.length }).toEqual({ epoch: 3, rules: kept ? 2 : 0 });
      for (const fact of [source.current(), again()]) expect(fact).toEqual({ epoch, rules });
      expect(await add()).toMatchObject({ epoch: 4 });
    },
  );

  test('a rolled-back overlay: repair does not trust its rules', async () => {
    plant({ epoch: 1, rules: [LANE] });
    await expect(add()).rejects.toMatchObject({ code: 'POLICY_INVALID' });
    expect(await write(undefined, { repair: true })).toMatchObject({ epoch: 3, rules: [] });
    expect(source.current()).toEqual({ epoch: 3, rules: [] });
  });

  test('repair of intact files changes nothing', async () => {
    const { key_id } = key();
    expect(await write(undefined, { repair: true })).toMatchObject({ epoch: 3, rules: { length: 2 } });
    expect(key().key_id).toBe(key_id);
  });
});
