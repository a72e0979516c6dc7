// Archives and directories that were made to cause harm.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readlinkSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { openBagFolder } from '../../../../src/features/exports/bag/bag-folder.js';
import { createBagFolder, createBagZip } from '../../../../src/features/exports/bag/create-bag.js';
import { openBagZip } from '../../../../src/features/exports/bag/bag-zip.js';
import { writeBag } from '../../../../src/features/exports/bagit/write-bag.js';
import { sized } from '../../../fixtures/campaign.js';
import {
  forgeZip,
  OPTIONS,
  payloadOf,
  place,
  rulesOf,
  verifyFolder,
  verifyZip,
  type Forged,
  verifyBag,
} from './material.js';

const directory = place();
afterAll(directory.remove);
let good: readonly Forged[] = [];

beforeAll(async () => {
  await writeBag(await createBagZip(directory.at('good.zip'), 'bag'), payloadOf({ 'a.txt': 'a' }), OPTIONS);
  const tree = await openBagZip(directory.at('good.zip'));
  const forged: Forged[] = [];
  for await (const entry of tree.entries()) {
    if (entry.kind !== 'file') continue;
    const parts: Uint8Array[] = [];
    for await (const part of tree.read(entry.path)) parts.push(part);
    forged.push({ name: `bag/${entry.path}`, content: Buffer.concat(parts) });
  }
  await tree.close();
  good = forged;
});

async function verifyForged(entries: readonly Forged[], change = (bytes: Buffer): Buffer => bytes) {
  writeFileSync(directory.at('forged.zip'), change(forgeZip(entries)));
  return await verifyZip(directory.at('forged.zip'));
}
const refusalsOf = async (entries: readonly Forged[]): Promise<readonly string[]> => {
  const { findings } = await verifyForged(entries);
  return findings.filter(({ rule_id }) => rule_id === 'tree.refused').map(({ message }) => message);
};

const NAME = 'its name cannot be one of a bag';
const extra = (name: string): Buffer => {
  const field = Buffer.alloc(9 + name.length);
  field.writeUInt16LE(0x7075, 0);
  field.writeUInt16LE(5 + name.length, 2);
  field.writeUInt8(1, 4);
  field.write(name, 9);
  return field;
};

describe('a hostile archive', () => {
  test('is distinguished from a valid one, compressed or not', async () => {
    expect((await verifyForged(good)).findings).toEqual([]);
    expect((await verifyForged(good.map((entry) => ({ ...entry, deflate: true })))).findings).toEqual([]);
  });

  test.each<[string, Forged, string]>([
    ['leads upwards', { name: 'bag/../../etc/passwd' }, NAME],
    ['is absolute', { name: '/etc/passwd' }, NAME],
    ['is absolute on Windows', { name: 'C:/x' }, NAME],
    ['leads to a home', { name: '~/x' }, NAME],
    ['has backslashes', { name: 'bag\\..\\x' }, NAME],
    ['has an empty segment', { name: 'bag//x' }, NAME],
    ['has a dot segment', { name: 'bag/./x' }, NAME],
    ['is empty', { name: '' }, NAME],
    ['has a NUL', { name: 'bag/a\0.txt' }, NAME],
    ['is too long', { name: `bag/${'x'.repeat(5_000)}` }, NAME],
    ['is a symbolic link', { name: 'bag/data/x', content: '/etc/passwd', mode: 0o120777 }, 'it is a symbolic link'],
    ['is a device', { name: 'bag/data/x', mode: 0o020666 }, 'it is neither a file nor a directory'],
    ['is a FIFO', { name: 'bag/data/x', mode: 0o010666 }, 'it is neither a file nor a directory'],
    ['is repeated', { name: 'bag/data/a.txt', content: 'b' }, 'something else has its name'],
    ['is a directory as well', { name: 'bag/data/a.txt/b' }, 'something else has its name'],
    ['is encrypted', { name: 'bag/data/x', flags: 0x801, content: 'x'.repeat(12), bytes: 0 }, 'it is encrypted'],
    ['has an unknown compression', { name: 'bag/data/x', method: 14 }, 'it is compressed in a way that is not known'],
    ['has two names', { name: 'bag/data/x', extra: extra('bag/data/y') }, 'the archive contradicts itself about it'],
    ['grows', { name: 'bag/data/x', content: Buffer.alloc(2 ** 21), deflate: true }, 'it would grow too much'],
  ])('an entry that %s is rejected', async (_name, entry, message) => {
    // A directory that is a file is reported at the file, which comes first.
    expect(await refusalsOf([...good, entry])).toEqual([message]);
  });

  test('an entry whose second name is the same is accepted', async () => {
    const same = good.map((entry) => ({ ...entry, extra: extra(entry.name) }));
    expect((await verifyForged(same)).findings).toEqual([]);
  });

  const lying = (lie: Partial<Forged>): readonly Forged[] =>
    good.map((entry) =>
      entry.name === 'bag/data/a.txt' ? { ...entry, content: 'aaaa', deflate: true, ...lie } : entry,
    );

  test.each<[string, Partial<Forged>]>([
    ['declares less than it contains', { bytes: 1 }],
    ['declares more than it contains', { bytes: 2_000 }],
    ['has corrupt data', { content: 'a', deflate: false, method: 8 }],
  ])('an entry that %s cannot be read', async (_name, lie) => {
    expect(rulesOf(await verifyForged(lying(lie)), 'error')).toContain('tree.unreadable');
  });

  test.each<[string, Partial<Forged>]>([
    ['has another name before the data', { content: 'a', deflate: false, localName: 'bag/data/b.txt' }],
    ['has another method before the data', { content: 'a', localMethod: 0 }],
    ['is cut short', { compressed: 2 }],
    ['is stored and has two sizes', { deflate: false, bytes: 1 }],
  ])('an entry that %s makes the whole archive unusable', async (_name, lie) => {
    await expect(verifyForged(lying(lie))).rejects.toMatchObject({ code: 'BAG_HOSTILE' });
  });

  test('overlapping entries make the whole archive unusable', async () => {
    const big = { name: 'bag/data/0', content: Buffer.alloc(100_000, 1) };
    const over = Array.from({ length: 50 }, (_, index) => ({ ...big, name: `bag/data/${index + 1}`, sameAs: 0 }));
    await expect(verifyForged([big, ...over])).rejects.toMatchObject({ code: 'BAG_HOSTILE', message: /overlap/ });
  });

  test('too many entries make the whole archive unusable', async () => {
    const limits = { entries_max: good.length };
    expect((await verifyZip(directory.at('good.zip'), { entries_max: good.length + 1 })).valid).toBe(true);
    await expect(verifyZip(directory.at('good.zip'), limits)).rejects.toMatchObject({ code: 'BAG_HOSTILE' });
  });

  test('a file that is not an archive, or truncated, is unusable', async () => {
    await expect(verifyForged(good, (bytes) => bytes.subarray(0, -30))).rejects.toMatchObject({
      code: 'BAG_UNREADABLE',
    });
    await expect(verifyForged(good, () => Buffer.from('PK'))).rejects.toMatchObject({ code: 'BAG_UNREADABLE' });
    await expect(verifyZip(directory.at('none.zip'))).rejects.toMatchObject({ code: 'BAG_UNREADABLE' });
    execFileSync('mkfifo', [directory.at('fifo.zip')]);
    await expect(verifyZip(directory.at('fifo.zip'))).rejects.toMatchObject({ code: 'BAG_UNREADABLE' });
    mkdirSync(directory.at('folder.zip'));
    await expect(verifyZip(directory.at('folder.zip'))).rejects.toMatchObject({ code: 'BAG_UNREADABLE' });
  });

  test('changing any byte never causes another error or an endless read', async () => {
    const bytes = forgeZip(good.map((entry) => ({ ...entry, deflate: true })));
    const errors = new Set<string>();
    // The records that make the whole archive unusable are at its end.
    const END = 200;
    for (let at = 0; at < bytes.length; at += at < bytes.length - END ? sized(29, 7) : 7) {
      const changed = Buffer.from(bytes);
      changed.writeUInt8(changed.readUInt8(at) ^ (1 << (at % 8)), at);
      writeFileSync(directory.at('changed.zip'), changed);
      await verifyZip(directory.at('changed.zip')).catch((error: unknown) =>
        errors.add((error as { code?: string }).code ?? String(error)),
      );
    }
    expect([...errors].sort()).toEqual(['BAG_HOSTILE', 'BAG_UNREADABLE']);
  });
});

describe('a hostile directory', () => {
  const folder = (name: string): string => directory.at(name);
  const write = async (name: string): Promise<string> => {
    await writeBag(createBagFolder(folder(name)), payloadOf({ 'a.txt': 'a', 'b/c.txt': 'c' }), OPTIONS);
    return folder(name);
  };

  test('links, FIFOs and sockets are rejected and never opened', async () => {
    const bag = await write('kinds');
    symlinkSync('/etc/passwd', `${bag}/data/link`);
    symlinkSync('/etc', `${bag}/data/directory`);
    symlinkSync('a.txt', `${bag}/data/inside`);
    execFileSync('mkfifo', [`${bag}/data/fifo`]);
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(`${bag}/data/socket`, resolve));
    const { findings } = await verifyFolder(bag);
    server.close();
    expect(findings.map(({ path, message }) => [path, message]).sort()).toEqual([
      ['data/directory', 'it is a symbolic link'],
      ['data/fifo', 'it is neither a file nor a directory'],
      ['data/inside', 'it is a symbolic link'],
      ['data/link', 'it is a symbolic link'],
      ['data/socket', 'it is neither a file nor a directory'],
    ]);
  });

  test('a name that is not UTF-8 is rejected', async () => {
    const bag = await write('names');
    writeFileSync(Buffer.concat([Buffer.from(`${bag}/data/`), Buffer.from([0xff])]), '');
    expect(rulesOf(await verifyFolder(bag))).toEqual(['tree.refused']);
  });

  test('a directory that is too deep is not walked', async () => {
    const bag = await write('deep');
    mkdirSync(`${bag}/data/${'d/'.repeat(70)}`, { recursive: true });
    expect(rulesOf(await verifyFolder(bag))).toEqual(['tree.refused']);
  });

  test.each(['data/b/c.txt', 'data/b'])(
    'a file that was replaced by a link after listing is not read: %s',
    async (path) => {
      const bag = await write(`swap-${path.length}`);
      const outside = await write(`outside-${path.length}`);
      const tree = openBagFolder(bag);
      const swapped = {
        ...tree,
        entries: () => tree.entries(),
        close: () => tree.close(),
        read: (name: string) => {
          if (name === 'data/a.txt') {
            renameSync(`${bag}/${path}`, `${bag}/gone`);
            symlinkSync(`${outside}/${path}`, `${bag}/${path}`);
          }
          return tree.read(name);
        },
      };
      // Sorted, so that the file of this name comes after the other one.
      const sorted = { ...swapped, entries: () => inOrder(tree.entries()) };
      const { findings } = await verifyBag(sorted);
      await tree.close();
      expect(findings).toEqual([
        expect.objectContaining({
          rule_id: 'tree.unreadable',
          path: 'data/b/c.txt',
          message: expect.stringContaining('is not what it was when it was listed'),
        }),
      ]);
    },
  );

  test('no file stays open', async () => {
    const bag = await write('open');
    const open = (): readonly string[] =>
      readdirSync('/proc/self/fd').flatMap((fd) => {
        try {
          return [readlinkSync(`/proc/self/fd/${fd}`)].filter((path) => path.startsWith(directory.at('')));
        } catch {
          return [];
        }
      });
    await verifyFolder(bag);
    await verifyZip(directory.at('good.zip'));
    // Streams close their files in the background; one that stays open lets the test run out of time.
    while (open().length > 0) await new Promise((resolve) => setTimeout(resolve, 5));
  });

  test('a path that is not a directory is unusable', () => {
    writeFileSync(folder('file'), '');
    for (const name of ['none', 'file']) {
      expect(() => openBagFolder(folder(name))).toThrow(expect.objectContaining({ code: 'BAG_UNREADABLE' }));
    }
    rmSync(folder('file'));
  });
});

async function* inOrder<T extends { readonly path: string }>(entries: AsyncIterable<T>): AsyncGenerator<T> {
  const list: T[] = [];
  for await (const entry of entries) list.push(entry);
  yield* list.sort((one, other) => (one.path < other.path ? -1 : 1));
}
