// promote, export, approvals, approve, runs resolve: alone, and through the socket of a service that owns the home
// directory and has registered tables and tools.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { connectControl } from '../../../src/host/control/control-client.js';
import { openTurnpike, type Turnpike } from '../../../src/host/turnpike.js';
import { CASE_AGENT, service, serviceEdit } from '../../fixtures/service.js';
import { unapproved } from '../../fixtures/unapproved.js';
import { initialised, jsonLines, line, linesOf, put, turnpike } from './fake-io.js';

const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
let folder: string;
let held: Turnpike | null = null;

beforeEach(async () => {
  folder = await initialised();
});
afterEach(async () => {
  await held?.close();
  held = null;
});

/** Adds to the policy lanes for a service, and the required approvals, each by one person. */
async function pinned(...subjects: string[]): Promise<void> {
  for (const name of ['lanes', 'roles', 'actions'] as const) {
    const path = `contract/policy/${name}.yaml`;
    const shipped = readFileSync(join(folder, path), 'utf8');
    let text = serviceEdit(name, name === 'actions' ? unapproved(shipped) : shipped);
    if (name === 'actions' && subjects.length > 0) {
      const rules = subjects.map(
        (subject) => `  - { for: ${subject}, approver_roles: [ATTORNEY_ADMIN], quorum: 1, expires_minutes: 5 }\n`,
      );
      text += `\napprovals:\n${rules.join('')}`;
    }
    put(folder, path, text);
  }
  const unasked = ['export', 'promotion'].filter((subject) => !subjects.includes(subject));
  const careless = ['lane.prohibition_missing', ...unasked.map((subject) => `${subject}.no_approval`)];
  const accepted = careless.flatMap((rule) => ['--accept', rule, '--reason', 'a policy for tests']);
  expect(await turnpike(folder, ['policy', 'pin', ...accepted])).toMatchObject({ code: 0 });
}

/** A service that owns the home directory. */
async function serve(made = service()): Promise<ReturnType<typeof service>> {
  const where = { home: join(folder, '.turnpike'), contract: join(folder, 'contract') };
  held = await openTurnpike({ ...where, log, tools: made.tools, targets: made.targets });
  return made;
}

const ANNA = ['--actor', 'anna', '--role', 'ATTORNEY_ADMIN'];
const BERTA = ['--actor', 'berta', '--role', 'ATTORNEY_ADMIN'];
const CASE = ['--case', 'case-local'];
const RECORD = '{"id":"p-1","text":"Ask for the lease first."}';
const promotion = ['promote', ...CASE, ...ANNA, '--ticket', 'T-1', '--target', 'shared_playbooks', '--record', RECORD];
const bundle = ['export', ...CASE, ...ANNA, '--reason', 'discovery', '--to', 'bag'];

const playbooks = async (): Promise<unknown> => {
  const agent = await held!.startAgent(CASE_AGENT);
  const response = await agent.submit(line('READ_RECORDS', { target: 'shared_playbooks' }));
  await agent.end();
  return response.result;
};

describe('promote', () => {
  test('is denied without a service, because no table is registered', async () => {
    await pinned();
    const { code, stdout } = await turnpike(folder, promotion);
    expect(code).toBe(1);
    expect(linesOf(stdout)).toEqual([expect.stringMatching(/^run_\w+\.1$/), 'denied (target.not_registered)']);
  });

  test('D13 is written through the service that owns the home directory', async () => {
    await pinned();
    await serve();
    const { code, stdout } = await turnpike(folder, promotion);
    expect({ code, lines: linesOf(stdout) }).toEqual({ code: 0, lines: [expect.any(String), 'completed'] });
    put(folder, 'record.json', '{"id":"p-2","text":"second"}');
    const file = [...promotion.slice(0, -2), '--record-file', 'record.json', '--json'];
    const [ending] = jsonLines((await turnpike(folder, file)).stdout);
    expect(ending).toEqual({ run_id: expect.any(String), state: 'completed', reason: 'completed' });
    expect(await playbooks()).toMatchObject({ records: [{ id: 'p-1' }, { id: 'p-2', text: 'second' }] });
  });

  test.each([
    ['a record that is not an object', ['--record', '[]']],
    ['a record with a duplicate key', ['--record', '{"id":"a","id":"b"}']],
  ])('%s is wrong usage, and starts nothing', async (_what, more) => {
    const { code, stderr } = await turnpike(folder, [...promotion.slice(0, -2), ...more]);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(/^USAGE: [^\n]*\n$/) });
    expect((await turnpike(folder, ['runs'])).stdout).toBe('');
  });

  test('reports a record that does not match the table, also from the other process', async () => {
    await pinned();
    await serve();
    const wrong = [...promotion.slice(0, -1), '{"id":7}'];
    expect(await turnpike(folder, wrong)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('shared_playbooks'),
    });
  });
});

const verifyBag = (name: string) =>
  turnpike(folder, ['export', 'verify', `.turnpike/exports/${name}`, '--key', '.turnpike/keys/ledger.vkey']);

describe('export', () => {
  test.each([[[]], [['--zip']]])('writes a valid bag, alone and through a service, with %j', async (how) => {
    await pinned();
    expect(await turnpike(folder, [...bundle, ...how])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('completed'),
    });
    expect(await verifyBag('bag')).toMatchObject({ code: 0, stdout: expect.stringContaining('\nauthenticated: ') });
    await serve();
    const other = [...bundle.slice(0, -1), 'other-bag', ...how];
    expect(await turnpike(folder, other)).toMatchObject({ code: 0 });
    expect(await verifyBag('other-bag')).toMatchObject({ code: 0 });
    expect(await turnpike(folder, other)).toMatchObject({ code: 1, stdout: expect.stringContaining('failed') });
  });
});

describe('D7 approvals and approve', () => {
  const waiting = async (argv: readonly string[]) => {
    const [run] = jsonLines<{ run_id: string; digest: string; state: string }>(
      (await turnpike(folder, [...argv, '--json'])).stdout,
    );
    expect(run?.state).toBe('created');
    return run!;
  };
  const listed = async () => jsonLines((await turnpike(folder, ['approvals', '--json'])).stdout);

  test('an export waits across processes; the approval executes it before the command ends', async () => {
    await pinned('export');
    const started = await turnpike(folder, bundle);
    expect(started).toMatchObject({ code: 0, stdout: expect.stringContaining('waiting for approval') });
    expect(existsSync(join(folder, '.turnpike/exports/bag'))).toBe(false);
    const [asked] = await listed();
    const { run_id, digest } = asked as { run_id: string; digest: string };
    expect(started.stdout).toContain(`turnpike approve ${run_id} ${digest}`);
    expect(asked).toMatchObject({
      request: { action: 'EXPORT_BUNDLE', args: { locator: 'bag', export_reason: 'discovery' } },
      requested_by: 'anna',
      votes: [],
      quorum: 1,
    });
    const text = (await turnpike(folder, ['approvals'])).stdout;
    expect(text).toContain('0 of 1, by ATTORNEY_ADMIN');
    expect(await turnpike(folder, ['approve', run_id, digest, ...ANNA])).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('approval.by_requester'),
    });
    const approved = await turnpike(folder, ['approve', run_id, digest, 'f'.repeat(64), ...BERTA]);
    expect(approved).toMatchObject({ code: 0, stdout: expect.stringContaining(`${run_id} completed`) });
    expect(approved.stdout).toContain('approval.unknown_digest');
    expect(await verifyBag('bag')).toMatchObject({ code: 0 });
    expect(await turnpike(folder, ['approvals'])).toMatchObject({ stdout: '', stderr: 'no pending approvals\n' });
  });

  test('a rejection denies the export', async () => {
    await pinned('export');
    const { run_id, digest } = await waiting(bundle);
    const rejected = await turnpike(folder, ['approve', '--reject', run_id, digest, ...BERTA]);
    expect(rejected).toMatchObject({ code: 0, stdout: expect.stringContaining('denied (approval.rejected)') });
    expect(existsSync(join(folder, '.turnpike/exports/bag'))).toBe(false);
  });

  test('the service executes a promotion, which cannot be approved without it', async () => {
    await pinned('promotion');
    await serve();
    const { run_id, digest } = await waiting(promotion);
    expect(await listed()).toMatchObject([
      { request: { action: 'WRITE_RECORD', args: { record: JSON.parse(RECORD) as object } } },
    ]);
    await held!.close();
    held = null;
    const alone = await turnpike(folder, ['approve', run_id, digest, ...BERTA]);
    expect(alone).toMatchObject({ code: 2, stderr: expect.stringContaining('is a promotion') });
    await serve();
    const taken = await held!.highRiskRun(run_id);
    expect(await turnpike(folder, ['approve', run_id, digest, ...BERTA])).toMatchObject({ code: 0 });
    expect(await taken!.finished).toMatchObject({ state: 'completed' });
    expect(await playbooks()).toMatchObject({ records: [JSON.parse(RECORD)] });
  });

  test('a request of an agent is printed with its canonical arguments, and allowed when proposed again', async () => {
    await pinned('WRITE_FILE', 'CALL_TOOL');
    const made = await serve();
    const write = await held!.startAgent({ case: 'case-local' });
    const file = { path: '/sandbox/a.txt', content: 'x\u202e' };
    await write.submit(line('WRITE_FILE', file));
    const call = await held!.startAgent(CASE_AGENT);
    const args = { tool: 'billing.charge', input: { amount: 5 } };
    expect(await call.submit(line('CALL_TOOL', args))).toMatchObject({ outcome: 'DENIED' });
    const asked = await listed();
    expect(asked).toMatchObject([
      { run_id: write.run_id, name: 'WRITE_FILE', request: { action: 'WRITE_FILE', args: file } },
      { run_id: call.run_id, name: 'CALL_TOOL', request: { action: 'CALL_TOOL', args } },
    ]);
    expect((await turnpike(folder, ['approvals'])).stdout).not.toMatch(/[^\P{C}\n]/u);
    const { digest } = asked[1] as { digest: string };
    expect(await turnpike(folder, ['approve', call.run_id, digest, ...BERTA])).toMatchObject({ code: 0 });
    expect(await call.submit(line('CALL_TOOL', args))).toMatchObject({ outcome: 'SUCCESS' });
    expect(made.world.effects).toHaveLength(1);
  });

  test('a vote on an unknown run fails', async () => {
    const argv = ['approve', 'run_nobody.1', 'f'.repeat(64), ...BERTA];
    expect(await turnpike(folder, argv)).toMatchObject({ code: 1, stdout: '' });
  });
});

describe('D8 runs resolve', () => {
  const unknown = async (): Promise<string> => {
    const made = await serve();
    made.world.mode = 'lose';
    const agent = await held!.startAgent(CASE_AGENT);
    await agent.submit(line('CALL_TOOL', { tool: 'billing.charge', input: { amount: 5 } }));
    await agent.end();
    return `${agent.run_id}.1`;
  };
  const resolve = (run: string, outcome = 'done') =>
    turnpike(folder, ['runs', 'resolve', run, '--outcome', outcome, ...BERTA, '--note', 'asked the bank']);

  test.each(['here', 'there'])('%s: is reported as unknown, settled once, and the run stays failed', async (where) => {
    await pinned();
    const run = await unknown();
    if (where === 'here') {
      await held!.close();
      held = null;
    }
    expect((await turnpike(folder, ['runs'])).stdout).toContain('not settled: `turnpike runs resolve`');
    const marked = async () =>
      jsonLines((await turnpike(folder, ['runs', '--json'])).stdout).filter((each) => 'unknown_outcome' in each);
    expect(await marked()).toMatchObject([{ run_id: run, status: 'failed', unknown_outcome: { settled: null } }]);
    expect(await resolve(run)).toMatchObject({ code: 0, stdout: `${run} is settled: done\n` });
    const settled = { outcome: 'done', actor_id: 'berta', role_id: 'ATTORNEY_ADMIN', note: null };
    expect(await marked()).toMatchObject([
      { run_id: run, status: 'failed', error: { error_code: 'OUTCOME_UNKNOWN' }, unknown_outcome: { settled } },
    ]);
    expect((await turnpike(folder, ['runs', run])).stdout).toContain('settled as done by berta as ATTORNEY_ADMIN');
    expect(await resolve(run, 'not-executed')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^INVALID_STATE/),
    });
    expect(await turnpike(folder, ['ledger', 'verify'])).toMatchObject({ code: 0 });
    expect(await turnpike(folder, ['replay'])).toMatchObject({ code: 0 });
  });

  test('an unknown run cannot be settled', async () => {
    expect(await resolve('run_nobody.1')).toMatchObject({ code: 1, stderr: expect.stringMatching(/^RUN_UNKNOWN/) });
  });
});

describe('the socket', () => {
  test('a promotion that was started over it continues when the connection closes', async () => {
    await pinned('promotion');
    await serve();
    const client = (await connectControl(join(folder, '.turnpike/control.sock'), null))!;
    expect(await client.isReady()).toBe(true);
    const options = { actor: 'anna', role: 'ATTORNEY_ADMIN', case: 'case-local', ticket: 'T-1' };
    const record = JSON.parse(RECORD) as { id: string; text: string };
    const { run_id, digest, finished } = await client.promote({ ...options, target: 'shared_playbooks', record });
    await client.close();
    await expect(finished).rejects.toMatchObject({ code: 'CLOSED' });
    while (held!.control!.connections > 0) await new Promise(setImmediate);
    const run = await held!.highRiskRun(run_id);
    expect(run).toMatchObject({ run_id, digest });
    await held!.approve({
      run: run_id,
      digests: [digest!],
      decision: 'approve',
      actor: 'berta',
      role: 'ATTORNEY_ADMIN',
    });
    expect(await run!.finished).toMatchObject({ state: 'completed' });
  });

  test('never runs under another contract than the requested one', async () => {
    await pinned();
    await serve();
    const client = (await connectControl(join(folder, '.turnpike/control.sock'), '/elsewhere'))!;
    const options = {
      actor: 'anna',
      role: 'ATTORNEY_ADMIN',
      case: 'case-local',
      reason: 'x',
      destination: '/tmp/none',
    };
    await expect(client.export(options)).rejects.toMatchObject({ code: 'USAGE' });
    await client.close();
  });
});

describe('policy check --matrix', () => {
  test('prints what each role may do in each lane', async () => {
    const { code, stdout } = await turnpike(folder, ['policy', 'check', '--matrix']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^SANDBOX_AGENT +SANDBOX_FILES +WRITE_FILE +allow +lane\.granted$/m);
    expect(stdout).toMatch(/^ATTORNEY_ADMIN +EXPORT_CASE_DATA +export +deny +approval\.required$/m);
    expect(stdout).toMatch(/^MAPPING_AGENT +SANDBOX_FILES +\* +deny +role\.lane_not_granted$/m);
    const cells = jsonLines((await turnpike(folder, ['policy', 'check', '--matrix', '--json'])).stdout);
    expect(cells).toContainEqual({
      role_id: 'SANDBOX_AGENT',
      lane_id: 'SANDBOX_FILES',
      act: 'DELETE_FILE',
      decision: 'allow',
      rule_id: 'lane.granted',
    });
  });

  test('checks a policy that lists actions of a service with its registrations', async () => {
    const path = 'contract/policy/actions.yaml';
    put(
      folder,
      path,
      readFileSync(join(folder, path), 'utf8').replace('  - action: THINK', '  - action: NOTE\n  - action: THINK'),
    );
    expect(await turnpike(folder, ['policy', 'check'])).toMatchObject({ code: 1 });
    const action = {
      name: 'NOTE',
      summary: 'Note.',
      risk: 'write',
      args: { type: 'object', properties: {}, additionalProperties: false },
      needs: { tool: 'mail.send' },
      idempotent: false,
      timeout_ms: 1,
      result_bytes_max: 2,
      outside: false,
      confidentiality: [],
    };
    put(folder, 'own.json', JSON.stringify({ actions: [action], tools: [], targets: [] }));
    const own = ['--registrations', 'own.json'];
    expect(await turnpike(folder, ['policy', 'check', ...own])).toMatchObject({ code: 0 });
    expect((await turnpike(folder, ['policy', 'check', '--matrix', ...own])).stdout).toMatch(
      /^SANDBOX_AGENT +SANDBOX_FILES +NOTE +deny +lane\.tool_not_allowed$/m,
    );
    expect((await turnpike(folder, ['actions', ...own])).stdout).toContain('NOTE');
    put(folder, 'own.json', '{"actions":[]}');
    expect(await turnpike(folder, ['policy', 'check', ...own])).toMatchObject({ code: 2 });
  });
});

test('actions lists CALL_TOOL, WRITE_RECORD and READ_RECORDS if the policy allows them', async () => {
  await pinned();
  expect((await turnpike(folder, ['actions'])).stdout).toMatch(/^CALL_TOOL +destructive +tool, input/m);
  const [document] = jsonLines<{ actions: { action: string; args: { properties: object } }[] }>(
    (await turnpike(folder, ['actions', '--json'])).stdout,
  );
  const names = ['CALL_TOOL', 'WRITE_RECORD', 'READ_RECORDS'];
  expect(
    document!.actions.filter(({ action }) => names.includes(action)).map(({ args }) => Object.keys(args.properties)),
  ).toEqual([
    ['tool', 'input'],
    ['target', 'mode', 'record'],
    ['target', 'where', 'after', 'case_id', 'limit'],
  ]);
});
