import { describe, expect, test } from '@jest/globals';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createBagFolder, createBagZip } from '../../../../../src/features/exports/bag/create-bag.js';
import { writeBag } from '../../../../../src/features/exports/bagit/write-bag.js';
import { signer } from '../../../../features/exports/bag-forging.js';
import {
  assembleBundle,
  filesOf,
  writeFiles,
  ledgerOf,
  requestFor,
  sealed,
} from '../../../../features/exports/material.js';
import { put, tempFolder, turnpike } from '../../fake-io.js';

async function* payload(): AsyncGenerator<{ path: string; content: Uint8Array }> {
  yield await Promise.resolve({ path: 'a.txt', content: Buffer.from('alpha') });
  yield { path: 'b/c.txt', content: Buffer.from('gamma') };
}

async function bagIn(folder: string, name: 'case' | 'case.zip'): Promise<void> {
  const sink = name === 'case' ? createBagFolder(join(folder, name)) : await createBagZip(join(folder, name));
  await writeBag(sink, payload(), { bagging_date: '2026-01-01', info: [] });
}

describe('export verify', () => {
  test.each(['case', 'case.zip'] as const)('RFC 8493: accepts a complete bag, as %s', async (name) => {
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

  test('a bag that is not an export has no signature: exits 4 with a key and 0 without', async () => {
    const folder = tempFolder();
    await bagIn(folder, 'case');
    const { code, stdout } = await turnpike(folder, ['export', 'verify', 'case', '--key', signer.vkey]);
    expect([code, stdout]).toEqual([4, expect.stringMatching(/^ok: 2 files/m)]);
  });

  test('RFC 8493: names a changed file, and one that is not listed', async () => {
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

  test('rejects a truncated archive, a file that is not a bag, and a missing file', async () => {
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
  });

  test.each(['folder', 'zip'] as const)('S4-77: prints the contents of an export, as %s', async (format) => {
    const folder = tempFolder();
    const name = format === 'zip' ? 'bundle.zip' : 'bundle';
    const { bytes } = await assembleBundle(await ledgerOf(), requestFor(join(folder, name), { format }));
    const { code, stdout, stderr } = await turnpike(folder, ['export', 'verify', name]);
    expect({ code, stdout, stderr }).toEqual({
      code: 4,
      stdout:
        'bundle bundle_0001: 6 artifacts, 27 audit events, 10 runs\n' +
        'unauthenticated: it has no proof: a ledger without a key made it\n' +
        `ok: 13 files, ${bytes} bytes, BagIt 1.0, sha256, sha512\n`,
      stderr: '',
    });
    const told = await turnpike(folder, ['export', 'verify', name, '--json']);
    expect(JSON.parse(told.stdout)).toMatchObject({ valid: true, bundle: { bundle_id: 'bundle_0001', runs: 10 } });
  });

  test('S4-77: rejects a changed export whose bag was made valid again', async () => {
    const folder = tempFolder();
    await assembleBundle(await ledgerOf(), requestFor(join(folder, 'bundle')));
    const files = filesOf(join(folder, 'bundle'));
    const events = files['data/audit.jsonl']!.toString().replace('"allow"', '"deny"').split('\n').slice(1).join('\n');
    writeFiles(join(folder, 'forged'), sealed({ ...files, 'data/audit.jsonl': Buffer.from(events) }));
    const { code, stdout } = await turnpike(folder, ['export', 'verify', 'forged']);
    expect(code).toBe(1);
    expect(stdout).toContain('error: data/audit.jsonl: bundle.events_differ: ');
    expect(stdout).toMatch(/\nbundle bundle_0001: .*\nunauthenticated: it is not valid\nnot valid: 13 files/);
  });

  test('escapes text of an export', async () => {
    const folder = tempFolder();
    await assembleBundle(await ledgerOf(), requestFor(join(folder, 'bundle')));
    const files = filesOf(join(folder, 'bundle'));
    const manifest = files['data/manifest.json']!.toString().replace('bundle_0001', 'bundle_\u009b31m');
    writeFiles(join(folder, 'forged'), sealed({ ...files, 'data/manifest.json': Buffer.from(manifest) }));
    const { code, stdout } = await turnpike(folder, ['export', 'verify', 'forged']);
    expect(code).toBe(1);
    expect(stdout).toContain('bundle bundle_\\u009b31m: ');
    expect(stdout).not.toContain('\u009b');
  });
});
