// governTools of LangChain and LangGraph.js.

import { tool } from '@langchain/core/tools';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { governTools } from '../../../src/interfaces/sdk/langchain.js';
import { langchainDriver } from './langchain-driver.js';
import { testGovernedTools, testRepeatedIds } from './govern-tools.js';
import { call, SCHEMAS, SdkBench, type SdkDriver } from './sdk-scenarios.js';

// A ToolNode drops a call whose id has an answer in its messages, so no governed tool sees such a call.
testGovernedTools('LangGraph.js', langchainDriver, { asksItself: false, repeatsIds: false });

/** A loop of one's own, with or without the numbers of steps that a graph gives. */
const directDriver =
  (hasSteps: boolean): SdkDriver =>
  (world) => {
    const governed = governTools([tool(world.note, { name: 'note', description: 'n', schema: SCHEMAS.note })]);
    return {
      definitions: governed.definitions,
      converse: (of) => {
        const [note] = governed.for(of);
        if (note === undefined) throw new Error('no tool');
        let step = 0;
        return {
          ask: async (calls) => {
            step += 1;
            const results: Record<string, unknown> = {};
            for (const { id, tool: name, input } of calls)
              results[id] = await note
                .invoke({ type: 'tool_call', id, name, args: { ...input } } as never, {
                  metadata: hasSteps ? { langgraph_step: step } : {},
                })
                .then(
                  ({ content }: { readonly content: unknown }) => JSON.parse(String(content)) as unknown,
                  (error: unknown) => `error: ${String(error)}`,
                );
            return { results, pending: [] };
          },
          resume: () => Promise.reject(new Error('nothing waits')),
          state: () => Promise.resolve(''),
        };
      },
    };
  };

describe.each([true, false])('0078: tools of LangChain, with numbers of steps: %s', (hasSteps) => {
  let sdk: SdkBench;
  beforeEach(() => {
    sdk = new SdkBench(directDriver(hasSteps));
  });
  afterEach(() => sdk.close());

  testRepeatedIds(() => sdk);

  test('an equal call of the next answer is executed if it has another place, else refused and recorded', async () => {
    const conversation = await sdk.open();
    await conversation.ask([call('call_0', 'note', { text: 'a' })]);
    const { results } = await conversation.ask([call('call_0', 'note', { text: 'a' })]);
    expect(results['call_0']).toEqual(hasSteps ? { noted: 'a' } : expect.stringMatching(/not executed/));
    expect(sdk.world.effects).toHaveLength(hasSteps ? 2 : 1);
    expect((await sdk.shape()).at(-1)).toBe(hasSteps ? 'step SUCCESS' : 'step VALIDATION_ERROR');
  });
});
