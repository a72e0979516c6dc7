// What a step records about a failure, and what its agent sees under each exposure (C94, C95).

import { afterEach, describe, expect, test } from '@jest/globals';
import Type from 'typebox';
import type { Entry } from '../../src/core/contract/run/entry.js';
import { EXPOSURES, type Exposure } from '../../src/core/contract/run/response.js';
import type { StepTrace } from '../../src/core/contract/run/step-trace.js';
import { ActionFailedError, ActionNotExecutedError } from '../../src/core/errors.js';
import type { Log } from '../../src/engine/ports/log.js';
import { findLifecycleFaults } from '../../src/kernel/replay/lifecycle-faults.js';
import { defineTool, type EffectContext } from '../../src/runtime/effects/define-effects.js';
import { Bench, type BenchOptions } from '../fixtures/bench.js';
import { CASE_AGENT, serviceEdit } from '../fixtures/service.js';
import { proposal } from '../fixtures/tree.js';

let bench: Bench | null = null;
afterEach(async () => {
  await bench?.close();
  bench = null;
});

const closed = { additionalProperties: false } as const;
const ARGUMENT_MESSAGE = "Arguments do not match the action's schema";
const CANARY = 'CANARY-of-the-agent';

/** A refund tool; `fail` decides what it throws. */
function refundTool(
  fail: (context: EffectContext, call: number) => Error | null,
  options: { idempotent?: boolean } = {},
) {
  const keys: string[] = [];
  const tool = defineTool({
    name: 'billing.charge',
    input: Type.Object({ amount: Type.Integer({ minimum: 1, maximum: 100 }) }, closed),
    output: Type.Object({ done: Type.Boolean() }, closed),
    confidentiality: ['contains_pii'],
    ...options,
    run: (_input, context) => {
      keys.push(context.idempotency_key);
      const error = fail(context, keys.length);
      if (error !== null) throw error;
      return { done: true };
    },
  });
  return { keys, tool };
}

const edited =
  (exposure: Exposure, more: (text: string) => string = (text) => text): NonNullable<BenchOptions['edit']> =>
  (name, text) =>
    name === 'actions'
      ? more(serviceEdit(name, text).replace('exposure: detailed', `exposure: ${exposure}`))
      : serviceEdit(name, text);

async function open(exposure: Exposure, made: ReturnType<typeof refundTool>, more: BenchOptions = {}): Promise<Bench> {
  bench = await Bench.open({ edit: edited(exposure), tools: [made.tool], ...more });
  return bench;
}

const call = (input: object): string => JSON.stringify(proposal('CALL_TOOL', { tool: 'billing.charge', input }));

const tracesOf = (entries: readonly Entry[]): readonly StepTrace[] =>
  entries.flatMap((entry) => (entry.type === 'step_trace' ? [entry.body] : []));

const works = () => refundTool(() => null);

describe('C94: a proposal that breaks a schema', () => {
  const BAD = [
    [call({ amount: 101 }), 'args.input.amount: must be <= 100', ARGUMENT_MESSAGE],
    [call({}), 'args.input.amount: is missing', ARGUMENT_MESSAGE],
    [call({ amount: 1, [CANARY]: CANARY }), 'args.input: has 1 unknown field', ARGUMENT_MESSAGE],
    [
      JSON.stringify(proposal('CALL_TOOL', { tool: CANARY, input: {}, more: 1 })),
      'args: has 1 unknown field',
      ARGUMENT_MESSAGE,
    ],
    [
      JSON.stringify({ ...proposal('THINK', {}), reasoning: '' }),
      'reasoning: must be a text of 1 to 8192 characters',
      null,
    ],
    [
      JSON.stringify(proposal('READ_FILE', { path: '/etc/passwd' })),
      'args.path: must begin with "/sandbox/"',
      /paths start with \/sandbox\//,
    ],
  ] as const;

  test.each(EXPOSURES)('is explained to its agent only under `explained`: %s', async (exposure) => {
    const { turnpike } = await open(exposure, works());
    const agent = await turnpike.startAgent(CASE_AGENT);
    const shown: unknown[] = [];
    for (const [payload] of BAD.slice(0, 3)) shown.push(await agent.submit(payload));
    const error = { error_code: 'INVALID_ARGS', message: ARGUMENT_MESSAGE };
    if (exposure === 'decision') expect(shown).toMatchObject([{ decision: 'DENY' }, {}, {}]);
    if (exposure === 'decision') expect(JSON.stringify(shown)).not.toContain('args.input');
    if (exposure === 'detailed')
      expect(shown.map((one) => (one as { error: unknown }).error)).toEqual([error, error, error]);
    if (exposure !== 'explained') return;
    expect(shown.map((one) => (one as { error: unknown }).error)).toEqual(
      BAD.slice(0, 3).map(([, explanation]) => ({ ...error, explanation })),
    );
    expect(await agent.submit(JSON.stringify(proposal('FINISH', { response: 'done' })))).toMatchObject({ error: null });
  });

  test.each(EXPOSURES)('is explained in its trace, without any text of the agent, under %s', async (exposure) => {
    const { turnpike } = await open(exposure, works());
    const agent = await turnpike.startAgent(CASE_AGENT);
    for (const [payload] of BAD) await agent.submit(payload);
    await agent.end();
    const entries = await bench!.entries();
    expect(
      tracesOf(entries)
        .slice(0, 5)
        .map(({ explanation }) => explanation),
    ).toEqual(BAD.slice(0, 5).map(([, explanation]) => explanation));
    expect(JSON.stringify(entries)).not.toContain(CANARY);
    expect(tracesOf(entries).map(({ cause }) => cause)).toEqual([...Array<string>(4).fill('ARGUMENT'), null, 'PATH']);
    expect(findLifecycleFaults(entries)).toEqual([]);
  });

  test('gets a message about paths only if a path is wrong', async () => {
    const { turnpike } = await open('detailed', works());
    const agent = await turnpike.startAgent(CASE_AGENT);
    for (const [payload, , message] of BAD) {
      const { error } = (await agent.submit(payload)) as unknown as { readonly error: { readonly message: string } };
      if (message === null) expect(error.message).not.toContain('/sandbox/');
      else if (typeof message === 'string') expect(error.message).toBe(message);
      else expect(error.message).toMatch(message);
    }
  });

  test('gives the same bytes for the same inputs, and the recorded response for the same input id', async () => {
    const { turnpike } = await open('explained', works());
    const agent = await turnpike.startAgent(CASE_AGENT);
    const first = await agent.respond(BAD[0][0], { inputId: 'one' });
    expect(first).toContain('"explanation":"args.input.amount: must be <= 100"');
    expect(await agent.respond(BAD[0][0], { inputId: 'one' })).toBe(first);
  });

  test('is logged with its field and constraint', async () => {
    const lines: unknown[] = [];
    const log: Log = { info: (...line) => lines.push(line), warn: () => undefined, error: () => undefined };
    const { turnpike } = await open('detailed', works(), { log });
    const agent = await turnpike.startAgent(CASE_AGENT);
    await agent.submit(BAD[0][0]);
    expect(lines).toContainEqual([
      'a proposal does not match its schema',
      {
        run_id: agent.run_id,
        step_index: 1,
        error_code: 'INVALID_ARGS',
        rule_id: 'args.tool_input',
        explanation: 'args.input.amount: must be <= 100',
      },
    ]);
  });

  test('a caller cannot ask for more than the policy shows', async () => {
    const { turnpike } = await open('detailed', works());
    const agent = await turnpike.startAgent({ ...CASE_AGENT, exposure: 'explained' });
    expect(await agent.submit(BAD[0][0])).not.toHaveProperty('error.explanation');
    const other = await turnpike.startAgent({ ...CASE_AGENT, exposure: 'decision' });
    expect(await other.submit(BAD[0][0])).toHaveProperty('decision', 'DENY');
  });
});

describe('C94: the words of a tool about its failure', () => {
  const THROWN = [
    ['NOT_EXECUTED', () => new ActionNotExecutedError('The account of Zwingli is closed.')],
    ['REFUSED', () => new ActionNotExecutedError('The account of Zwingli is closed.', { retryable: false })],
    ['FAILED', () => new ActionFailedError('The account of Zwingli is closed.')],
    ['FAILED_FOR_NOW', () => new ActionFailedError('The account of Zwingli is closed.', { retryable: true })],
  ] as const;

  test.each(THROWN)(
    '%s: reach an agent under `explained`, byte for byte again after a restart',
    async (cause, error) => {
      const made = refundTool(error);
      const { turnpike } = await open('explained', made);
      const agent = await turnpike.startAgent({ ...CASE_AGENT, link: 'remote' });
      const payload = call({ amount: 5 });
      const response = await agent.respond(payload, { inputId: 'one' });
      expect(JSON.parse(response)).toMatchObject({
        outcome: 'EXECUTION_ERROR',
        error: { error_code: 'EXECUTION_ERROR', explanation: 'The account of Zwingli is closed.' },
      });
      const entries = await bench!.entries();
      expect(JSON.stringify(entries)).not.toContain('Zwingli');
      expect(tracesOf(entries)).toMatchObject([
        { cause, explanation_ref: { artifact_kind: 'explanation', scope: 'case' } },
      ]);
      await turnpike.close();
      bench = await Bench.reopen(bench!, { edit: edited('explained'), tools: [made.tool] });
      const resumed = (await bench.turnpike.agent(agent.run_id))!;
      expect(await resumed.respond(payload, { inputId: 'one' })).toBe(response);
      expect(made.keys).toHaveLength(1);
    },
  );

  test.each(['detailed', 'decision'] as const)('are not recorded under `%s`', async (exposure) => {
    const { turnpike } = await open(exposure, refundTool(THROWN[2][1]));
    const agent = await turnpike.startAgent(CASE_AGENT);
    expect(await agent.respond(call({ amount: 5 }))).not.toContain('Zwingli');
    expect(JSON.stringify(await bench!.entries())).not.toContain('"explanation');
  });

  test('an ordinary error has no words for the agent', async () => {
    const { turnpike } = await open(
      'explained',
      refundTool(() => new Error('at /srv/secret.js:1')),
    );
    const agent = await turnpike.startAgent(CASE_AGENT);
    expect(await agent.submit(call({ amount: 5 }))).toMatchObject({ error: { explanation: null } });
    expect(JSON.stringify(await bench!.entries())).not.toContain('"explanation_ref"');
  });

  test('are bounded, and well-formed', async () => {
    const { turnpike } = await open(
      'explained',
      refundTool(() => new ActionFailedError(`\ud800${'é'.repeat(9_000)}`)),
    );
    const agent = await turnpike.startAgent(CASE_AGENT);
    const { error } = (await agent.submit(call({ amount: 5 }))) as unknown as { error: { explanation: string } };
    expect(error.explanation).toHaveLength(2_000);
    expect(error.explanation.startsWith('\ufffdé')).toBe(true);
  });

  test('come from the last attempt alone', async () => {
    const made = refundTool(
      (_context, attempt) =>
        attempt === 1 ? new ActionNotExecutedError('The first.') : new ActionFailedError('The second.'),
      { idempotent: true },
    );
    const retry = (text: string): string => text.replace('\nknobs:', '\nretries: { max: 1, backoff_ms: 0 }\n\nknobs:');
    const { turnpike, clock } = await open('explained', made, { edit: edited('explained', retry) });
    const agent = await turnpike.startAgent(CASE_AGENT);
    const pending = agent.submit(call({ amount: 5 }));
    while (made.keys.length < 2) {
      clock.advance(10);
      await new Promise(setImmediate);
    }
    expect(await pending).toMatchObject({ error: { explanation: 'The second.' } });
    expect(new Set(made.keys).size).toBe(1);
  });

  test('are content of the case: erased with it, and part of the label of the run', async () => {
    const { turnpike } = await open('explained', refundTool(THROWN[2][1]));
    const agent = await turnpike.startAgent(CASE_AGENT);
    await agent.submit(call({ amount: 5 }));
    await agent.submit(call({ amount: 6 }));
    const labels = (await bench!.entries()).flatMap((entry) =>
      entry.type === 'run_created' && entry.body.run_kind === 'tool_gateway' ? [entry.body.label?.flags] : [],
    );
    expect(labels).toEqual([[], ['contains_pii']]);
    await agent.end();
    await turnpike.erase({ case: 'case-local', actor: 'anna' });
    expect(await turnpike.ledger.verify()).toMatchObject({ verdict: 'by_hash_alone' });
  });
});

describe('C95: an idempotent tool that throws an ordinary error', () => {
  const flaky = (failures: number) =>
    refundTool((_context, attempt) => (attempt <= failures ? new TypeError('fetch failed') : null), {
      idempotent: true,
    });
  const retry = (text: string): string => text.replace('\nknobs:', '\nretries: { max: 2, backoff_ms: 5 }\n\nknobs:');

  test('is retried under the same key, as the policy says', async () => {
    const made = flaky(2);
    const { turnpike, clock } = await open('detailed', made, { edit: edited('detailed', retry) });
    const agent = await turnpike.startAgent(CASE_AGENT);
    const pending = agent.submit(call({ amount: 5 }));
    while (made.keys.length < 3) {
      clock.advance(20);
      await new Promise(setImmediate);
    }
    expect(await pending).toMatchObject({ outcome: 'SUCCESS' });
    expect(new Set(made.keys)).toEqual(new Set([`${agent.run_id}.1`]));
    expect(await turnpike.ledger.run(`${agent.run_id}.1`)).toMatchObject({
      status: 'failed',
      error: { error_code: 'REPEATABLE', retryable: true },
    });
  });

  test('fails without an unknown outcome, and the same request has the same key until it succeeds', async () => {
    const made = flaky(2);
    const { turnpike } = await open('detailed', made);
    const agent = await turnpike.startAgent({ ...CASE_AGENT, link: 'remote' });
    const failed = { outcome: 'EXECUTION_ERROR', error: { message: 'The action failed, and can be repeated' } };
    expect(await agent.submit(call({ amount: 5 }))).toMatchObject(failed);
    // The key outlives the process.
    await turnpike.close();
    bench = await Bench.reopen(bench!, { edit: edited('detailed'), tools: [made.tool] });
    const resumed = (await bench.turnpike.agent(agent.run_id))!;
    expect(await resumed.submit(call({ amount: 5 }))).toMatchObject(failed);
    expect(await resumed.submit(call({ amount: 6 }))).toMatchObject({ outcome: 'SUCCESS' });
    expect(await resumed.submit(call({ amount: 5 }))).toMatchObject({ outcome: 'SUCCESS' });
    expect(await resumed.submit(call({ amount: 5 }))).toMatchObject({ outcome: 'SUCCESS' });
    const run = (ordinal: number): string => `${agent.run_id}.${ordinal}`;
    expect(made.keys).toEqual([run(1), run(1), run(3), run(1), run(5)]);
    await resumed.end();
    const entries = await bench.entries();
    expect(tracesOf(entries).map(({ cause }) => cause)).toEqual(['REPEATABLE', 'REPEATABLE', null, null, null]);
    expect(findLifecycleFaults(entries)).toEqual([]);
  });

  test('a tool that is not idempotent leaves an unknown outcome, and the same request is denied', async () => {
    const made = refundTool(() => new TypeError('fetch failed'));
    const { turnpike } = await open('detailed', made, { edit: edited('detailed', retry) });
    const agent = await turnpike.startAgent(CASE_AGENT);
    expect(await agent.submit(call({ amount: 5 }))).toMatchObject({
      error: { message: 'It is not known whether the action happened' },
    });
    expect(await agent.submit(call({ amount: 5 }))).toMatchObject({ outcome: 'DENIED' });
    expect(made.keys).toHaveLength(1);
    const causes = tracesOf(await bench!.entries()).map(({ cause }) => cause);
    expect(causes).toEqual(['OUTCOME_UNKNOWN', 'UNSETTLED']);
  });

  test('that times out or answers nonsense still has an unknown outcome', async () => {
    const closedTool = defineTool({
      name: 'billing.charge',
      input: Type.Object({ amount: Type.Integer() }, closed),
      output: Type.Object({ done: Type.Boolean() }, closed),
      idempotent: true,
      run: () => ({ done: 'perhaps' }) as unknown as { done: boolean },
    });
    bench = await Bench.open({ edit: edited('detailed'), tools: [closedTool] });
    const agent = await bench.turnpike.startAgent(CASE_AGENT);
    expect(await agent.submit(call({ amount: 5 }))).toMatchObject({
      error: { message: 'It is not known whether the action happened' },
    });
  });

  test('with a reconcile hook is asked first', async () => {
    const tool = defineTool({
      name: 'billing.charge',
      input: Type.Object({ amount: Type.Integer() }, closed),
      output: Type.Object({ done: Type.Boolean() }, closed),
      idempotent: true,
      run: () => {
        throw new TypeError('fetch failed');
      },
      reconcile: ({ amount }) => (amount === 1 ? { done: { done: true } } : amount === 2 ? 'not_executed' : 'unknown'),
    });
    bench = await Bench.open({ edit: edited('detailed'), tools: [tool] });
    const agent = await bench.turnpike.startAgent(CASE_AGENT);
    expect(await agent.submit(call({ amount: 1 }))).toMatchObject({ outcome: 'SUCCESS', result: { done: true } });
    for (const amount of [2, 3]) await agent.submit(call({ amount }));
    expect(tracesOf(await bench.entries()).map(({ cause }) => cause)).toEqual([null, 'INTERRUPTED', 'REPEATABLE']);
  });
});
