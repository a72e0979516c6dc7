// The layout of a home does not change.

import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { manifestPolicySource } from '../../src/home/policy/manifest-policy-source.js';
import { winstonLog } from '../../src/system/winston-log.js';
import { homePaths } from '../../src/home/home-paths.js';
import { openTurnpike, type Turnpike } from '../../src/host/turnpike.js';
import { writeContract } from '../fixtures/bench.js';

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
