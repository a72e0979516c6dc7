// `turnpike serve` and `turnpike token` as a shell runs them: real processes, addresses, files and signals.

import { afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { initialised, jsonLines, linesOf, think } from '../interfaces/cli/fake-io.js';
import { built } from '../docs/built.js';
import { installedPackage } from '../fixtures/installed-package.js';
import { Command, endAll, type Ended } from './process.js';

const MS_MAX = 120_000;
let folder: string;

beforeAll(() => built(), MS_MAX);
beforeEach(async () => {
  folder = await initialised();
});
afterEach(endAll);

const command = (...argv: string[]): Promise<Ended> => new Command(argv, folder).ended;
const ADDRESS = /(http:\/\/127\.0\.0\.1:\d+)(?:\/#token=(\S+))?\n/;
const AGENT = ['--actor', 'agent-one', '--role', 'SANDBOX_AGENT', '--right', 'act'];

async function serving(...argv: string[]) {
  const serve = new Command(['serve', '--port', '0', ...argv], folder);
  const [, url = '', token = null] = await serve.says(ADDRESS);
  return { serve, url, token };
}

const ask = async (url: string, token: string, body?: string): Promise<{ status: number; text: string }> => {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const response = await fetch(url, body === undefined ? { headers } : { method: 'POST', headers, body });
  return { status: response.status, text: await response.text() };
};

async function minted(...argv: string[]): Promise<string> {
  const { status, stdout } = await command('token', ...argv);
  expect(status).toBe(0);
  return stdout.trim();
}

describe('turnpike serve --demo', () => {
  // In the package, it needs what the package brings.
  let program = '';
  beforeAll(async () => {
    program = join(await installedPackage(), 'node_modules/turnpike/dist/src/interfaces/cli/main.js');
  }, 300_000);

  test.each(['SIGTERM', 'SIGINT'] as const)(
    'serves a temporary home directory, and deletes it on %s, even if it is not filled yet',
    async (signal) => {
      for (const isFilled of [true, false]) {
        const demo = new Command(['serve', '--demo', '--port', '0'], folder, {}, program);
        const [, home = ''] = await demo.says(/demonstration home directory in (\S+); it is deleted at the end\n/);
        expect(existsSync(join(home, 'home', 'ledger.db'))).toBe(true);
        const [, url = '', token = ''] = isFilled ? await demo.says(ADDRESS) : [];
        if (isFilled) expect((await ask(`${url}/api/v1/health`, token)).status).toBe(200);
        demo.child.kill(signal);
        expect(await demo.ended).toMatchObject({ status: 0, stdout: '' });
        expect(existsSync(home)).toBe(false);
      }
    },
    MS_MAX,
  );
});

describe('turnpike serve', () => {
  test(
    'prints an address with a token that is valid while it runs, and ends at once on SIGTERM',
    async () => {
      const { serve, url, token } = await serving();
      expect(token).toMatch(/^[A-Za-z0-9_-]{43}$/);
      expect(await ask(`${url}/api/v1/health`, token ?? '')).toMatchObject({ status: 200 });
      expect((await ask(`${url}/api/v1/agents`, token ?? '', '{}')).status).toBe(403);
      expect((await ask(`${url}/api/v1/health`, 'x'.repeat(43))).status).toBe(401);
      const stream = fetch(`${url}/api/v1/stream`, { headers: { authorization: `Bearer ${token ?? ''}` } });
      expect((await stream).status).toBe(200);
      expect(await serve.stop()).toEqual({ status: 0, stdout: '', stderr: expect.stringMatching(ADDRESS) });
      expect(await (await stream).text()).toContain('retry: ');
      await expect(fetch(url)).rejects.toThrow();
      // The generated token is not stored: it is invalid for a later service.
      const again = await serving();
      expect((await ask(`${again.url}/api/v1/health`, token ?? '')).status).toBe(401);
      await again.serve.stop();
    },
    MS_MAX,
  );

  test(
    'is the only service of a home: a second one fails, commands work through it, the ledger stays intact',
    async () => {
      const token = await minted(...AGENT);
      const { serve, url } = await serving();
      const second = await command('serve', '--port', '0');
      expect(second).toMatchObject({ status: 3, stdout: '', stderr: expect.stringContaining('LEDGER_LOCKED') });
      const { run_id } = JSON.parse((await ask(`${url}/api/v1/agents`, token, '{"case":"case-local"}')).text) as {
        run_id: string;
      };
      const step = await ask(`${url}/api/v1/agents/${run_id}/steps`, token, think());
      expect(JSON.parse(step.text)).toMatchObject({ action: 'THINK', outcome: 'SUCCESS' });
      const runs = await command('runs');
      expect(runs.stdout).toContain(run_id);
      expect((await serve.stop()).status).toBe(0);
      expect(await command('ledger', 'verify')).toMatchObject({ status: 0 });
      expect(await command('replay')).toMatchObject({ status: 0 });
    },
    MS_MAX,
  );

  test(
    'listens on other addresses than loopback only with a stored token, and refuses an invalid port',
    async () => {
      const refused = await command('serve', '--port', '0', '--host', '0.0.0.0');
      expect(refused).toMatchObject({ status: 2, stdout: '', stderr: expect.stringContaining('turnpike token') });
      expect((await command('serve', '--port', '70000')).status).toBe(2);
      const token = await minted(...AGENT);
      const serve = new Command(['serve', '--port', '0', '--host', '0.0.0.0', '--stored-tokens'], folder);
      const [, port = ''] = await serve.says(/0\.0\.0\.0:(\d+)\n/);
      expect((await ask(`http://127.0.0.1:${port}/api/v1/health`, token)).status).toBe(200);
      expect((await serve.stop()).status).toBe(0);
    },
    MS_MAX,
  );
});

describe('turnpike token', () => {
  test(
    'is printed once, stored as a hash for its owner only, listed without it, revoked while a service runs',
    async () => {
      const { serve, url } = await serving('--stored-tokens');
      const token = await minted(...AGENT, '--expires', '3', '--case', 'case-0007');
      const file = join(folder, '.turnpike/keys/tokens.json');
      expect(statSync(file).mode & 0o777).toBe(0o600);
      expect(readFileSync(file, 'utf8')).not.toContain(token);
      expect((await ask(`${url}/api/v1/health`, token)).status).toBe(200);
      const listed = await command('token', 'list', '--json');
      const [record] = jsonLines(listed.stdout);
      expect(record).toEqual({
        id: expect.stringMatching(/^tok_/),
        actor: 'agent-one',
        role: 'SANDBOX_AGENT',
        case: 'case-0007',
        rights: ['act'],
        created_at: expect.any(String),
        expires_at: expect.any(String),
      });
      const { id, created_at, expires_at } = record as Record<string, string>;
      expect(Date.parse(expires_at ?? '') - Date.parse(created_at ?? '')).toBe(3 * 86_400_000);
      expect((await command('token', 'list')).stdout).toContain(`${id ?? ''}  agent-one as SANDBOX_AGENT in case-0007`);
      expect((await command('token', 'revoke', id ?? '')).status).toBe(0);
      expect((await ask(`${url}/api/v1/health`, token)).status).toBe(401);
      expect((await command('token', 'revoke', id ?? '')).status).toBe(2);
      expect(linesOf((await command('token', 'list')).stdout)).toEqual([]);
      await serve.stop();
    },
    MS_MAX,
  );

  test(
    'tokens created concurrently are all stored',
    async () => {
      const made = await Promise.all(Array.from({ length: 6 }, () => command('token', ...AGENT, '--json')));
      const ids = made.map(({ stdout }) => (JSON.parse(stdout) as { id: string }).id);
      const listed = jsonLines((await command('token', 'list', '--json')).stdout).map(({ id }) => id);
      expect(listed.sort()).toEqual(ids.sort());
      const revoked = await Promise.all(ids.map((id) => command('token', 'revoke', id)));
      expect(revoked.map(({ status }) => status)).toEqual(ids.map(() => 0));
      expect(linesOf((await command('token', 'list')).stdout)).toEqual([]);
    },
    MS_MAX,
  );

  test(
    'needs an actor, a role and a known right',
    async () => {
      for (const argv of [[], AGENT.slice(0, 4), [...AGENT, '--right', 'everything'], [...AGENT, '--expires', '0']]) {
        expect(await command('token', ...argv)).toMatchObject({ status: 2, stdout: '' });
      }
    },
    MS_MAX,
  );
});
