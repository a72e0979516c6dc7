// The layout of a home does not change: homes of earlier versions open without a conversion.

import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { headFile } from '../../src/stores/ledger/head-file.js';
import { manifestPolicySource } from '../../src/home/policy/manifest-policy-source.js';
import { openSqliteStore } from '../../src/stores/sqlite/sqlite-ledger-store.js';
import { winstonLog } from '../../src/system/winston-log.js';
import { homePaths } from '../../src/home/home-paths.js';
import { openTurnpike, type Turnpike } from '../../src/host/turnpike.js';
import { writeContract } from '../fixtures/bench.js';
import { ROOT } from '../root.js';

const HISTORIES = join(ROOT, 'test/fixtures/histories');

let folder: string;
let home: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'turnpike-layout-'));
  home = join(folder, 'home');
  writeContract(join(folder, 'contract'), {});
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const opened = (place = home): Promise<Turnpike> =>
  openTurnpike({
    ...{ home: place, log: winstonLog('silent') },
    policies: manifestPolicySource(join(folder, 'contract')),
  });

/** Every file of a home with its bytes in hex; only the names of files that SQLite writes, and of the socket. */
function filesOf(place: string): Readonly<Record<string, string>> {
  const files: Record<string, string> = {};
  for (const entry of readdirSync(place, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    const name = path.slice(place.length + 1);
    const named = !entry.isFile() || /^(?:ledger\.db|history\.cache)/.test(name);
    files[name] = named ? '' : readFileSync(path, 'hex');
  }
  return files;
}

/** A home of a version that did not sign heads yet. */
async function oldHome(format: number): Promise<void> {
  mkdirSync(join(home, 'artifacts'), { recursive: true });
  mkdirSync(join(home, 'sandbox'));
  writeFileSync(join(home, 'ledger.db'), gunzipSync(readFileSync(join(HISTORIES, `format-${format}.db.gz`))));
  const keys = join(HISTORIES, `format-${format}.keys.json`);
  if (existsSync(keys)) {
    mkdirSync(join(home, 'keys/cases'), { recursive: true });
    for (const [name, text] of Object.entries(JSON.parse(readFileSync(keys, 'utf8')) as Record<string, string>))
      writeFileSync(join(home, 'keys/cases', name), text, { mode: 0o600 });
  } else mkdirSync(join(home, 'keys'));
  const store = openSqliteStore({ file: join(home, 'ledger.db'), artifactsDir: join(home, 'artifacts') });
  const head = headFile(join(home, 'ledger.head'));
  await head.write(await store.head());
  await head.close();
  await store.close();
}

test('a home is its four parts in one folder, with every file at its fixed path', () => {
  expect(homePaths('/h')).toEqual({
    home: '/h',
    ledger: '/h/ledger.db',
    artifacts: '/h/artifacts',
    reserve: '/h/ledger.reserve',
    keys: '/h/keys',
    ledgerKey: { privateKey: '/h/keys/ledger.key', publicKey: '/h/keys/ledger.vkey' },
    sessionKey: '/h/keys/session.key',
    caseKeys: '/h/keys/cases',
    tokens: '/h/keys/tokens.json',
    sandbox: '/h/sandbox',
    state: '/h',
    head: '/h/ledger.head',
    control: '/h/control.sock',
    scratch: '/h/scratch',
    history: '/h/history.cache',
    heads: '/h/keys/heads',
    overlay: '/h/overlay.json',
    mcpRun: '/h/mcp-run',
    mcpToken: '/h/mcp-token',
  });
});

test.each([2, 3, 4])('a home whose ledger has format %i opens with its keys and files unchanged', async (format) => {
  await oldHome(format);
  const before = filesOf(home);
  const first = await opened();
  expect(first).toMatchObject({ keys: { keys: join(home, 'keys') }, state: { state: home } });
  expect(await first.ledger.verify()).toMatchObject({ ok: true });
  expect(await first.replay()).toMatchObject({ ok: true });
  await first.close();
  const after = filesOf(home);
  // Its heads are signed by now.
  expect(after).toMatchObject({ ...before, 'ledger.head': expect.any(String) });
  const added = Object.keys(after).filter((name) => !(name in before));
  expect(added.filter((name) => !/^(?:ledger\.db|history\.cache)/.test(name)).sort()).toEqual([
    // Its case keys name their ledger from now on.
    ...(format === 4 ? ['keys/cases/ledger.origin'] : []),
    'keys/ledger.key',
    'keys/ledger.vkey',
    'ledger.reserve',
    'scratch',
  ]);
  // Nothing is left to settle: the next opening changes no file.
  const second = await opened();
  expect(second.recovery).toMatchObject({ settled: 0, interrupted: 0 });
  await second.close();
  expect(filesOf(home)).toEqual(after);
});

test('a home that is opened for the first time has exactly the expected files', async () => {
  await (await opened()).close();
  expect(Object.keys(filesOf(home)).sort()).toEqual([
    '.gitignore',
    'artifacts',
    'keys',
    'keys/ledger.key',
    'keys/ledger.vkey',
    'ledger.db',
    'ledger.db.lock',
    'ledger.head',
    'ledger.reserve',
    'sandbox',
    'scratch',
  ]);
  const copy = join(folder, 'copy');
  cpSync(home, copy, { recursive: true });
  await (await opened(copy)).close();
  expect(filesOf(copy)).toEqual(filesOf(home));
});
