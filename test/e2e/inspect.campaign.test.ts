// `turnpike inspect` as a shell runs it: serves a bundle until it is stopped, or writes it into one file.

import { afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { leafHash } from '../../src/core/ledger/proof/merkle.js';
import { initialised, linesOf, put, write } from '../interfaces/cli/fake-io.js';
import { built } from '../docs/built.js';
import { Command, endAll, type Ended } from './process.js';

const MS_MAX = 120_000;
let folder: string;

beforeAll(() => built(), MS_MAX);
beforeEach(async () => {
  folder = await initialised();
});
afterEach(endAll);

const command = (...argv: string[]): Promise<Ended> => new Command(argv, folder).ended;

/** A bundle with the work of one agent. */
async function exported(): Promise<void> {
  put(folder, 'step.json', write('/sandbox/a.md', 'in confidence'));
  expect(await command('step', 'step.json')).toMatchObject({ status: 0 });
  expect(await command('ledger', 'export', 'bundle')).toMatchObject({ status: 0 });
}

describe('turnpike inspect FILE', () => {
  test(
    'serves the page and the bundle to clients with the token of its address, changes nothing, and ends on SIGTERM',
    async () => {
      await exported();
      const before = readFileSync(join(folder, 'bundle'));
      const inspect = new Command(['inspect', 'bundle', '--port', '0'], folder);
      const [, url = '', token = ''] = await inspect.says(/(http:\/\/127\.0\.0\.1:\d+)\/#token=(\S+)\n/);
      const page = await fetch(url);
      expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
      const html = await page.text();
      const [, script = ''] = /src="\.?(\/[^"]+\.js)"/.exec(html) ?? [];
      expect((await fetch(`${url}${script}`)).headers.get('content-type')).toContain('javascript');
      const api = (path: string, bearer = token): Promise<Response> =>
        fetch(`${url}/api/v1${path}`, { headers: { authorization: `Bearer ${bearer}` } });
      expect((await api('/inspector/ledger', 'x'.repeat(43))).status).toBe(401);
      const { size, live } = (await (await api('/inspector/ledger')).json()) as { size: number; live: boolean };
      expect([size > 9, live]).toEqual([true, false]);
      const { rows } = (await (await api(`/inspector/rows?from=0&to=${size}`)).json()) as { rows: unknown[][] };
      expect(rows).toHaveLength(size);
      const texts = linesOf(await (await api(`/inspector/entries?from=0&to=${size}`)).text());
      expect(texts.map((text) => leafHash(text).slice(0, 8))).toEqual(rows.map((row) => row[8]));
      // No route can write to a ledger.
      for (const path of ['/agents', '/approvals']) {
        const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
        expect((await fetch(`${url}/api/v1${path}`, { method: 'POST', headers, body: '{}' })).status).toBe(404);
      }
      const isReplayed = async (): Promise<boolean> => {
        const { replayed } = (await (await api('/inspector/ledger')).json()) as { replayed: object | null };
        return replayed !== null;
      };
      while (!(await isReplayed()));
      expect(await inspect.stop()).toMatchObject({ status: 0, stdout: '' });
      await expect(fetch(url)).rejects.toThrow();
      // No page has asked for a replay.
      const unasked = new Command(['inspect', 'bundle', '--port', '0'], folder);
      await unasked.says(/#token=/);
      const notChecked = 'not checked: the page was closed before the replay of the entries ended';
      expect(await unasked.stop()).toMatchObject({ status: 4, stderr: expect.stringContaining(notChecked) });
      expect(readFileSync(join(folder, 'bundle'))).toEqual(before);
    },
    MS_MAX,
  );

  test(
    '--html writes one complete file, and never replaces an existing one',
    async () => {
      await exported();
      const made = await command('inspect', 'bundle', '--html', 'out.html');
      expect(made).toMatchObject({ status: 0, stdout: '', stderr: expect.stringMatching(/out\.html: \d+ entries, /) });
      const html = readFileSync(join(folder, 'out.html'), 'utf8');
      expect(html.startsWith('<!doctype html>')).toBe(true);
      const [, told = ''] = /<script type="application\/json" id="turnpike-data">(.*?)<\/script>/s.exec(html) ?? [];
      const { entries, info } = JSON.parse(told) as { entries: string[]; info: { size: number } };
      expect(entries).toHaveLength(info.size);
      expect(made.stderr).toContain(`${info.size} entries, ${Buffer.byteLength(html)} bytes`);
      expect(await command('inspect', 'bundle', '--html', 'out.html')).toMatchObject({ status: 2 });
      expect(readFileSync(join(folder, 'out.html'), 'utf8')).toBe(html);
      // A changed bundle is served and written, flagged.
      const bundle = readFileSync(join(folder, 'bundle'), 'utf8');
      const forged = bundle.replace('authz_decision', 'authz_decisiom');
      expect(forged).not.toBe(bundle);
      put(folder, 'forged', forged);
      const flagged = { status: 1, stderr: expect.stringContaining('NOT VERIFIED') };
      expect(await command('inspect', 'forged', '--html', 'forged.html')).toMatchObject(flagged);
      expect(readFileSync(join(folder, 'forged.html'), 'utf8')).toContain('"flaw":');
      const shown = new Command(['inspect', 'forged', '--port', '0'], folder);
      await shown.says(/NOT VERIFIED[^]*#token=/);
      expect(await shown.stop()).toMatchObject({ status: 1 });
      // Another file is not.
      expect(await command('inspect', 'out.html', '--port', '0')).toMatchObject({ status: 3 });
    },
    MS_MAX,
  );
});
