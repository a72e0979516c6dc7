// Checkpoints and proofs of the command, for an auditor who does not trust the operator.

import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { copyFileSync, existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { headFile } from '../../../src/stores/ledger/head-file.js';
import { homePaths, openHead, openHome } from '../../../src/home/home.js';
import { generateLedgerKey } from '../../../src/home/ledger-key.js';
import { openTurnpike } from '../../../src/host/turnpike.js';
import {
  copyOf,
  finish,
  initialised,
  linesOf,
  ownLedger,
  put,
  tempFolder,
  think,
  turnpike,
  write,
  type Said,
} from './fake-io.js';

let folder: string;
const at = (name: string): string => join(folder, name);
const home = (name: string): string => at(`.turnpike/${name}`);
const look = (...argv: string[]): Promise<Said> => turnpike(folder, argv);
const work = async (): Promise<void> => {
  const stdin = [write('/sandbox/a.txt', 'a'), think(), finish()].join('\n');
  expect(await turnpike(folder, ['run', '-'], { stdin })).toMatchObject({ code: 0 });
};

let model: string;
beforeAll(async () => {
  folder = await initialised();
  await work();
  model = folder;
});
beforeEach(() => {
  folder = copyOf(model);
});

describe('the key of a ledger', () => {
  test('is created with the home directory: the private key readable by its owner only, the public key by all', () => {
    expect(statSync(home('keys/ledger.key')).mode & 0o777).toBe(0o600);
    expect(readFileSync(home('keys/ledger.key'), 'utf8')).toMatch(/^PRIVATE\+KEY\+turnpike\/[\w-]{12}\+[0-9a-f]{8}\+/);
    expect(statSync(home('keys/ledger.vkey')).mode & 0o777).toBe(0o644);
  });

  test('can be given, or only its name', async () => {
    const other = tempFolder();
    const key = generateLedgerKey('example.org/given');
    writeFileSync(join(other, 'key'), `${key}\n`, { mode: 0o600 });
    expect(await turnpike(other, ['init', '--ledger-key', 'key'])).toMatchObject({ code: 0 });
    expect(readFileSync(join(other, '.turnpike/keys/ledger.key'), 'utf8')).toBe(`${key}\n`);
    const named = tempFolder();
    expect(await turnpike(named, ['init', '--ledger-name', 'example.org/named'])).toMatchObject({ code: 0 });
    expect(readFileSync(join(named, '.turnpike/keys/ledger.vkey'), 'utf8')).toMatch(/^example\.org\/named\+/);
    for (const argv of [
      ['--ledger-name', 'a b'],
      ['--ledger-name', 'x', '--ledger-key', 'key'],
    ]) {
      expect(await turnpike(tempFolder(), ['init', ...argv])).toMatchObject({ code: 2 });
    }
  });

  test.each([
    ['damaged', () => writeFile(home('keys/ledger.key'), 'rubbish\n', { mode: 0o600 })],
    ['lost', () => rm(home('keys/ledger.key'))],
    [
      'lost, with an unsigned head',
      async () => {
        const { size, root } = (await openHead(homePaths(at('.turnpike')), {
          readOnly: true,
        }).externalHeadStore.read())!;
        for (const name of ['keys/ledger.key', 'ledger.head']) rmSync(home(name));
        const plain = headFile(home('ledger.head'));
        await plain.write({ size, root });
        await plain.close();
      },
    ],
  ])('%s, the ledger is not opened for writing, and says which file', async (_what, harm) => {
    await harm();
    const { code, stderr } = await turnpike(folder, ['run', '-'], { stdin: finish() });
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^POLICY_.*ledger\.key/)]);
  });
});

describe('ledger checkpoint', () => {
  test('prints the signed size and root of the ledger, or writes them to a file', async () => {
    const { code, stdout } = await look('ledger', 'checkpoint');
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^turnpike\/[\w-]{12}\n\d+\n[A-Za-z0-9+/]{43}=\n\n— turnpike\/[\w-]{12} [A-Za-z0-9+/]+={0,2}\n$/,
    );
    await look('ledger', 'checkpoint', '--out', 'kept');
    expect(readFileSync(at('kept'), 'utf8')).toBe(stdout);
  });
});

describe('ledger prove and check-proof', () => {
  const prove = (...argv: string[]) => look('ledger', 'prove', ...argv, '--out', 'proof');
  const check = (...argv: string[]) =>
    look('ledger', 'check-proof', 'proof', '--key', home('keys/ledger.vkey'), ...argv);

  test('prove every entry to a holder of the key, in another folder', async () => {
    const size = Number(linesOf((await look('ledger', 'checkpoint')).stdout)[1]);
    for (const index of [0, 1, Math.floor(size / 2), size - 1]) {
      expect(await prove(String(index))).toMatchObject({ code: 0, stdout: '', stderr: '' });
      const away = tempFolder();
      copyFileSync(at('proof'), join(away, 'proof'));
      const key = readFileSync(home('keys/ledger.vkey'), 'utf8').trim();
      const said = await turnpike(away, ['ledger', 'check-proof', 'proof', '--key', key]);
      expect(said).toMatchObject({ code: 0, stderr: '' });
      expect(said.stdout).toContain(`this is entry @${index} of the ${size} in the log turnpike/`);
    }
    expect(await prove(String(size))).toMatchObject({ code: 2 });
    expect(await prove('x')).toMatchObject({ code: 2 });
    expect(await prove()).toMatchObject({ code: 2 });
  });

  test('reject a proof with a changed line, or of another key', async () => {
    await prove('@3');
    const text = readFileSync(at('proof'), 'utf8');
    for (let index = 0; index < text.length; index += 7) {
      const other = text[index] === 'A' ? 'B' : 'A';
      put(folder, 'proof', text.slice(0, index) + other + text.slice(index + 1));
      expect(await check()).toMatchObject({ code: 1 });
    }
    put(folder, 'proof', text);
    expect(await check()).toMatchObject({ code: 0 });
    const stranger = await ownLedger();
    const key = readFileSync(join(stranger, '.turnpike/keys/ledger.vkey'), 'utf8').trim();
    const { code, stdout } = await look('ledger', 'check-proof', 'proof', '--key', key);
    expect({ code, stdout }).toEqual({ code: 1, stdout: 'not proved: its checkpoint is not signed by this key\n' });
    expect(await look('ledger', 'check-proof', 'proof')).toMatchObject({ code: 2 });
    expect(await look('ledger', 'check-proof', 'proof', '--key', 'none')).toMatchObject({ code: 2 });
  });

  test('prove that the ledger extends a stored checkpoint', async () => {
    await look('ledger', 'checkpoint', '--out', 'kept');
    await work();
    expect(await prove('--from', 'kept')).toMatchObject({ code: 0 });
    expect((await check()).stdout).toMatch(
      /^proved: the log turnpike\/\S+ of \d+ entries, root \S+, extends its first \d+ entries/,
    );
    const proof = JSON.parse(readFileSync(at('proof'), 'utf8')) as { older: string; newer: string };
    put(folder, 'proof', JSON.stringify({ ...proof, older: proof.newer, newer: proof.older }));
    expect(await check()).toMatchObject({ code: 1 });
    put(folder, 'kept', 'no note');
    expect(await prove('--from', 'kept')).toMatchObject({ code: 2 });
  });

  test('verify a proof only from the checkpoint that the auditor has kept', async () => {
    await look('ledger', 'checkpoint', '--out', 'kept');
    await work();
    await look('ledger', 'checkpoint', '--out', 'later');
    await work();
    expect(await prove('--from', 'kept')).toMatchObject({ code: 0 });
    expect(await check('--from', 'kept')).toMatchObject({ code: 0, stderr: '' });
    // The sender chooses where a proof begins. One from another checkpoint says nothing about the kept one.
    expect(await check('--from', 'later')).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(
        /^not proved: it begins at \d+ entries, root \S+: the kept checkpoint has \d+ entries/,
      ),
    });
    const kept = readFileSync(at('kept'), 'utf8');
    const [origin = '', , root = ''] = kept.split('\n');
    put(
      folder,
      'kept',
      kept.replace(
        root,
        root.replace(/^./, (digit) => (digit === 'A' ? 'B' : 'A')),
      ),
    );
    expect((await check('--from', 'kept')).stdout).toContain(
      'not proved: the kept checkpoint is not signed by this key',
    );
    put(folder, 'kept', origin);
    expect(await check('--from', 'kept')).toMatchObject({ code: 1 });
    expect(await check('--from', 'nothing')).toMatchObject({ code: 2 });
    put(folder, 'kept', kept);
    expect(await prove('@3')).toMatchObject({ code: 0 });
    expect((await check('--from', 'kept')).stdout).toContain('the proof of an entry begins at no checkpoint');
  });

  test('detect a ledger truncated below a checkpoint, and a fork of it', async () => {
    const early = ['ledger.db', 'ledger.head'].map((name) => [name, readFileSync(home(name))] as const);
    await work();
    await look('ledger', 'checkpoint', '--out', 'kept');
    for (const [name, bytes] of early) writeFileSync(home(name), bytes);
    for (const name of ['ledger.db-wal', 'ledger.db-shm']) rmSync(home(name), { force: true });
    // An older checkpoint was valid once: the home directory is consistent, but a later stored checkpoint reveals the
    // cut.
    expect(await look('ledger', 'verify')).toMatchObject({ code: 0 });
    expect(await prove('--from', 'kept')).toMatchObject({ code: 1 });
    await work();
    await work();
    expect(await prove('--from', 'kept')).toMatchObject({ code: 1 });
  });
});

describe('D15: the head file', () => {
  test('is a signed checkpoint, accepted only with the signature of this ledger', async () => {
    const stranger = await ownLedger();
    const foreign = readFileSync(join(stranger, '.turnpike/ledger.head'));
    const own = readFileSync(home('ledger.head'));
    writeFileSync(home('ledger.head'), foreign);
    expect(await look('ledger', 'verify')).toMatchObject({ code: 1 });
    expect((await turnpike(folder, ['run', '-'], { stdin: finish() })).stderr).toContain('LEDGER_TAMPERED');
    // An unsigned head file is rejected too.
    rmSync(home('ledger.head'));
    const plain = headFile(home('ledger.head'));
    await plain.write({ size: 1, root: 'f'.repeat(64) });
    await plain.close();
    expect((await turnpike(folder, ['run', '-'], { stdin: finish() })).stderr).toContain('LEDGER_TAMPERED');
    writeFileSync(home('ledger.head'), own);
    expect(await turnpike(folder, ['run', '-'], { stdin: finish() })).toMatchObject({ code: 0 });
  });

  test('of a home directory without a key is signed from the next opening, wherever that is interrupted', async () => {
    const paths = homePaths(at('.turnpike'));
    const unsigned = async (): Promise<void> => {
      const { store, externalHeadStore } = openHome(paths, { readOnly: true });
      const head = (await externalHeadStore.read())!;
      await store.close();
      for (const path of [paths.head, paths.ledgerKey.privateKey, paths.ledgerKey.publicKey]) rmSync(path);
      const plain = headFile(paths.head);
      await plain.write(head);
      await plain.write(head);
      await plain.close();
    };
    await unsigned();
    const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
    const first = openHome(paths, { readOnly: false });
    await first.signHeads!();
    await first.externalHeadStore.close();
    await first.store.close();
    // As after a power failure before the key file was renamed.
    copyFileSync(paths.ledgerKey.privateKey, `${paths.ledgerKey.privateKey}.new`);
    rmSync(paths.ledgerKey.privateKey);
    rmSync(paths.ledgerKey.publicKey);
    const turnpikeThere = await openTurnpike({ home: paths.home, contract: at('contract'), log });
    await turnpikeThere.close();
    expect(existsSync(paths.ledgerKey.privateKey)).toBe(true);
    expect(await look('ledger', 'verify')).toMatchObject({ code: 0 });
    expect(await look('ledger', 'checkpoint')).toMatchObject({ code: 0 });
  });
});
