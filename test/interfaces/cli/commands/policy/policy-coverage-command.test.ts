// `policy coverage` on a home directory with a few decisions, and its signed statement.

import { beforeAll, describe, expect, test } from '@jest/globals';
import { copyFileSync, cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type {
  CoverageStatement,
  ElementCoverage,
  PolicyCoverage,
} from '../../../../../src/core/contract/evidence/coverage-proof.js';
import type { SignedStatement } from '../../../../../src/core/contract/evidence/evidence.js';
import { sha256 } from '../../../../../src/core/contract/hash.js';
import { shippedContract } from '../../../../../src/runtime/shipped-contract.js';
import {
  finish,
  initialised,
  jsonLines,
  line,
  ownLedger,
  put,
  read,
  tempFolder,
  think,
  turnpike,
  write,
} from '../../fake-io.js';

interface Report {
  readonly from: { readonly size: number } | null;
  readonly to: { readonly size: number; readonly root: string };
  readonly not_recomputed: number;
  readonly policies: readonly PolicyCoverage[];
}

let home: string;
const at = (name: string): string => join(home, name);
const look = (...argv: string[]) => turnpike(home, argv);
const key = (): string => at('.turnpike/keys/ledger.vkey');

async function work(...lines: string[]): Promise<void> {
  const { code, stderr } = await look('run', put(home, 'p.jsonl', [...lines, finish()].join('\n')));
  if (code > 1) throw new Error(stderr);
}

async function report(...argv: string[]): Promise<Report> {
  const { code, stdout, stderr } = await look('policy', 'coverage', '--json', ...argv);
  const [found] = jsonLines<Report>(stdout);
  if (code !== 0 || found === undefined) throw new Error(stderr);
  return found;
}

/** `allowed/denied` of an element of the only policy. */
function countOf({ policies }: Report, kind: ElementCoverage['kind'], name: string): string {
  const lane = 'SANDBOX_FILES';
  const own = policies[0]?.elements.find(
    (element) => element.kind === kind && element.name === name && (element.lane_id ?? lane) === lane,
  );
  return own === undefined ? 'missing' : `${own.allowed}/${own.denied}`;
}

beforeAll(async () => {
  home = await initialised();
  await work(think(), write('/sandbox/a.txt', 'a'), read('/sandbox/a.txt'), write('/sandbox/run.sh', 'x'));
  await look('ledger', 'checkpoint', '--out', 'first');
  await work(read('/sandbox/a.txt'), line('DELETE_FILE', { path: '/sandbox/a.txt' }));
  await look('ledger', 'checkpoint', '--out', 'second');
  await work(think());
});

describe('policy coverage', () => {
  test('counts for each element how often it decided, and names the policy by the hashes of its files', async () => {
    const whole = await report();
    expect(whole).toMatchObject({ from: null, not_recomputed: 0, policies: [{ trees: 3 }] });
    const hash = (name: string) => sha256(readFileSync(join(shippedContract(), 'policy', `${name}.yaml`)));
    expect(whole.policies[0]?.files).toEqual({ lanes: hash('lanes'), roles: hash('roles'), actions: hash('actions') });
    // Three agents start in the lane; each change of a file is also a write of its own.
    expect(countOf(whole, 'lane', 'SANDBOX_FILES')).toBe('9/0');
    expect(countOf(whole, 'grant', 'role SANDBOX_AGENT')).toBe('9/0');
    expect(countOf(whole, 'grant', 'tool sandbox.read_file')).toBe('2/0');
    expect(countOf(whole, 'grant', 'tool sandbox.rename_file')).toBe('0/0');
    expect(countOf(whole, 'grant', 'action FINISH')).toBe('3/0');
    expect(countOf(whole, 'grant', 'action THINK')).toBe('2/0');
    expect(countOf(whole, 'rule', 'extensions of WRITE_FILE')).toBe('0/1');
    expect(countOf(whole, 'prohibition', 'cross_case_lookup')).toBe('0/0');
    expect(countOf(whole, 'approval', 'export')).toBe('0/0');
    expect(whole.policies[0]?.other).toEqual([{ rule_id: 'orchestrator.pinned', allowed: 3, denied: 0 }]);
  });

  test('counts only between two checkpoints, and the ranges add up', async () => {
    const between = await report('--from', 'first', '--to', 'second');
    expect(between.policies).toMatchObject([{ trees: 1 }]);
    expect(countOf(between, 'grant', 'tool sandbox.read_file')).toBe('1/0');
    expect(countOf(between, 'grant', 'tool sandbox.write_file')).toBe('0/0');
    const parts = [await report('--to', 'first'), between, await report('--from', 'second')];
    const sum = (reports: readonly Report[]) =>
      reports.flatMap(({ policies }) => policies).reduce((total, { decisions }) => total + decisions, 0);
    expect(sum(parts)).toBe(sum([await report()]));
    expect((await report('--from', 'second', '--to', 'second')).policies).toEqual([]);
  });

  test('prints what never decided', async () => {
    const { code, stdout } = await look('policy', 'coverage', '--from', 'first');
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^policy lanes [0-9a-f]{12}, roles [0-9a-f]{12}, actions [0-9a-f]{12}: \d+ decisions of 2 run/,
    );
    expect(stdout).toMatch(/\ngrant +SANDBOX_FILES +tool sandbox\.delete_file +1 +0\n/);
    expect(stdout).toMatch(/\nprohibition +SANDBOX_FILES +external_export +0 +0 +never\n/);
    expect(stdout).toMatch(/\n\d+ of \d+ elements never decided\n/);
  });

  test('refuses a checkpoint of another ledger, and a range that ends before it begins', async () => {
    const stranger = await ownLedger();
    await turnpike(stranger, ['run', '-'], { stdin: finish() });
    await turnpike(stranger, ['ledger', 'checkpoint', '--out', at('foreign')]);
    expect(await look('policy', 'coverage', '--from', 'foreign')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('is not a checkpoint signed with the key of this ledger'),
    });
    expect(await look('policy', 'coverage', '--from', 'second', '--to', 'first')).toMatchObject({ code: 2 });
    expect(await look('policy', 'coverage', '--to', 'none')).toMatchObject({ code: 2 });
  });
});

describe('policy coverage of a ledger with a past', () => {
  test('reports each version of the policy on its own, and archived entries only with the archive', async () => {
    const folder = await initialised();
    const here = (...argv: string[]) => turnpike(folder, argv, { stdin: finish() });
    expect(await here('run', '-')).toMatchObject({ code: 0 });
    const lanes = join(folder, 'other/policy/lanes.yaml');
    cpSync(shippedContract(), join(folder, 'other'), { recursive: true });
    writeFileSync(lanes, `${readFileSync(lanes, 'utf8')}# another version\n`);
    expect(await here('policy', 'pin', '--contract', 'other')).toMatchObject({ code: 0 });
    expect(await here('run', '-', '--contract', 'other')).toMatchObject({ code: 0 });
    const both = jsonLines<Report>((await here('policy', 'coverage', '--json')).stdout)[0];
    expect(both?.policies).toMatchObject([{ trees: 1 }, { trees: 1, files: { lanes: sha256(readFileSync(lanes)) } }]);
    await here('ledger', 'checkpoint', '--out', 'kept');
    expect(await here('ledger', 'archive', 'old')).toMatchObject({ code: 0 });
    expect(await here('policy', 'coverage')).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(/^LEDGER_ARCHIVED: the checkpoint at size 0 lies in an archive/),
    });
    const again = await here('policy', 'coverage', '--to', 'kept', '--archive', 'old', '--json');
    expect(jsonLines(again.stdout)).toEqual([both]);
    expect(await here('run', '-')).toMatchObject({ code: 0 });
    expect((await here('policy', 'coverage', '--from', 'kept')).stdout).toMatch(/under 1 version of the policy\n$/);
  });
});

describe('the signed statement', () => {
  const check = (...argv: string[]) => look('ledger', 'check-proof', 'signed', '--key', key(), ...argv);

  test('is verified with the public key alone, in another folder', async () => {
    const own = await report('--from', 'first', '--to', 'second', '--sign', 'signed');
    const away = tempFolder();
    for (const name of ['signed', 'first']) copyFileSync(at(name), join(away, name));
    const argv = ['ledger', 'check-proof', 'signed', '--from', 'first', '--key', readFileSync(key(), 'utf8').trim()];
    const { code, stdout } = await turnpike(away, [...argv, '--json']);
    expect(code).toBe(0);
    const { policies, from } = own;
    expect(jsonLines(stdout)).toMatchObject([{ ok: true, kind: 'coverage', from, at: own.to, policies }]);
    expect((await turnpike(away, argv)).stdout).toMatch(
      /\ngrant .*\n[^]*\nsigned: the log turnpike\/\S+ counted this from \d+ entries to \d+ entries, root [0-9a-f]{64}\n$/,
    );
  });

  test('must begin at the checkpoint that the auditor has kept', async () => {
    await report('--from', 'first', '--sign', 'signed');
    expect(await check('--from', 'first')).toMatchObject({ code: 0 });
    expect((await check('--from', 'second')).stdout).toContain('not proved: it begins at ');
    await report('--sign', 'signed');
    expect(await check()).toMatchObject({ code: 0 });
    expect((await check('--from', 'first')).stdout).toBe(
      'not proved: it begins at no checkpoint, but at the first entry\n',
    );
  });

  test('is rejected with any changed byte, and with another checkpoint', async () => {
    await report('--from', 'first', '--to', 'second', '--sign', 'signed');
    const text = readFileSync(at('signed'), 'utf8');
    for (let index = 0; index < text.length - 1; index += 997) {
      const other = text[index] === 'A' ? 'B' : 'A';
      put(home, 'signed', text.slice(0, index) + other + text.slice(index + 1));
      expect(await check()).toMatchObject({ code: 1 });
    }
    const envelope = JSON.parse(text) as SignedStatement;
    const statement = JSON.parse(Buffer.from(envelope.payload, 'base64').toString('utf8')) as CoverageStatement;
    const { predicate } = statement;
    const changes: readonly (readonly [Partial<CoverageStatement['predicate']>, string])[] = [
      [{ not_recomputed: 1 }, 'its statement is not signed by this key'],
      [{ from: readFileSync(at('second'), 'utf8') }, 'its statement is not signed by this key'],
      [{ to: 'no note' }, 'its later checkpoint is not signed by this key'],
    ];
    for (const [change, why] of changes) {
      const payload = Buffer.from(JSON.stringify({ ...statement, predicate: { ...predicate, ...change } }));
      put(home, 'signed', JSON.stringify({ ...envelope, payload: payload.toString('base64') }));
      expect(await check()).toMatchObject({ code: 1, stdout: `not proved: ${why}\n` });
    }
  });
});
