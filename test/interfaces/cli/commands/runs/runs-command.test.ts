// Which runs `turnpike runs` lists, and how it follows them.

import { beforeAll, describe, expect, test } from '@jest/globals';
import type { RunRecord } from '../../../../../src/core/contract/run/run-record.js';
import { matchesFilter, type RunFilter } from '../../../../../src/interfaces/cli/commands/runs/runs-command.js';
import { finish, initialised, jsonLines, linesOf, put, turnpike, write } from '../../fake-io.js';

let folder: string;

async function submit(name: string, lines: readonly string[], caseId: string): Promise<void> {
  put(folder, name, `${lines.join('\n')}\n`);
  const { code, stderr } = await turnpike(folder, ['run', name, '--case', caseId]);
  if (code !== 0) throw new Error(stderr);
}

beforeAll(async () => {
  folder = await initialised();
  await submit('one.jsonl', [write('/sandbox/a.md', 'x'), finish()], 'case-0001');
  await submit('two.jsonl', [write('/sandbox/a.sh', 'x'), finish()], 'case-0002');
  await submit('three.jsonl', [write('/sandbox/b.md', 'x'), finish()], 'case-0002');
});

const casesOf = async (...options: string[]): Promise<unknown[]> => {
  const { stdout, code } = await turnpike(folder, ['runs', '--json', ...options]);
  expect(code).toBe(0);
  return jsonLines<RunRecord>(stdout).flatMap((run) => (run.run_kind === 'orchestrator' ? [run.case_id] : []));
};

describe('conditions', () => {
  test.each([
    [[], ['case-0001', 'case-0002', 'case-0002']],
    [['--case', 'case-0001'], ['case-0001']],
    [['--case', 'case-0003'], []],
    [['--status', 'denied'], ['case-0002']],
    [['--status', 'denied', '--status', 'failed'], ['case-0002']],
    [['--status', 'failed'], []],
    [['--rule', 'extension.not_allowed'], ['case-0002']],
    [['--rule', 'extension.not_allowed', '--case', 'case-0001'], []],
    [['--rule', 'extension'], []],
    [
      ['--since', '1h'],
      ['case-0001', 'case-0002', 'case-0002'],
    ],
    [['--since', '2100-01-01'], []],
    [
      ['--since', '2020-01-01T00:00:00Z', '--case', 'case-0002'],
      ['case-0002', 'case-0002'],
    ],
    [['--case', 'case-0002', '--limit', '1'], ['case-0002']],
  ])('%j lists the trees of %j', async (options, cases) => {
    expect(await casesOf(...options)).toEqual(cases);
  });

  test('--limit counts the trees that match, the last ones', async () => {
    expect(await casesOf('--case', 'case-0001', '--limit', '1')).toEqual(['case-0001']);
  });

  test('without a match the command says so, and succeeds', async () => {
    const { code, stdout, stderr } = await turnpike(folder, ['runs', '--rule', 'none']);
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: '', stderr: 'no run matches\n' });
  });

  test('conditions hold for one run of the tree, not for several together', () => {
    const run = (more: object): RunRecord =>
      ({ created_at_utc: '2026-01-01T00:00:00.000Z', status: 'completed', ...more }) as unknown as RunRecord;
    const runs = [run({ case_id: 'a' }), run({ case_id: 'a', status: 'denied', outcome: 'denied:quota' })];
    const filter: RunFilter = { since: undefined, status: ['completed'], case: undefined, rule: 'quota' };
    expect(matchesFilter(runs, filter)).toBe(false);
    expect(matchesFilter(runs, { ...filter, status: ['denied'] })).toBe(true);
  });
});

test('--follow prints each run whose state changes, and ends with the signal', async () => {
  const stop = new AbortController();
  let printed = '';
  let notify = (): void => undefined;
  const onStdout = (text: string): void => {
    printed += text;
    notify();
  };
  const followed = turnpike(folder, ['runs', '--follow', '--json', '--limit', '1'], { stop: stop.signal, onStdout });
  const until = async (isTrue: () => boolean): Promise<void> => {
    while (!isTrue()) await new Promise<void>((resolve) => (notify = resolve));
  };
  // The listed tree: an orchestrator, an agent, and a run for the file.
  await until(() => linesOf(printed).length === 4);
  const before = printed.length;
  await submit('four.jsonl', [write('/sandbox/c.sh', 'x'), finish()], 'case-0004');
  const after = (): string => printed.slice(before);
  await until(() => after().includes('extension.not_allowed') && after().includes('finished'));
  stop.abort();
  expect((await followed).code).toBe(0);
  const rows = jsonLines<RunRecord>(after());
  expect([...new Set(rows.map(({ case_id }) => case_id))]).toEqual(['case-0004']);
  expect(rows.filter(({ status }) => status === 'denied')).toHaveLength(1);
  expect(linesOf(after()).length).toBe(new Set(linesOf(after())).size);
});
