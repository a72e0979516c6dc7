// The scenarios, for the suite of each SDK.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { call, SdkBench, type SdkDriver } from './sdk-scenarios.js';

const AGENT = ['created orchestrator', 'created agent'];
const EXPIRY_MS = 61 * 60_000;

/**
 * Runs every scenario with one SDK.
 * @param asksItself whether a tool of the SDK may want an approval of its own
 * @param repeatsIds whether the SDK calls a tool again whose call has the id of an answered one
 */
export function testGovernedTools(
  name: string,
  driver: SdkDriver,
  { asksItself = true, repeatsIds = true } = {},
): void {
  describe(`0066: tools of ${name}`, () => {
    let sdk: SdkBench;
    beforeEach(() => {
      sdk = new SdkBench(driver);
    });
    afterEach(() => sdk.close());

    test('an allowed call runs, and its output is that of the tool', async () => {
      const asked = await (await sdk.open()).ask([call('c1', 'note', { text: 'a' })]);
      expect(asked).toEqual({ results: { c1: { noted: 'a' } }, pending: [] });
      expect(sdk.world.effects).toEqual(['note a']);
      expect(await sdk.shape()).toEqual([...AGENT, 'created tool_gateway', 'tool success', 'step SUCCESS']);
    });

    test('a call that no lane allows does not run', async () => {
      const { results } = await (await sdk.open()).ask([call('c1', 'hidden', { text: 'a' })]);
      expect(results).toEqual({ c1: expect.stringMatching(/^error: .*POLICY_VIOLATION/) });
      expect(sdk.world.effects).toEqual([]);
      expect((await sdk.shape()).at(-1)).toBe('step DENIED');
    });

    test('invalid arguments are refused and recorded', async () => {
      const { results } = await (await sdk.open()).ask([call('c1', 'note', { text: 5 })]);
      expect(results).toEqual({ c1: expect.stringMatching(/^error: /) });
      expect(sdk.world.effects).toEqual([]);
      expect(await sdk.shape()).toEqual([...AGENT, 'step VALIDATION_ERROR']);
    });

    test.each([
      ['a lone surrogate', { text: '\ud800' }],
      ['text for an object', 'text'],
    ])('input that no schema can accept does not run: %s', async (_, input) => {
      const { results, pending } = await (await sdk.open()).ask([call('c1', 'note', input as object)]);
      // Of input that is no object, the OpenAI Agents SDK asks the application before it asks the tool.
      if (!pending.includes('c1')) expect(results).toEqual({ c1: expect.stringMatching(/^error: /) });
      expect(sdk.world.effects).toEqual([]);
    });

    test('the calls of a run that has ended are denied', async () => {
      const conversation = await sdk.open();
      await sdk.end();
      const { results } = await conversation.ask([call('c1', 'note', { text: 'a' })]);
      expect(results).toEqual({ c1: expect.stringMatching(/^error: .*has ended/) });
      const paid = await conversation.ask([call('c2', 'pay', { amount: 1 })]);
      expect(paid.results['c2']).toMatch(/^error: .*has ended/);
      expect(sdk.world.effects).toEqual([]);
    });

    test('a tool that throws has an unknown outcome', async () => {
      const { results } = await (await sdk.open()).ask([call('c1', 'fail')]);
      expect(results).toEqual({ c1: expect.stringMatching(/^error: /) });
      expect(sdk.world.effects).toEqual(['fail']);
      expect(await sdk.shape()).toEqual([...AGENT, 'created tool_gateway', 'tool failure', 'step EXECUTION_ERROR']);
    });

    test('a tool that exceeds its time has an unknown outcome', async () => {
      const conversation = await sdk.open();
      sdk.world.onHang = () => setImmediate(() => sdk.bench.clock.advance(60_000));
      const { results } = await conversation.ask([call('c1', 'hang')]);
      expect(results).toEqual({ c1: expect.stringMatching(/^error: /) });
      expect(await sdk.shape()).toEqual([...AGENT, 'created tool_gateway', 'tool failure', 'step EXECUTION_ERROR']);
    });

    const PAYMENT = [call('c1', 'pay', { amount: 5 })];

    test('a call that needs an approval is one for the SDK, and runs after the vote', async () => {
      const conversation = await sdk.open();
      expect(await conversation.ask(PAYMENT)).toEqual({ results: {}, pending: ['c1'] });
      expect(sdk.world.effects).toEqual([]);
      await sdk.vote('approve');
      expect(await conversation.resume(true)).toEqual({ results: { c1: { paid: 5 } }, pending: [] });
      expect(sdk.world.effects).toEqual(['pay 5']);
      expect((await sdk.shape()).slice(-4)).toEqual([
        'step DENIED',
        'created tool_gateway',
        'tool success',
        'step SUCCESS',
      ]);
    });

    if (asksItself)
      test('a call for which the tool itself wants an approval waits for it', async () => {
        const conversation = await sdk.open();
        expect(await conversation.ask([call('c1', 'asking', { text: 'a' })])).toEqual({ results: {}, pending: ['c1'] });
        expect(sdk.world.effects).toEqual([]);
        expect(await conversation.resume(true)).toEqual({ results: { c1: { noted: 'a' } }, pending: [] });
        expect(sdk.world.effects).toEqual(['note a']);
      });

    test("the SDK's own approval does not replace the vote", async () => {
      const conversation = await sdk.open();
      await conversation.ask(PAYMENT);
      const { results } = await conversation.resume(true);
      expect(results['c1'] ?? 'error: ').toMatch(/^error: /);
      expect(sdk.world.effects).toEqual([]);
    });

    test.each(['rejected', 'expired'])('a call whose approval was %s does not run', async (end) => {
      const conversation = await sdk.open();
      await conversation.ask(PAYMENT);
      if (end === 'rejected') await sdk.vote('reject');
      else sdk.bench.clock.advance(EXPIRY_MS);
      const { results } = await conversation.resume(true);
      // Mastra does not say which call it asks about, so its call makes a new request for the expired one.
      expect(results).toEqual({ c1: expect.stringMatching(/^error: .*(?:POLICY_VIOLATION|approval pending)/) });
      expect(sdk.world.effects).toEqual([]);
    });

    test('a request survives the process, and its call runs once in another one', async () => {
      const first = await sdk.open();
      await first.ask(PAYMENT);
      const second = await sdk.open(await first.state());
      await sdk.vote('approve');
      expect(await second.resume(true)).toEqual({ results: { c1: { paid: 5 } }, pending: [] });
      // Mastra refuses to resume what has ended; the others execute the call again, as they believe.
      const again = await (await sdk.open(await first.state())).resume(true).catch(() => null);
      if (again !== null) expect(again).toEqual({ results: { c1: { paid: 5 } }, pending: [] });
      expect(sdk.world.effects).toEqual(['pay 5']);
    });

    test('a call that is repeated after its effect returns the same, and does not run again', async () => {
      await (await sdk.open()).ask([call('c1', 'note', { text: 'a' })]);
      const again = await (await sdk.open()).ask([call('c1', 'note', { text: 'a' })]);
      expect(again.results).toEqual({ c1: { noted: 'a' } });
      expect(sdk.world.effects).toEqual(['note a']);
      expect((await sdk.shape()).filter((entry) => entry.startsWith('step'))).toEqual(['step SUCCESS']);
    });

    if (repeatsIds) testRepeatedIds(() => sdk);

    test('parallel calls each have their output', async () => {
      const numbers = [0, 1, 2, 3, 4, 5, 6, 7];
      const { results } = await (
        await sdk.open()
      ).ask(numbers.map((n) => call(`c${n}`, 'note', { text: `n${n % 4}` })));
      expect(results).toEqual(Object.fromEntries(numbers.map((n) => [`c${n}`, { noted: `n${n % 4}` }])));
      expect(sdk.world.effects).toHaveLength(8);
    });

    test('a model that streams calls in the same way', async () => {
      const { results } = await (await sdk.open()).ask([call('c1', 'note', { text: 'a' })], true);
      expect(results).toEqual({ c1: { noted: 'a' } });
      expect(await sdk.shape()).toEqual([...AGENT, 'created tool_gateway', 'tool success', 'step SUCCESS']);
    });
  });
}

/** 0078: the scenario of a model service that numbers the calls of each answer. */
export function testRepeatedIds(sdk: () => SdkBench): void {
  test('a service that numbers the calls of each answer: no call gets the output of another one', async () => {
    const conversation = await sdk().open();
    const first = await conversation.ask([call('call_0', 'note', { text: 'a' })]);
    expect(first.results).toEqual({ call_0: { noted: 'a' } });
    const second = await conversation.ask([call('call_0', 'note', { text: 'b' })]);
    expect(second.results).toEqual({ call_0: { noted: 'b' } });
    // An equal call of a later answer: executed where the SDK says where it is, else refused. Both are recorded.
    const third = await conversation.ask([call('call_0', 'note', { text: 'a' })]);
    const isRefused = String(third.results['call_0']).startsWith('error: ');
    if (!isRefused) expect(third.results).toEqual({ call_0: { noted: 'a' } });
    expect(sdk().world.effects).toEqual(isRefused ? ['note a', 'note b'] : ['note a', 'note b', 'note a']);
    expect((await sdk().shape()).filter((entry) => entry.startsWith('step'))).toHaveLength(3);
    // Another process with the same messages executes nothing of that again.
    const again = await (await sdk().open()).ask([call('call_0', 'note', { text: 'a' })]);
    expect(again.results).toEqual({ call_0: { noted: 'a' } });
    expect(sdk().world.effects.slice(3)).toEqual([]);
  });
}
