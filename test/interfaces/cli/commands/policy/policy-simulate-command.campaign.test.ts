// `policy simulate` and `policy explain` on a home directory with a few decisions.

import { beforeAll, describe, expect, test } from '@jest/globals';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { shippedContract } from '../../../../../src/runtime/shipped-contract.js';
import { finish, initialised, jsonLines, line, put, read, think, turnpike, write } from '../../fake-io.js';

let home: string;

/** A copy of the shipped policy with a text of one file replaced. */
function contract(name: string, file: 'actions' | 'lanes' | 'roles', from: string, to: string): string {
  const folder = join(home, name);
  cpSync(shippedContract(), folder, { recursive: true });
  const path = join(folder, 'policy', `${file}.yaml`);
  const text = readFileSync(path, 'utf8');
  if (!text.includes(from)) throw new Error(`${file}.yaml has no ${from}`);
  writeFileSync(path, text.replaceAll(from, to));
  return name;
}

interface Told {
  readonly kind: string;
  readonly log_index: number;
  readonly action: string;
  readonly was: { readonly rule_id: string };
  readonly now: { readonly rule_id: string } | null;
}

beforeAll(async () => {
  home = await initialised();
  const lines = [
    think(),
    write('/sandbox/a.txt', 'a'),
    read('/sandbox/a.txt'),
    write('/sandbox/run.sh', 'x'),
    line('DELETE_FILE', { path: '/sandbox/../b.txt' }),
    finish(),
  ];
  const { code, stderr } = await turnpike(home, ['run', put(home, 'p.jsonl', lines.join('\n'))]);
  if (code > 1) throw new Error(stderr);
  contract('wider', 'actions', 'path: [.txt, .md]', 'path: [.txt, .md, .sh]');
  contract('narrower', 'lanes', '        - sandbox.read_file\n', '');
  contract('broken', 'lanes', 'roles: [SANDBOX_AGENT]', 'roles: [NOBODY]');
});

const simulated = async (...argv: string[]) => turnpike(home, ['policy', 'simulate', ...argv]);

describe('policy simulate', () => {
  test('under its recorded policy a ledger has no flips, and nothing is undecidable', async () => {
    const { code, stdout } = await simulated('--fail-on', 'any');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^\d+ decisions of 1 run tree under .*: (\d+) the same, 0 new allows, 0 new denials, 0 by/);
  });

  test('prints new denials with rule and entries, and fails with --fail-on', async () => {
    const { code, stdout } = await simulated('--contract', 'narrower');
    expect(code).toBe(0);
    expect(stdout).toMatch(/new-deny +1 +SANDBOX_AGENT +SANDBOX_FILES +READ_FILE +allow \(lane\.granted\)/);
    expect(stdout).toContain('deny (lane.tool_not_allowed)');
    expect((await simulated('--contract', 'narrower', '--fail-on', 'new-allow')).code).toBe(0);
    expect((await simulated('--contract', 'narrower', '--fail-on', 'new-allow,new-deny')).code).toBe(1);
    expect((await simulated('--contract', 'narrower', '--fail-on', 'any')).code).toBe(1);
  });

  test('a decision on a path that was never checked is undecidable, not guessed', async () => {
    const { code, stdout } = await simulated('--contract', 'wider', '--json', '--fail-on', 'any');
    expect(code).toBe(4);
    const [found, told] = jsonLines<Told>(stdout);
    expect(found).toMatchObject({
      kind: 'undecidable',
      action: 'WRITE_FILE',
      was: { rule_id: 'extension.not_allowed' },
      now: null,
      undecidable: 'facts.not_gathered',
    });
    expect(told).toMatchObject({ trees: 1, flips: { 'new-allow': 0 }, undecidable: { 'facts.not_gathered': 1 } });
  });

  test('reports an unknown run and an invalid policy', async () => {
    expect((await simulated('run_nobody')).stderr).toContain('RUN_UNKNOWN');
    const { code, stderr } = await simulated('--contract', 'broken');
    expect(code).toBe(1);
    expect(stderr).toContain('POLICY_INVALID');
  });
});

describe('policy explain', () => {
  const explained = async (...argv: string[]) => turnpike(home, ['policy', 'explain', ...argv]);

  /** The first entry whose decision flips, or is undecidable, under a policy. */
  async function entryUnder(name: string): Promise<number> {
    const [found] = jsonLines<Told>((await simulated('--contract', name, '--json')).stdout);
    if (found === undefined) throw new Error('no finding');
    return found.log_index;
  }

  test('explains a denial: the rule, the checks before and after it, and the smallest change', async () => {
    const at = await entryUnder('wider');
    const { code, stdout } = await explained(`@${at}`);
    expect(code).toBe(0);
    expect(stdout).toContain('deny by extension.not_allowed');
    expect(stdout).toMatch(/✓ the lane lists the tool\n/);
    expect(stdout).toMatch(/✗ the extensions of the paths are allowed: extension\.not_allowed\n/);
    expect(stdout).toMatch(/· the sandbox has room for it \(not reached\)\n/);
    expect(stdout).toContain(
      'smallest change that would flip this decision: action WRITE_FILE would have to allow the ending .sh',
    );
  });

  test('explains an allow: the changes that would deny it, each evaluated again', async () => {
    const at = await entryUnder('narrower');
    const { stdout } = await explained(`@${at}`, '--json');
    const [{ said, changes } = { said: {}, changes: [] }] = jsonLines<{
      said: object;
      changes: readonly { text: string; gives: object }[];
    }>(stdout);
    expect(said).toEqual({ decision: 'allow', rule_id: 'lane.granted' });
    expect(changes).toContainEqual({
      text: 'lane SANDBOX_FILES would have to no longer list tool sandbox.read_file',
      gives: { decision: 'deny', rule_id: 'lane.tool_not_allowed' },
    });
    expect(changes.map(({ text }) => text)).toContain('budgets.steps would have to be lowered to 2');
  });

  test('accepts tree and seq, explains the decisions on an input, and reports their absence', async () => {
    const [found] = jsonLines<Told & { tree_id: string; seq: number }>(
      (await simulated('--contract', 'narrower', '--json')).stdout,
    );
    if (found === undefined) throw new Error('no finding');
    const own = await explained(`${found.tree_id}#${found.seq}`);
    expect(own.stdout).toBe((await explained(`@${found.log_index}`)).stdout);
    expect((await explained('@0')).stdout).toContain('allow by orchestrator.pinned');
    expect((await explained('@99999')).stderr).toContain('RUN_UNKNOWN');
    expect((await explained('first')).code).toBe(2);
  });

  test('reports that no single change makes an invalid proposal valid', async () => {
    const steps = jsonLines<{ steps: readonly object[] }>((await turnpike(home, ['runs', '--json'])).stdout);
    expect(steps.length).toBeGreaterThan(1);
    const { stdout } = await explained('@0');
    expect(stdout).toContain('no single change of the policy would flip this decision');
  });
});
