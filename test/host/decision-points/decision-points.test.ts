// Decision points, end to end, over HTTP: they can deny what policy allows, and nothing else. Closing the bench replays
// each ledger when no decision point is there any more.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { cpSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { sha256 } from '../../../src/core/contract/hash.js';
import type { DecisionFact, DecisionPoint } from '../../../src/core/contract/policy/decision-points.js';
import { loadPolicy } from '../../../src/core/policy/files/check-policy.js';
import { buildPolicyMatrix } from '../../../src/features/policy-lint/policy-matrix.js';
import { Bench, type BenchOptions } from '../../fixtures/bench.js';
import { ManualClock } from '../../fixtures/manual-clock.js';
import { proposal } from '../../fixtures/tree.js';
import { refund, refundCall, refundEdit, refunds } from '../conditions/refund-service.js';
import { answerJson, DecisionServer, type Answering } from './decision-server.js';

const AGENT = { lane: 'CASE_WORK', role: 'CASE_AGENT' } as const;
const REFUND = 'CALL_TOOL:payments.refund';
const TOKEN_ENV = 'TURNPIKE_TEST_DECISION_TOKEN';

let server: DecisionServer;
let bench: Bench | null;
beforeEach(async () => {
  bench = null;
  refunds.length = 0;
  server = await DecisionServer.start();
});
afterEach(async () => {
  Reflect.deleteProperty(process.env, TOKEN_ENV);
  await server.close();
  await bench?.close();
});

type PointOptions = Partial<Omit<DecisionPoint, 'name' | 'url'>>;

const pointAt = (url: string, { timeout_ms = 5_000, ...more }: PointOptions = {}): DecisionPoint => ({
  ...{ name: 'fraud', protocol: 'authzen', url, timeout_ms, actions: [REFUND] },
  ...more,
});

const withPoints =
  (points: readonly DecisionPoint[]): NonNullable<BenchOptions['edit']> =>
  (name, text) => {
    const edited = refundEdit(name, text);
    return name === 'actions' ? `${edited}\ndecision_points: ${JSON.stringify(points)}\n` : edited;
  };

async function open(more: PointOptions = {}): Promise<Bench> {
  const clock = new ManualClock('2026-01-05T10:00:00.000Z');
  bench = await Bench.open({ edit: withPoints([pointAt(server.url, more)]), tools: [refund], clock });
  return bench;
}

const facts = async (of: Bench): Promise<readonly DecisionFact[]> =>
  (await of.entries()).flatMap(({ type, body }) =>
    type === 'input' && body.kind === 'facts' ? (body.decisions ?? []) : [],
  );

describe('a decision point of AuthZEN', () => {
  test('that permits lets the action happen; what it was asked, and its answer, are recorded', async () => {
    const opened = await open({ sends: ['amount', 'missing'] });
    const agent = await opened.turnpike.startAgent(AGENT);
    expect(await agent.submit(refundCall(50))).toMatchObject({ outcome: 'SUCCESS' });
    expect(server.asked.map(({ body }) => JSON.parse(body) as unknown)).toEqual([
      {
        subject: {
          type: 'actor',
          id: 'agent',
          properties: { role: 'CASE_AGENT', lane: 'CASE_WORK', person: 'agent', look: 'agent' },
        },
        action: { name: 'CALL_TOOL' },
        resource: { type: 'tool', id: 'payments.refund' },
        context: { case_id: 'case-local', args: { amount: 50 } },
      },
    ]);
    const request_hash = sha256(server.asked[0]?.body ?? '');
    expect(await facts(opened)).toEqual([{ name: 'fraud', answer: 'permit', request_hash, cached: false }]);
  });

  test('that denies stops the action, and the agent gets the constant message', async () => {
    const opened = await open();
    server.answer = answerJson({ decision: false, context: { reason: 'blocked: secret words' } });
    const agent = await opened.turnpike.startAgent(AGENT);
    const response = await agent.submit(refundCall(50));
    expect(response).toMatchObject({ outcome: 'DENIED' });
    expect(JSON.stringify(response)).not.toMatch(/secret|fraud|decision_point/);
    expect(await opened.lastRule()).toBe('decision_point.denied');
    expect(refunds).toEqual([]);
    expect((await opened.entries()).map((entry) => JSON.stringify(entry)).join('')).not.toContain('secret words');
  });

  test('is not asked about other actions, nor about what policy denies', async () => {
    const opened = await open();
    const agent = await opened.turnpike.startAgent(AGENT);
    await agent.submit(JSON.stringify(proposal('THINK', { text: 'x' })));
    const other = await opened.turnpike.startAgent();
    expect(await other.submit(refundCall(50))).toMatchObject({ outcome: 'DENIED' });
    expect(server.asked).toEqual([]);
  });

  const NO_ANSWERS: readonly (readonly [string, Answering])[] = [
    ['nothing in time', () => undefined],
    ['an error', (response) => void response.writeHead(500).end('{"decision":true}')],
    ['a redirect', (response) => void response.writeHead(302, { location: server.url }).end()],
    ['what is not JSON', (response) => void response.end('yes')],
    ['a text', answerJson({ decision: 'true' })],
    ['a list', answerJson([{ decision: true }])],
    ['a member twice', (response) => void response.end('{"decision":false,"decision":true}')],
    [
      'a member twice, one of them escaped',
      (response) => void response.end('{"decision":false,"d\\u0065cision":true}'),
    ],
    ['more than 64 KiB', answerJson({ decision: true, context: 'x'.repeat(65_536) })],
    ['half an answer', (response) => void response.write('{"decision":true', () => response.destroy())],
  ];
  test('that gives none of the valid answers denies', async () => {
    const opened = await open({ timeout_ms: 200 });
    for (const [what, answering] of NO_ANSWERS) {
      server.answer = answering;
      const agent = await opened.turnpike.startAgent(AGENT);
      expect([what, await agent.submit(refundCall(50))]).toMatchObject([what, { outcome: 'DENIED' }]);
      expect([what, await opened.lastRule()]).toEqual([what, 'decision_point.no_answer']);
    }
    expect((await facts(opened)).map(({ answer }) => answer)).toEqual(NO_ANSWERS.map(() => 'none'));
    expect(refunds).toEqual([]);
  });

  test('gets the token of its environment variable, and is not asked without one', async () => {
    const opened = await open({ token_env: TOKEN_ENV });
    const agent = await opened.turnpike.startAgent(AGENT);
    expect(await agent.submit(refundCall(1))).toMatchObject({ outcome: 'DENIED' });
    expect(server.asked).toEqual([]);
    process.env[TOKEN_ENV] = 'token-1';
    expect(await agent.submit(refundCall(2))).toMatchObject({ outcome: 'SUCCESS' });
    expect(server.asked.map(({ authorization }) => authorization)).toEqual(['Bearer token-1']);
  });

  test('is not asked again about the same request while its answer holds', async () => {
    const opened = await open({ cache_seconds: 60, sends: ['amount'] });
    const agent = await opened.turnpike.startAgent(AGENT);
    const amounts = [5, 5, 6];
    for (const amount of amounts) expect(await agent.submit(refundCall(amount))).toMatchObject({ outcome: 'SUCCESS' });
    expect((await facts(opened)).map(({ cached }) => cached)).toEqual([false, true, false]);
    opened.clock.advance(60_000);
    server.answer = answerJson({ decision: false });
    const next = await opened.turnpike.startAgent(AGENT);
    expect(await next.submit(refundCall(5))).toMatchObject({ outcome: 'DENIED' });
    expect(server.asked).toHaveLength(3);
  });

  test('is asked about each path of an action, and an answer counts for these paths only', async () => {
    const opened = await open({ cache_seconds: 60, actions: ['RENAME_FILE'] });
    server.answer = (response, asked) => {
      const { id } = (JSON.parse(asked.body) as { resource: { id: string } }).resource;
      answerJson({ decision: !id.endsWith('/closed.txt') })(response, asked);
    };
    const agent = await opened.turnpike.startAgent();
    const rename = (destination: string) =>
      agent.submit(JSON.stringify(proposal('RENAME_FILE', { source: '/sandbox/a.txt', destination })));
    opened.put('a.txt', 'x');
    expect(await rename('/sandbox/closed.txt')).toMatchObject({ outcome: 'DENIED' });
    expect(await opened.lastRule()).toBe('decision_point.denied');
    expect(await rename('/sandbox/b.txt')).toMatchObject({ outcome: 'SUCCESS' });
    expect(server.asked.map(({ body }) => (JSON.parse(body) as { resource: object }).resource)).toEqual([
      { type: 'path', id: '/sandbox/a.txt' },
      { type: 'path', id: '/sandbox/closed.txt' },
      { type: 'path', id: '/sandbox/a.txt' },
      { type: 'path', id: '/sandbox/b.txt' },
    ]);
    opened.put('a.txt', 'x');
    opened.put('c.txt', 'x');
    expect((await facts(opened)).filter(({ cached }) => cached)).toEqual([]);
  });

  test('that gave no answer is asked again', async () => {
    const opened = await open({ cache_seconds: 60 });
    server.answer = answerJson({});
    const agent = await opened.turnpike.startAgent(AGENT);
    expect(await agent.submit(refundCall(5))).toMatchObject({ outcome: 'DENIED' });
    server.answer = answerJson({ decision: true });
    expect(await agent.submit(refundCall(5))).toMatchObject({ outcome: 'SUCCESS' });
  });
});

test('a document of OPA permits with true, denies with false, and gives no answer with anything else', async () => {
  const opened = await open({ protocol: 'opa' });
  for (const [reply, rule] of [
    [{ result: true }, null],
    [{ result: { allow: true } }, null],
    [{ result: false }, 'decision_point.denied'],
    [{ result: { allow: false } }, 'decision_point.denied'],
    [{}, 'decision_point.no_answer'],
    [{ result: { allow: 'yes' } }, 'decision_point.no_answer'],
    [{ decision: true }, 'decision_point.no_answer'],
  ] as const) {
    server.answer = answerJson(reply);
    const agent = await opened.turnpike.startAgent(AGENT);
    const outcome = rule === null ? 'SUCCESS' : 'DENIED';
    expect([reply, await agent.submit(refundCall(50))]).toMatchObject([reply, { outcome }]);
    if (rule !== null) expect([reply, await opened.lastRule()]).toEqual([reply, rule]);
    expect(JSON.parse(server.asked.at(-1)?.body ?? '')).toMatchObject({ input: { action: { name: 'CALL_TOOL' } } });
  }
});

describe('while a decision point is asked', () => {
  const write = JSON.stringify(proposal('WRITE_FILE', { path: '/sandbox/a.txt', content: 'x' }));

  /** The answer that a test lets go. */
  function held(): { readonly isAsked: Promise<void>; readonly permit: () => void } {
    let permit = (): void => undefined;
    const isAsked = new Promise<void>((resolve) => {
      server.answer = (response, asked) => {
        permit = () => answerJson({ decision: true })(response, asked);
        resolve();
      };
    });
    return { isAsked, permit: () => permit() };
  }

  test('the sandbox may change: its facts are those at the decision', async () => {
    const opened = await open({ actions: ['WRITE_FILE'] });
    const { isAsked, permit } = held();
    const agent = await opened.turnpike.startAgent();
    const response = agent.submit(write);
    await isAsked;
    expect(JSON.parse(server.asked[0]?.body ?? '')).toMatchObject({ resource: { type: 'path', id: '/sandbox/a.txt' } });
    mkdirSync(join(opened.home, 'sandbox/case-local'), { recursive: true });
    symlinkSync('/etc/passwd', join(opened.home, 'sandbox/case-local/a.txt'));
    permit();
    expect(await response).toMatchObject({ outcome: 'DENIED' });
    expect(await opened.lastRule()).toBe('sandbox.symlink');
  });

  test('other runs go on', async () => {
    const opened = await open({ actions: ['WRITE_FILE'] });
    const { isAsked, permit } = held();
    const [first, second] = [await opened.turnpike.startAgent(), await opened.turnpike.startAgent(AGENT)];
    const response = first.submit(write);
    await isAsked;
    expect(await second.submit(refundCall(5))).toMatchObject({ outcome: 'SUCCESS' });
    permit();
    expect(await response).toMatchObject({ outcome: 'SUCCESS' });
  });

  test('its run can be canceled, and the late answer changes nothing', async () => {
    const opened = await open();
    const { isAsked, permit } = held();
    const agent = await opened.turnpike.startAgent(AGENT);
    const response = agent.submit(refundCall(5));
    await isAsked;
    await agent.cancel('test');
    permit();
    expect(await response).toMatchObject({ outcome: 'DENIED' });
    expect(refunds).toEqual([]);
  });

  test('the process may die: the next start denies the step without asking', async () => {
    const opened = await open();
    const { isAsked, permit } = held();
    const agent = await opened.turnpike.startAgent({ ...AGENT, link: 'remote', key: 'a' });
    const response = agent.submit(refundCall(5));
    await isAsked;
    // What a crash at this moment would leave.
    const folder = `${opened.folder}-crashed`;
    cpSync(opened.folder, folder, { recursive: true, filter: (path) => !path.endsWith('.sock') });
    permit();
    expect(await response).toMatchObject({ outcome: 'SUCCESS' });
    const crashed = await Bench.reopenFolder(folder, { tools: [refund], clock: opened.clock });
    expect(await crashed.lastRule()).toBe('decision_point.no_answer');
    expect(server.asked).toHaveLength(1);
    await crashed.close();
  });
});

test('several decision points are all asked, and the first that does not permit decides', async () => {
  const clock = new ManualClock('2026-01-05T10:00:00.000Z');
  const points = [pointAt(server.url), { ...pointAt(`${server.url}s`), name: 'second' }];
  bench = await Bench.open({ edit: withPoints(points), tools: [refund], clock });
  let nth = 0;
  server.answer = (response, asked) => answerJson({ decision: (nth += 1) === 1 })(response, asked);
  const agent = await bench.turnpike.startAgent(AGENT);
  expect(await agent.submit(refundCall(5))).toMatchObject({ outcome: 'DENIED' });
  expect((await facts(bench)).map(({ answer }) => answer).toSorted()).toEqual(['deny', 'permit']);
});

test('the matrix says where decision points decide', async () => {
  const opened = await open({ actions: ['WRITE_FILE'] });
  const bytes = (name: string): Buffer => readFileSync(join(opened.contract, 'policy', `${name}.yaml`));
  const cells = buildPolicyMatrix(
    loadPolicy({ lanes: bytes('lanes'), roles: bytes('roles'), actions: bytes('actions') }),
  );
  const cellOf = (act: string, lane_id: string) =>
    cells.find((cell) => cell.role_id === 'SANDBOX_AGENT' && cell.lane_id === lane_id && cell.act === act);
  expect(cellOf('WRITE_FILE', 'SANDBOX_FILES')).toMatchObject({ decision: 'depends', rule_id: 'decision_point.*' });
  expect(cellOf('READ_FILE', 'SANDBOX_FILES')).toMatchObject({ decision: 'allow' });
  expect(cellOf('WRITE_FILE', 'CASE_WORK')).toMatchObject({ decision: 'deny' });
});
