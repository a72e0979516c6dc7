// Several processes that start at the same moment on an empty key folder.

import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { readLedgerSigner, readLedgerVerifier } from '../../src/home/ledger-key.js';
import { bundled } from '../fixtures/bundled.js';
import { tempFolder } from '../fixtures/temp-folder.js';
import { ROOT } from '../root.js';

const PROCESSES = 4;
const ROUNDS = 40;
/** Time for the processes to load, in ms. */
const LOAD_MS = 1_500;

const folder = tempFolder('key-race');
beforeAll(async () => {
  mkdirSync(folder, { recursive: true });
  await bundled(folder, { 'ledger-key': 'src/home/ledger-key.ts' });
  copyFileSync(join(ROOT, 'test/home/create-key.mjs'), join(folder, 'create-key.mjs'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.each(['ensure', 'draft'])('D15: all processes have the same key (%s)', async (how) => {
  const keys = join(folder, how);
  mkdirSync(keys);
  const parameters = [join(folder, 'create-key.mjs'), how, keys, String(ROUNDS), String(Date.now() + LOAD_MS)];
  const children = Array.from({ length: PROCESSES }, () =>
    spawn(process.execPath, parameters, { stdio: ['ignore', 'pipe', 'inherit'] }),
  );
  const printed = await Promise.all(children.map(async ({ stdout }) => (await text(stdout)).trim().split('\n')));
  for (let round = 0; round < ROUNDS; round += 1) {
    const paths = { privateKey: join(keys, `${round}.key`), publicKey: join(keys, `${round}.vkey`) };
    const vkey = readLedgerSigner(paths)?.vkey;
    expect(printed.map((lines) => lines[round])).toEqual(Array(PROCESSES).fill(vkey));
    expect(readLedgerVerifier(paths)?.vkey).toBe(vkey);
  }
  expect(readdirSync(keys)).toHaveLength(2 * ROUNDS);
});
