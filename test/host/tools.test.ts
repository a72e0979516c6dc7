// Tools, end to end: agents call them only through the gateway, and the outcome of a call is never guessed.

import { afterEach, describe, expect, test } from '@jest/globals';
import Type from 'typebox';
import { canonicalJson } from '../../src/core/contract/json.js';
import { sha256 } from '../../src/core/contract/hash.js';
import { ActionFailedError, ActionNotExecutedError } from '../../src/core/errors.js';
import { codeOf, defineAction, defineTool, type EffectContext } from '../../src/runtime/effects/define-effects.js';
import { Bench, type BenchOptions } from '../fixtures/bench.js';
import { CASE_AGENT, service, serviceEdit } from '../fixtures/service.js';
import { proposal } from '../fixtures/tree.js';

let bench: Bench | null = null;
afterEach(async () => {
  await bench?.close();
  bench = null;
});

async function open(made: ReturnType<typeof service>, more: BenchOptions = {}): Promise<Bench> {
  const { tools } = made;
  bench = await Bench.open({ edit: serviceEdit, tools, ...more });
  return bench;
}

const call = (tool: string, input: object): string => JSON.stringify(proposal('CALL_TOOL', { tool, input }));

test('S4-14 S4-19 S4-40 S4-47: a tool is called in a tool_gateway run, with request and response hashes', async () => {
  const made = service();
  const { turnpike } = await open(made);
  const agent = await turnpike.startAgent(CASE_AGENT);
  const response = await agent.submit(call('billing.charge', { amount: 5 }));
  expect(response).toMatchObject({ outcome: 'SUCCESS', result: { receipt: 'r-5' } });
  const mediated = `${agent.run_id}.1`;
  expect(made.world.calls).toMatchObject([{ run_id: mediated, case_id: 'case-local', idempotency_key: mediated }]);
  const [event] = (await bench!.bodies('audit_event')).filter(({ action_type }) => action_type === 'tool_call');
  const request = {
    action: 'CALL_TOOL',
    args: { tool: 'billing.charge', input: { amount: 5 } },
    case_id: 'case-local',
  };
  expect(event).toMatchObject({
    outcome: 'success',
    run_id: mediated,
    lane_id: 'CASE_WORK',
    target: { target_type: 'tool', name: 'billing.charge', operation: 'CALL_TOOL' },
    request_hash_sha256: sha256(canonicalJson(request)),
    response_hash_sha256: sha256('{"receipt":"r-5"}'),
  });
});

describe('S4-33: a tool that is not registered or not in the lane is denied, and not called', () => {
  test.each([
    ['an unregistered tool', 'mail.send', {}, 'tool.not_registered'],
    ['a registered tool that the lane does not list', 'shell.run', {}, 'lane.tool_not_allowed'],
    ['a sandbox tool by its name', 'sandbox.write_file', {}, 'tool.not_registered'],
    ['the name of an object member', 'constructor', {}, 'tool.not_registered'],
  ])('%s', async (_why, tool, input, rule_id) => {
    const made = service();
    let ran = 0;
    const none = Type.Object({}, { additionalProperties: false });
    const shell = defineTool({ name: 'shell.run', input: none, output: none, run: () => ((ran += 1), {}) });
    const { turnpike } = await open(made, { tools: [...made.tools, shell] });
    const agent = await turnpike.startAgent(CASE_AGENT);
    expect(await agent.submit(call(tool, input))).toMatchObject({
      outcome: 'DENIED',
      error: { error_code: 'POLICY_VIOLATION', message: 'This run is not allowed to do this' },
    });
    expect((await bench!.bodies('step_trace')).at(-1)).toMatchObject({ rule_id, phase_failed_at: 'AUTHORIZE' });
    expect(made.world.calls).toEqual([]);
    expect(ran).toBe(0);
  });

  test('CALL_TOOL itself, if the policy does not list it', async () => {
    const made = service();
    const { turnpike } = await open(made, {
      edit: (name, text) => (name === 'actions' ? text : serviceEdit(name, text)),
    });
    const agent = await turnpike.startAgent(CASE_AGENT);
    expect(await agent.submit(call('billing.charge', { amount: 5 }))).toMatchObject({
      error: { error_code: 'ACTION_NOT_ALLOWED' },
    });
    expect(made.world.calls).toEqual([]);
  });
});

test.each([[{}], [{ amount: '5' }], [{ amount: 0 }], [{ amount: 5, more: 1 }], [[]]])(
  'S0-39: input %j does not conform to the schema of the tool',
  async (input) => {
    const made = service();
    const { turnpike } = await open(made);
    const agent = await turnpike.startAgent(CASE_AGENT);
    expect(await agent.submit(call('billing.charge', input))).toMatchObject({ error: { error_code: 'INVALID_ARGS' } });
    expect(made.world.calls).toEqual([]);
  },
);

describe('D8: the outcome of a call', () => {
  test.each([
    ['refuse', 'REFUSED', false, 0],
    ['down', 'NOT_EXECUTED', true, 0],
    ['lose', 'OUTCOME_UNKNOWN', false, 1],
    ['lose_before', 'OUTCOME_UNKNOWN', false, 0],
    ['nonsense', 'OUTCOME_UNKNOWN', false, 1],
    ['huge', 'OUTCOME_UNKNOWN', false, 1],
  ] as const)('%s: %s', async (mode, error_code, retryable, effects) => {
    const made = service();
    made.world.mode = mode;
    const { turnpike } = await open(made);
    const agent = await turnpike.startAgent(CASE_AGENT);
    expect(await agent.submit(call('billing.charge', { amount: 5 }))).toMatchObject({
      outcome: 'EXECUTION_ERROR',
      result: null,
      error: { error_code: 'EXECUTION_ERROR' },
    });
    expect(await turnpike.ledger.run(`${agent.run_id}.1`)).toMatchObject({
      status: 'failed',
      error: { error_code, retryable },
    });
    expect(made.world.effects).toHaveLength(effects);
    expect(made.world.calls).toHaveLength(1);
  });

  test('a call that exceeds its timeout is unknown, and its signal is aborted', async () => {
    const made = service();
    made.world.mode = 'hang';
    const { turnpike, clock } = await open(made);
    const agent = await turnpike.startAgent(CASE_AGENT);
    const response = agent.submit(call('billing.charge', { amount: 5 }));
    while (made.world.calls.length === 0) await new Promise(setImmediate);
    expect(made.world.calls[0]?.signal.aborted).toBe(false);
    clock.advance(1_000);
    expect(await response).toMatchObject({ outcome: 'EXECUTION_ERROR' });
    expect(made.world.calls[0]?.signal.aborted).toBe(true);
    expect(await turnpike.ledger.run(`${agent.run_id}.1`)).toMatchObject({ error: { error_code: 'OUTCOME_UNKNOWN' } });
  });

  test.each([
    ['lose', 'SUCCESS'],
    ['lose_before', 'EXECUTION_ERROR'],
  ] as const)('the reconcile hook of the tool settles it: %s', async (mode, outcome) => {
    const made = service({ reconciles: true });
    made.world.mode = mode;
    const { turnpike } = await open(made);
    const agent = await turnpike.startAgent(CASE_AGENT);
    expect(await agent.submit(call('billing.charge', { amount: 5 }))).toMatchObject({ outcome });
    const status = outcome === 'SUCCESS' ? { status: 'completed' } : { error: { error_code: 'INTERRUPTED' } };
    expect(await turnpike.ledger.run(`${agent.run_id}.1`)).toMatchObject(status);
  });
});

const closed = { additionalProperties: false } as const;
type Charge = (input: { amount: number }, context: EffectContext) => object | Promise<object>;
const charging = (run: Charge, more: object = {}) =>
  defineTool({
    name: 'billing.charge',
    input: Type.Object({ amount: Type.Integer() }, closed),
    output: Type.Object({}, closed),
    run: run,
    ...more,
  });

describe('D8: a service with mistakes', () => {
  test('that changes its input: the tree keeps the original input, and repeats it', async () => {
    const seen: unknown[] = [];
    const tool = charging(
      (input) => {
        seen.push({ ...input });
        Object.assign(input, { amount: 9_999 });
        if (seen.length === 1) throw new ActionNotExecutedError('not reachable');
        return {};
      },
      { idempotent: true },
    );
    const edit: BenchOptions['edit'] = (name, text) =>
      `${serviceEdit(name, text)}${name === 'actions' ? '\nretries: { max: 1, backoff_ms: 1 }\n' : ''}`;
    const { turnpike, clock } = await open(service(), { edit, tools: [tool] });
    const agent = await turnpike.startAgent(CASE_AGENT);
    const response = agent.submit(call('billing.charge', { amount: 1 }));
    while (seen.length < 2) {
      clock.advance(1);
      await new Promise(setImmediate);
    }
    expect(await response).toMatchObject({ outcome: 'SUCCESS' });
    expect(seen).toEqual([{ amount: 1 }, { amount: 1 }]);
  });

  test('that reports a running call as not executed: the outcome stays unknown', async () => {
    let goOn = (): void => undefined;
    let effects = 0;
    const hanging = async () => {
      await new Promise<void>((resolve) => (goOn = resolve));
      effects += 1;
      return {};
    };
    const tool = charging(hanging, { timeout: 1_000, reconcile: () => (effects > 0 ? { done: {} } : 'not_executed') });
    const { turnpike, clock } = await open(service(), { tools: [tool] });
    const agent = await turnpike.startAgent(CASE_AGENT);
    const response = agent.submit(call('billing.charge', { amount: 1 }));
    const waiting = goOn;
    while (goOn === waiting) await new Promise(setImmediate);
    clock.advance(1_000);
    expect(await response).toMatchObject({ outcome: 'EXECUTION_ERROR' });
    goOn();
    await new Promise(setImmediate);
    expect(effects).toBe(1);
    expect(await turnpike.ledger.run(`${agent.run_id}.1`)).toMatchObject({ error: { error_code: 'OUTCOME_UNKNOWN' } });
  });

  test('that fails with output that JSON cannot represent: the call has failed nevertheless', async () => {
    const tool = charging(() => {
      throw new ActionFailedError('no', { partial: { amount: 1n } });
    });
    const { turnpike } = await open(service(), { tools: [tool] });
    const agent = await turnpike.startAgent(CASE_AGENT);
    await agent.submit(call('billing.charge', { amount: 1 }));
    expect(await turnpike.ledger.run(`${agent.run_id}.1`)).toMatchObject({ error: { error_code: 'FAILED' } });
  });

  test.each([
    ['a table that is written', 'OUTCOME_UNKNOWN', { write: { table: 'facts', mode: 'append' } }],
    ['a table that is read', 'IO_ERROR', { read: 'facts' }],
  ] as const)('that declares its action as a read: for %s, a lost answer is %s', async (_what, error_code, needs) => {
    const args = Type.Object({}, closed);
    const lost = () => {
      throw new Error('the answer was lost');
    };
    const action = defineAction({ name: 'LOOK', risk: 'read', args, needs: needs, run: lost });
    const edit: BenchOptions['edit'] = (name, text) =>
      serviceEdit(name, text).replace('  - action: CALL_TOOL', '  - action: LOOK\n  - action: CALL_TOOL');
    const { turnpike } = await open(service(), { edit, actions: [action] });
    const agent = await turnpike.startAgent(CASE_AGENT);
    await agent.submit(JSON.stringify(proposal('LOOK', {})));
    expect(await turnpike.ledger.run(`${agent.run_id}.1`)).toMatchObject({ error: { error_code } });
  });
});

describe('S4-19: tools run only through the gateway', () => {
  test('a definition contains no callable code', () => {
    const { tools } = service();
    const [tool] = tools;
    expect(JSON.stringify(tool)).not.toContain('run');
    expect(Object.values(tool ?? {}).some((member) => typeof member === 'function')).toBe(false);
    expect(Object.values({ ...tool?.definition }).some((member) => typeof member === 'function')).toBe(false);
    expect(() => codeOf({ definition: tool?.definition } as never)).toThrow(
      expect.objectContaining({ code: 'INVARIANT' }),
    );
  });
});

test('an action of the service has its args, its run and its result', async () => {
  const seen: unknown[] = [];
  const note = defineAction({
    name: 'SEND_NOTE',
    summary: 'Send a note.',
    risk: 'write',
    args: Type.Object({ to: Type.String({ maxLength: 20 }) }, { additionalProperties: false }),
    needs: { tool: 'mail.send' },
    run: ({ to }, { case_id }) => {
      seen.push({ to, case_id });
      return { sent: to };
    },
  });
  const edit: BenchOptions['edit'] = (name, text) => {
    const edited = serviceEdit(name, text);
    return name === 'actions' ? edited.replace('  - action: CALL_TOOL', '  - action: SEND_NOTE') : edited;
  };
  bench = await Bench.open({ edit, actions: [note] });
  const agent = await bench.turnpike.startAgent(CASE_AGENT);
  const send = (args: object) => agent.submit(JSON.stringify(proposal('SEND_NOTE', args)));
  expect(await send({ to: 'anna' })).toMatchObject({ outcome: 'SUCCESS', result: { sent: 'anna' } });
  expect(await send({ to: 'x'.repeat(21) })).toMatchObject({ error: { error_code: 'INVALID_ARGS' } });
  expect(seen).toEqual([{ to: 'anna', case_id: 'case-local' }]);
  expect(await bench.turnpike.ledger.run(`${agent.run_id}.1`)).toMatchObject({
    run_kind: 'tool_gateway',
    run_name: 'mail.send',
    status: 'completed',
  });
});
