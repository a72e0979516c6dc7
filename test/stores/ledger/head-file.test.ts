import {
  closeSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { headFile } from '../../../src/stores/ledger/head-file.js';
import type { ExternalHeadStore } from '../../../src/engine/ports/ledger/ledger-store.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import { sized } from '../../fixtures/campaign.js';
import { diskFolder } from '../../fixtures/temp-folder.js';

const SLOTS = [0, 4_096] as const;
const headOf = (size: number) => ({ size, root: sha256(`root ${size}`) });

describe('the head file', () => {
  let folder: string;
  let path: string;
  let file: ExternalHeadStore;

  beforeEach(() => {
    folder = diskFolder('head');
    path = join(folder, 'ledger.head');
    file = headFile(path);
  });
  afterEach(async () => {
    await file.close();
    rmSync(folder, { recursive: true });
  });

  const readAgain = () => headFile(path).read();

  test('D15: before the first write there is no head, and reading creates no file', async () => {
    expect(await file.read()).toBeNull();
    expect(existsSync(path)).toBe(false);
  });

  test('D15: a written head is read by the same and by another instance', async () => {
    for (const size of [0, 1, 2, 3, 10, 4_294_967_297]) {
      await file.write(headOf(size));
      expect(await file.read()).toEqual(headOf(size));
      expect(await readAgain()).toEqual(headOf(size));
    }
    expect(readdirSync(folder)).toEqual(['ledger.head']);
    expect(statSync(path).mode & 0o077).toBe(0);
    expect(statSync(path).size).toBeLessThanOrEqual(8_192);
  });

  test('continues the head file of another process', async () => {
    await file.write(headOf(5));
    const next = headFile(path);
    await next.write(headOf(6));
    await next.close();
    expect(await readAgain()).toEqual(headOf(6));
  });

  test('C61: a head that goes back, or differs at the same size, is LEDGER_BELOW_HEAD and is not written', async () => {
    await file.write(headOf(5));
    const another = headFile(path);
    for (const one of [file, another]) {
      await expect(one.write(headOf(4))).rejects.toMatchObject({ code: 'LEDGER_BELOW_HEAD' });
      await expect(one.write({ ...headOf(5), root: sha256('other') })).rejects.toMatchObject({
        code: 'LEDGER_BELOW_HEAD',
      });
      expect(await readAgain()).toEqual(headOf(5));
      await one.write(headOf(5));
    }
    await another.write(headOf(6));
    expect(await readAgain()).toEqual(headOf(6));
    await another.close();
  });

  test('D15: a head that waits for the end of the pause is written when the file is closed', async () => {
    await file.write(headOf(1));
    const written = [file.write(headOf(2)), file.write(headOf(3))];
    await file.close();
    expect(await readAgain()).toEqual(headOf(3));
    await Promise.all(written);
  });

  describe('while time stands still', () => {
    beforeEach(() => {
      jest.useFakeTimers({
        doNotFake: ['Date', 'hrtime', 'nextTick', 'queueMicrotask', 'setImmediate', 'setInterval'],
      });
    });
    afterEach(() => void jest.useRealTimers());
    const turns = async (): Promise<void> => {
      for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    };

    test('D15 H5: a head right after another one waits for the end of the pause', async () => {
      await file.write(headOf(1));
      const written = file.write(headOf(2));
      await turns();
      expect(await readAgain()).toEqual(headOf(1));
      jest.advanceTimersByTime(5);
      await written;
      expect(await readAgain()).toEqual(headOf(2));
    });

    test('D15 H5: closing does not wait for the end of the pause', async () => {
      await file.write(headOf(1));
      const written = file.write(headOf(2));
      await turns();
      await file.close();
      await written;
      expect(await readAgain()).toEqual(headOf(2));
    });

    test('D15 H5: a head that waits for a write in flight when the file is closed has no pause', async () => {
      await file.write(headOf(1));
      const written = [file.write(headOf(2))];
      await turns();
      jest.advanceTimersByTime(5);
      // Long enough to leave the queue, and not long enough to complete.
      for (let tick = 0; tick < 5; tick += 1) await Promise.resolve();
      written.push(file.write(headOf(3)));
      await file.close();
      await Promise.all(written);
      expect(await readAgain()).toEqual(headOf(3));
    });
  });

  test('a closed file has no open descriptor', async () => {
    const held = (): number => descriptorsOf(path).length;
    await file.write(headOf(1));
    expect(held()).toBe(1);
    await file.close();
    expect(held()).toBe(0);
  });

  test('of concurrent writes the newest is durable when any but the first resolves', async () => {
    const written = Array.from({ length: 50 }, (_, size) => file.write(headOf(size)));
    await written[1];
    expect(await readAgain()).toEqual(headOf(49));
    await Promise.all(written);
    expect(await readAgain()).toEqual(headOf(49));
  });

  test('a write that is torn anywhere leaves the new head or the one before it', async () => {
    await file.write(headOf(1));
    await file.write(headOf(2));
    const before = readFileSync(path);
    await file.write(headOf(3));
    const after = readFileSync(path);
    const differs = SLOTS.filter((at) => !before.subarray(at, at + 256).equals(after.subarray(at, at + 256)));
    expect(differs).toHaveLength(1);
    const [at] = differs as [number];
    for (let cut = 0; cut <= 256; cut += sized(4, 1)) {
      for (const rest of [before, Buffer.alloc(8_192), Buffer.alloc(8_192, 0xff)]) {
        const torn = Buffer.from(before);
        after.copy(torn, at, at, at + cut);
        rest.copy(torn, at + cut, at + cut, at + 256);
        writeFileSync(path, torn);
        expect([2, 3]).toContain((await readAgain())?.size);
      }
    }
  });

  test('a slot with any bit flipped is ignored, and the other one counts', async () => {
    await file.write(headOf(1));
    await file.write(headOf(2));
    const whole = readFileSync(path);
    const newest = SLOTS.find((at) => whole.toString('latin1', at, at + 256).startsWith('turnpike-head 1 head 2 '))!;
    const length = whole.indexOf('\n', newest) - newest;
    for (let bit = 0; bit < (length + 1) * 8; bit += sized(5, 1)) {
      const flipped = Buffer.from(whole);
      flipped[newest + (bit >> 3)]! ^= 1 << (bit & 7);
      writeFileSync(path, flipped);
      expect(await readAgain()).toEqual(headOf(1));
    }
  });

  test.each<[string, (bytes: Buffer) => Buffer]>([
    ['is empty', () => Buffer.alloc(0)],
    ['is zeros', (bytes) => Buffer.alloc(bytes.length)],
    ['is something else', () => Buffer.from('{"size":3,"root":"ab"}\n')],
    ['has both slots damaged', (bytes) => Buffer.from(bytes.map((byte, at) => (at % 4_096 === 20 ? byte ^ 1 : byte)))],
  ])(
    'D15: a file that %s is LEDGER_TAMPERED, for reading and for writing, and is not changed',
    async (_what, damage) => {
      await file.write(headOf(1));
      await file.write(headOf(2));
      const damaged = damage(readFileSync(path));
      writeFileSync(path, damaged);
      const another = headFile(path);
      await expect(another.read()).rejects.toMatchObject({ code: 'LEDGER_TAMPERED' });
      await expect(another.write(headOf(3))).rejects.toMatchObject({ code: 'LEDGER_TAMPERED' });
      expect(readFileSync(path).equals(damaged)).toBe(true);
    },
  );

  test('the draft that a crash left of the first write is not a head file, and does no harm', async () => {
    writeFileSync(`${path}.new`, 'torn');
    expect(await file.read()).toBeNull();
    await file.write(headOf(1));
    expect(await readAgain()).toEqual(headOf(1));
    expect(existsSync(`${path}.new`)).toBe(false);
  });

  test('after a failed write nothing is written any more, even if it would succeed', async () => {
    const later = join(folder, 'later');
    const lost = headFile(join(later, 'ledger.head'));
    await expect(lost.write(headOf(1))).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE' });
    mkdirSync(later);
    await expect(lost.write(headOf(2))).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE' });
    expect(readdirSync(later)).toEqual([]);
    await lost.reopen();
    await lost.write(headOf(3));
    expect(await headFile(join(later, 'ledger.head')).read()).toEqual(headOf(3));
    await lost.close();
  });

  test('D15 H4: after `reopen` a head goes to the slot that failed, so that the last durable one stays until then', async () => {
    await file.write(headOf(1));
    await file.write(headOf(2));
    for (const descriptor of descriptorsOf(path)) closeSync(descriptor);
    await expect(file.write(headOf(3))).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE' });
    await expect(file.write(headOf(4))).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE' });
    await file.reopen();
    expect(await readAgain()).toEqual(headOf(2));
    await file.write(headOf(5));
    const slots = SLOTS.map(
      (at) =>
        readFileSync(path)
          .toString('latin1', at, at + 30)
          .split(' ')[3],
    );
    expect(slots).toEqual(['2', '5']);
    await expect(file.write(headOf(4))).rejects.toMatchObject({ code: 'LEDGER_BELOW_HEAD' });
  });
});

/** The descriptors of this process that are open for a file. */
const descriptorsOf = (path: string): readonly number[] =>
  readdirSync('/proc/self/fd')
    .filter((descriptor) => {
      try {
        return readlinkSync(`/proc/self/fd/${descriptor}`) === path;
      } catch {
        return false;
      }
    })
    .map(Number);
