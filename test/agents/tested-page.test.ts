// The page about real clients is written by `npm run campaign -- agents`, which needs their programs. This test notices
// that a version was pinned, or a scenario added, without running it.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { ROOT } from '../root.js';

type Scenarios = Readonly<Record<string, { readonly title: string; readonly clients?: readonly string[] }>>;
interface Clients {
  readonly CLIENT_PACKAGES: Readonly<Record<string, object>>;
  readonly versionOf: (client: string) => string;
}

const load = (path: string): Promise<unknown> => import(join(ROOT, 'test/agents', path));
const { SCENARIOS: dialect } = (await load('box/scenarios.mjs')) as { readonly SCENARIOS: Scenarios };
const { SERVICE_SCENARIOS } = (await load('box/service-scenarios.mjs')) as { readonly SERVICE_SCENARIOS: Scenarios };
const SCENARIOS = { ...dialect, ...SERVICE_SCENARIOS };
const { CLIENT_PACKAGES, versionOf } = (await load('install-clients.mjs')) as Clients;

const page = readFileSync(join(ROOT, 'docs/coding-agents-tested.md'), 'utf8');
const sections = page.split(/^## /m).slice(1);

describe('docs/coding-agents-tested.md', () => {
  test('U-08: has a table for the pinned version of every client, and nothing else', () => {
    const titles = Object.keys(CLIENT_PACKAGES).map((client) => `${client} ${versionOf(client)}`);
    expect(sections.map((section) => section.split('\n')[0])).toEqual(titles);
  });

  test('U-08: each table has every scenario of its client', () => {
    for (const [n, client] of Object.keys(CLIENT_PACKAGES).entries()) {
      const wanted = Object.values(SCENARIOS).filter(({ clients }) => clients?.includes(client) ?? true);
      const rows = (sections[n] ?? '')
        .split('\n')
        .filter((line) => line.startsWith('| '))
        .slice(1);
      expect(rows.map((row) => row.split(' | ')[0]?.slice(2))).toEqual(wanted.map(({ title }) => title));
    }
  });
});
