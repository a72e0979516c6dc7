// Sessions over the control socket (D13): the same methods and answers as in the process, and no others.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { join } from 'node:path';
import { connectTo, listenAt, type SocketConnection } from '../../../src/system/network/unix-socket.js';
import type { SessionAnswer } from '../../../src/features/sessions/contract/session-answer.js';
import { splitLines } from '../../../src/host/control/split-lines.js';
import { connectControl, type ControlClient } from '../../../src/host/control/control-client.js';
import { remoteSessions } from '../../../src/features/sessions/control-sessions.js';
import type { Sessions } from '../../../src/features/sessions/sessions.js';
import { openTurnpike, type Turnpike } from '../../../src/host/turnpike.js';
import { initialised, tempFolder } from './fake-io.js';
import { PLAIN, putSpec, reportOf, stepOf } from './session-fixture.js';

const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
const RUNNER = { actor: 'agent', role: 'autonomy_runner' };
const ERROR = { code: 'NOT_FOUND', error_type: 'not_found', message: 'There is nothing of the kind', details: [] };
const ANNA = { actor: 'anna', role: 'maintainer' };
let folder: string;
let turnpike: Turnpike;
let client: ControlClient;
let there: Sessions;
const socketPath = (): string => join(folder, '.turnpike/control.sock');

async function open(): Promise<void> {
  folder = await initialised();
  turnpike = await openTurnpike({ home: join(folder, '.turnpike'), contract: join(folder, 'contract'), log });
  client = (await connectControl(socketPath(), null))!;
  const sessions = remoteSessions(client, null);
  there = { ...sessions, start: (options) => sessions.start({ case: 'case-local', ...options }) };
}
async function close(): Promise<void> {
  await client.close();
  await turnpike.close();
}

const dataOf = ({ data, error }: SessionAnswer) => {
  if (data === null || error !== null) throw new Error(JSON.stringify(error));
  return data;
};

describe('a client', () => {
  beforeEach(open);
  afterEach(close);

  test('D13 has every session method, as a caller in the process', async () => {
    const path = join(folder, putSpec(folder, PLAIN));
    const options = { stopOnPhaseCompletion: false, limits: { max_skips: 2 }, scope: { note: 'x' }, by: ANNA };
    const { session_id } = dataOf(await there.start({ spec: path, ...options }));
    const one = stepOf(dataOf(await there.next(session_id, {}, RUNNER)));
    const { step_id } = one;
    expect(await there.replay(session_id, RUNNER)).toEqual(await turnpike.sessions.replay(session_id, RUNNER));
    expect(await there.heartbeat(session_id, { estimated_tokens_used: 7 }, RUNNER)).toMatchObject({ success: true });
    expect(await there.verify(session_id, { step_id }, RUNNER)).toMatchObject({ error: { code: 'STEP_MISMATCH' } });
    const gate = { phase_id: 'first', step_id };
    expect(await there.review(session_id, gate, RUNNER)).toMatchObject({ error: { code: 'GATE_BLOCKED' } });
    const last_step_result = JSON.parse(reportOf(one)) as object;
    expect(dataOf(await there.next(session_id, { last_step_result }, RUNNER))).toMatchObject({ status: 'running' });
    expect(dataOf(await there.pause(session_id, { reason: 'lunch' }, ANNA))).toMatchObject({ pause_reason: 'user' });
    expect(await there.status(session_id)).toEqual(await turnpike.sessions.status(session_id));
    expect(await there.list('plain')).toEqual(await turnpike.sessions.list('plain'));
    expect(await there.list('other')).toEqual([]);
    expect(await there.prepare(session_id)).toEqual(await turnpike.sessions.prepare(session_id));
    expect(await there.prepare(session_id, 'none')).toBeNull();
    expect(dataOf(await there.rebase(session_id, { spec: path }, ANNA))).toMatchObject({ warnings: ['NO_CHANGE'] });
    const waiver = { phase_id: 'first', reason_code: 'testing' } as const;
    expect(await there.waive(session_id, waiver, ANNA)).toMatchObject({ error: { code: 'NOT_FOUND' } });
    expect(await there.resume(session_id, {}, ANNA)).toMatchObject({ error: { code: 'INVALID_STATE_TRANSITION' } });
    expect(dataOf(await there.end(session_id, { reason_code: 'testing' }, ANNA))).toMatchObject({ status: 'ended' });
    expect(await turnpike.replay(session_id)).toMatchObject({ ok: true });
  });

  test('passes a document unchanged, and gets its errors with class and code', async () => {
    const other = { ...PLAIN, id: 'other' };
    expect(dataOf(await there.start({ spec: PLAIN, by: ANNA }))).toMatchObject({ spec_id: 'plain' });
    await expect(there.start({ spec: { ...PLAIN, phases: [] }, by: ANNA })).rejects.toMatchObject({ code: 'USAGE' });
    await expect(there.start({ spec: '/missing', by: ANNA })).rejects.toMatchObject({ code: 'USAGE' });
    await expect(there.start({ spec: other, limits: { max_skips: 1e9 }, by: ANNA })).rejects.toMatchObject({
      message: expect.stringContaining('limits'),
    });
    expect(await there.status('ses_000000000000000000000')).toMatchObject({ error: { code: 'NO_ACTIVE_SESSION' } });
  });

  test('has no more rights than its role, and an unknown role has none', async () => {
    const { session_id } = dataOf(await there.start({ spec: PLAIN, by: ANNA }));
    for (const by of [RUNNER, { actor: 'anna', role: 'root' }, { actor: 'anna', role: '' }]) {
      expect(await there.end(session_id, { reason_code: 'testing' }, by)).toMatchObject({
        error: { code: 'AUTHORIZATION' },
      });
    }
  });

  test('may send any report: the session refuses it, and the connection stays open', async () => {
    const { session_id } = dataOf(await there.start({ spec: PLAIN, by: ANNA }));
    await there.next(session_id, {}, RUNNER);
    const deep = JSON.parse('['.repeat(30) + ']'.repeat(30)) as unknown;
    for (const last_step_result of ['x', 7, [], {}, deep, { step_proof: 'x'.repeat(500_000) }]) {
      expect(await there.next(session_id, { last_step_result }, RUNNER)).toMatchObject({ success: false });
    }
    expect(await there.status(session_id)).toMatchObject({ success: true });
  });

  test('may disconnect: its session continues', async () => {
    const { session_id } = dataOf(await there.start({ spec: PLAIN, by: ANNA }));
    const step = stepOf(dataOf(await there.next(session_id, {}, RUNNER)));
    await client.close();
    while (turnpike.control?.connections !== 0) await new Promise((resolve) => setTimeout(resolve, 5));
    const agent = await turnpike.agent(step.run_id ?? '');
    expect(agent?.run_id).toBe(step.run_id);
    expect(dataOf(await turnpike.sessions.replay(session_id, RUNNER)).next_step).toEqual(step);
  });
});

describe('a hostile connection', () => {
  beforeAll(open);
  afterAll(close);

  const say = async (question: object): Promise<unknown[]> => {
    const connection = (await connectTo(socketPath()))!;
    await connection.send(`${JSON.stringify({ id: 1, op: 'session', contract: null, question })}\n`);
    const answers: unknown[] = [];
    for await (const line of splitLines(connection.chunks, 1e8)) {
      answers.push(JSON.parse(Buffer.from(line).toString()));
      if ((answers[0] as { ok: boolean }).ok) break;
    }
    connection.destroy();
    return answers;
  };
  const session_id = 'ses_000000000000000000000';

  test('gets an answer to a valid request', async () => {
    expect(await say({ method: 'list' })).toEqual([{ id: 1, ok: true, result: { answer: [] } }]);
  });

  test.each([
    ['another method', { method: 'reset', session_id, by: ANNA }],
    ['an inherited method', { method: 'constructor', session_id, by: ANNA }],
    ['nobody', { method: 'pause', session_id, request: {} }],
    ['a caller with an extra member', { method: 'pause', session_id, request: {}, by: { ...ANNA, sudo: true } }],
    ['a relative path', { method: 'start', request: { spec: 'spec.yaml' }, by: ANNA }],
    ['a path without end', { method: 'start', request: { spec: `/${'x'.repeat(5_000)}` }, by: ANNA }],
    ['a number for a spec', { method: 'start', request: { spec: 7 }, by: ANNA }],
    ['a command of its own', { method: 'verify', session_id, request: { step_id: 'x', command: ['sh'] }, by: ANNA }],
    ['a request of another method', { method: 'pause', session_id, request: { force: true }, by: ANNA }],
    ['another decision', ack('maybe')],
    ['a reason that is none', { method: 'end', session_id, request: { reason_code: 'because' }, by: ANNA }],
    ['a detail without end', end('x'.repeat(1_001))],
    ['a session without end', { method: 'status', session_id: 'x'.repeat(161) }],
  ])('that says %s is told so and hung up on', async (_what, question) => {
    const usage = { id: null, ok: false, error: { code: 'USAGE', message: expect.any(String) } };
    expect(await say(question)).toEqual([usage]);
  });

  function ack(decision: string): object {
    return { method: 'resume', session_id, request: { acknowledge: { gate_attempt_id: 'x', decision } }, by: ANNA };
  }
  function end(reason_detail: string): object {
    return { method: 'end', session_id, request: { reason_code: 'testing', reason_detail }, by: ANNA };
  }
});

describe('an impostor as the owner', () => {
  const against = async (result: unknown): Promise<unknown> => {
    const path = join(tempFolder(), 's');
    const answer = `${JSON.stringify({ id: 1, ok: true, result })}\n`;
    const onConnection = (connection: SocketConnection): void => void connection.send(answer);
    const server = await listenAt({ path, connectionsMax: 1, idleMs: 5_000, onConnection });
    const connected = (await connectControl(path, null))!;
    const outcome = await remoteSessions(connected, null)
      .status('ses_000000000000000000000')
      .catch((error: unknown) => error);
    await connected.close();
    await server.close();
    return outcome;
  };

  test.each([
    ['nothing', {}],
    ['no answer', { answer: null }],
    ['a success without data', { answer: { success: true, data: null, error: null } }],
    ['a refusal with an unknown code', { answer: { success: false, data: null, error: { ...ERROR, code: 'ROOT' } } }],
    ['a refusal with an extra member', { answer: { success: false, data: null, error: { ...ERROR, html: '<b>' } } }],
    ['both at once', { answer: { success: true, data: null, error: ERROR } }],
  ])('says %s: that is no answer', async (_what, result) => {
    expect(await against(result)).toMatchObject({ code: 'INVARIANT' });
  });

  test('is accepted if it sends a valid answer', async () => {
    expect(await against({ answer: { success: false, data: null, error: ERROR } })).toMatchObject({ error: ERROR });
  });
});
