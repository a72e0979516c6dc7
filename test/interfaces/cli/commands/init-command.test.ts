// The templates of `turnpike init`: every policy is without findings, and every example is written and can be used.

import { describe, expect, test } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { TEMPLATES } from '../../../../src/interfaces/cli/templates.js';
import { linesOf, outcomes, put, tempFolder, turnpike } from '../fake-io.js';

const NAMES = Object.keys(TEMPLATES);
/** Words of one trade, which a starter policy does not have. */
const DOMAIN = /attorney|client|interview|intake|transcript|privileged_notes|case_text/i;

async function created(...options: string[]): Promise<{ readonly folder: string; readonly stdout: string }> {
  const folder = tempFolder();
  const { code, stdout, stderr } = await turnpike(folder, ['init', ...options]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return { folder, stdout };
}

describe('turnpike init --template', () => {
  test.each(NAMES)(
    '%s: the policy is pinned, and has no finding and no lint error that is not accepted',
    async (name) => {
      const { folder } = await created('--template', name);
      const { code, stderr } = await turnpike(folder, ['policy', 'check']);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(await turnpike(folder, ['policy', 'pin'])).toMatchObject({ code: 0 });
    },
  );

  test.each(NAMES.filter((name) => name !== 'reference'))(
    '%s: no name of the policy belongs to one trade',
    async (name) => {
      const { folder } = await created('--template', name);
      for (const file of readdirSync(join(folder, 'contract/policy'))) {
        expect(readFileSync(join(folder, 'contract/policy', file), 'utf8')).not.toMatch(DOMAIN);
      }
    },
  );

  test.each(['documents', 'coding'])('%s: the proposals of the example have the outcomes of its test', async (name) => {
    const { folder, stdout } = await created('--template', name);
    expect(stdout).toContain('  turnpike run proposals.jsonl ');
    const ran = await turnpike(folder, ['run', 'proposals.jsonl']);
    expect([ran.code, outcomes(ran.stdout)]).toEqual([0, ['SUCCESS', 'DENIED', 'SUCCESS']]);
  });

  test('the default is documents', async () => {
    const [chosen, plain] = [await created('--template', 'documents'), await created()];
    expect(plain.stdout).toBe(chosen.stdout);
  });

  test('replaces no file, and says which one is another', async () => {
    const folder = tempFolder();
    put(folder, 'proposals.jsonl', 'mine');
    const { code, stdout } = await turnpike(folder, ['init']);
    expect(code).toBe(0);
    expect(stdout).toContain('not replaced                 proposals.jsonl: ');
    expect(stdout).toContain('created the example          TURNPIKE.md, proposals.test.mjs\n');
    expect(readFileSync(join(folder, 'proposals.jsonl'), 'utf8')).toBe('mine');
  });

  test('programs of the example and the next commands name other folders', async () => {
    const { folder, stdout } = await created('--template', 'records', '--home', "h'ome", '--contract', 'a/b');
    const service = readFileSync(join(folder, 'service.mjs'), 'utf8');
    expect(service).toContain('const [home = "h\'ome"]');
    expect(service).toContain("contract: 'a/b'");
    expect(linesOf(stdout)).toContain(
      "  turnpike runs --home 'h'\\''ome' --contract a/b  # show the runs and their outcomes",
    );
  });
});
