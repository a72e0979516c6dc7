import { describe, expect, test } from '@jest/globals';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createBagFolder } from '../../src/adapters/bag-folder-sink.js';
import { createBagZip } from '../../src/adapters/bag-zip-sink.js';
import { writeBag } from '../../src/bagit/write.js';
import { put, tempFolder, turnpike } from './fake-io.js';

async function* payload(): AsyncGenerator<{ path: string; content: Uint8Array }> {
  yield await Promise.resolve({ path: 'a.txt', content: Buffer.from('alpha') });
  yield { path: 'b/c.txt', content: Buffer.from('gamma') };
}

async function bagIn(folder: string, name: 'case' | 'case.zip'): Promise<void> {
  const sink = name === 'case' ? createBagFolder(join(folder, name)) : await createBagZip(join(folder, name));
  await writeBag(sink, payload(), { bagging_date: '2026-01-01', info: [] });
}

describe('export verify', () => {
  test.each(['case', 'case.zip'] as const)('RFC 8493: a bag that is whole is valid, as %s', async (name) => {
    const folder = tempFolder();
    await bagIn(folder, name);
    const { code, stdout, stderr } = await turnpike(folder, ['export', 'verify', name]);
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: 'ok: 2 files, 10 bytes, BagIt 1.0, sha256, sha512\n',
      stderr: '',
    });
    const told = await turnpike(folder, ['export', 'verify', name, '--json']);
    expect(JSON.parse(told.stdout)).toMatchObject({ valid: true, payload: { files: 2, bytes: 10 }, findings: [] });
  });

  test('RFC 8493: a file that was changed, and one that nobody listed, are named', async () => {
    const folder = tempFolder();
    await bagIn(folder, 'case');
    writeFileSync(join(folder, 'case/data/a.txt'), 'alpHa');
    writeFileSync(join(folder, 'case/data/\u001b[31mx'), 'x');
    const { code, stdout } = await turnpike(folder, ['export', 'verify', 'case']);
    expect(code).toBe(1);
    expect(stdout).toContain('error: data/a.txt: ');
    expect(stdout).not.toContain('\u001b');
    expect(stdout).toMatch(/\nnot valid: 2 files/);
  });

  test('an archive that was cut, a file that is none, and nothing at all', async () => {
    const folder = tempFolder();
    await bagIn(folder, 'case.zip');
    const bytes = readFileSync(join(folder, 'case.zip'));
    writeFileSync(join(folder, 'cut.zip'), bytes.subarray(0, bytes.length - 30));
    put(folder, 'text.zip', 'text');
    for (const name of ['cut.zip', 'text.zip', 'nothing']) {
      const { code, stderr } = await turnpike(folder, ['export', 'verify', name]);
      expect({ name, code }).toEqual({ name, code: 1 });
      expect(stderr).toMatch(/^BAG_(UNREADABLE|HOSTILE): /);
    }
    expect(await turnpike(folder, ['export', 'verify'])).toMatchObject({ code: 2 });
  });
});
