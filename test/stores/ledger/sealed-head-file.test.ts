// The head file of a home directory: its heads are signed. A torn slot is ignored; a complete slot that the key of this
// ledger has not signed prevents opening.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { headFile } from '../../../src/stores/ledger/head-file.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import { notePrivateKey, noteSigner } from '../../../src/core/ledger/proof/signed-note.js';
import { createHeadSeal } from '../../../src/home/ledger-key.js';
import { diskFolder } from '../../fixtures/temp-folder.js';

const SLOTS = [0, 4_096] as const;
const headOf = (size: number) => ({ size, root: sha256(`root ${size}`) });
const sealOf = (seed: number) => createHeadSeal(noteSigner(notePrivateKey('turnpike/head', Buffer.alloc(32, seed))!)!);
const [own, foreign] = [sealOf(1), sealOf(2)];
const code = (expected: string) => expect.objectContaining({ code: expected });

let folder: string;
let path: string;
beforeEach(async () => {
  folder = diskFolder('sealed');
  path = join(folder, 'ledger.head');
  await written([1, 2]);
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Writes heads of these sizes, one after the other. The last one of two is in the second slot. */
async function written(sizes: readonly number[], seal = own): Promise<void> {
  const file = headFile(path, seal);
  for (const size of sizes) await file.write(headOf(size));
  await file.close();
}
const read = (seal: ReturnType<typeof sealOf> | null = own) => headFile(path, seal).read();

/** Changes the file. */
function patched(change: (bytes: Buffer) => Buffer): void {
  writeFileSync(path, change(readFileSync(path)));
}
const slotAt = (bytes: Buffer, at: number): Buffer => bytes.subarray(at, at + 1_024);

/** A slot with a correct hash of its own. */
function slotOf(note: string): Buffer {
  const slot = Buffer.alloc(1_024);
  slot.write(`turnpike-head 1 note ${Buffer.byteLength(note)} ${sha256(note)}\n${note}`);
  return slot;
}

describe('D15: a signed head file', () => {
  test('contains the two newest heads, each as a signed checkpoint', async () => {
    expect(await read()).toMatchObject(headOf(2));
    const bytes = readFileSync(path);
    const notes = SLOTS.map((at) =>
      own.open(
        slotAt(bytes, at)
          .toString('utf8')
          .replace(/^[^\n]*\n/, '')
          .replaceAll('\0', ''),
      ),
    );
    expect(notes.map((head) => head?.size).sort()).toEqual([1, 2]);
  });

  test('returns the previous head if a write of the newest one was torn anywhere', async () => {
    const whole = readFileSync(path);
    const newest = SLOTS.find((at) => slotAt(whole, at).includes('\n2\n'))!;
    const length = slotAt(whole, newest).indexOf(0);
    for (let torn = 0; torn < length; torn += 1) {
      patched(() =>
        Buffer.concat([whole.subarray(0, newest + torn), Buffer.alloc(1_024 - torn), whole.subarray(newest + 1_024)]),
      );
      expect([torn, (await read())?.size]).toEqual([torn, 1]);
    }
    for (let at = 0; at < length; at += 1) {
      const damaged = Buffer.from(whole);
      damaged[newest + at]! ^= 1;
      patched(() => damaged);
      // The hash covers the note only: if the line before the note is damaged, the slot does not count.
      expect([at, (await read())?.size]).toEqual([at, 1]);
    }
  });

  test('is not taken for an empty one if both slots are torn', async () => {
    patched((bytes) => bytes.fill(0, SLOTS[0] + 100, SLOTS[0] + 110).fill(0, SLOTS[1] + 100, SLOTS[1] + 110));
    await expect(read()).rejects.toEqual(code('LEDGER_TAMPERED'));
  });

  test.each(SLOTS)(
    'is refused if the slot at %i has a complete head signed by another key, however old that head is',
    async (at) => {
      for (const size of [1, 2, 3]) {
        const slot = slotOf(foreign.seal(headOf(size)));
        patched((bytes) => Buffer.concat([bytes.subarray(0, at), slot, bytes.subarray(at + 1_024)]));
        await expect(read()).rejects.toEqual(code('LEDGER_TAMPERED'));
        await expect(headFile(path, own).write(headOf(9))).rejects.toEqual(code('LEDGER_TAMPERED'));
      }
    },
  );

  test('is refused by a reader with another key, and so is a head without a signature', async () => {
    await expect(read(foreign)).rejects.toEqual(code('LEDGER_TAMPERED'));
    const statement = `turnpike-head 1 head 3 ${headOf(3).root}`;
    patched((bytes) =>
      Buffer.concat([Buffer.from(`${statement} ${sha256(statement)}\n`.padEnd(1_024, '\0')), bytes.subarray(1_024)]),
    );
    await expect(read()).rejects.toEqual(code('LEDGER_TAMPERED'));
  });
});

test('D15: a head whose flush fails was not written: a device that cannot be flushed stores no head', async () => {
  const file = headFile(path, own);
  await file.write(headOf(3));
  // This device accepts writes, and fails to flush.
  rmSync(path);
  symlinkSync('/dev/null', path);
  await file.reopen();
  await expect(file.write(headOf(4))).rejects.toEqual(code('LEDGER_UNAVAILABLE'));
  await file.close();
});
