// The OpenAI Agents SDK with a scripted model.

import { governTools, type FunctionToolLike } from '../../../../src/interfaces/sdk/openai-agents.js';
import {
  SCHEMAS,
  type Asked,
  type Conversation,
  type ModelCall,
  type SdkDriver,
  type ToolName,
} from '../sdk-scenarios.js';
import { loadPackage } from './load-package.js';

interface Item {
  readonly type: string;
  readonly rawItem: { readonly callId?: string; readonly output?: unknown };
}
interface Result {
  readonly newItems: readonly Item[];
  readonly interruptions: readonly Item[];
  readonly state: { toString(): string; approve(item: Item): void; reject(item: Item): void };
  readonly completed?: Promise<void>;
}
interface Sdk {
  readonly tool: (options: object) => FunctionToolLike;
  readonly run: (agent: object, input: unknown, options?: object) => Promise<Result>;
  readonly Agent: new (options: object) => object;
  readonly RunState: { fromString(agent: object, text: string): Promise<Result['state']> };
  readonly Usage: new (counts: object) => object;
  readonly setTracingDisabled: (disabled: boolean) => void;
}

const sdk = (await loadPackage('@openai/agents/dist/index.mjs')) as Sdk;
sdk.setTracingDisabled(true);

/** The calls first, and then a text. */
function modelOf(calls: () => readonly ModelCall[]): object {
  const outputOf = ({ input }: { readonly input: string | readonly { readonly type?: string }[] }): object[] => {
    const isAnswered = Array.isArray(input) && input.some(({ type }) => type === 'function_call_result');
    if (isAnswered || calls().length === 0)
      return [
        { type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'done' }] },
      ];
    return calls().map(({ id, tool, input: given }) => ({
      ...{ type: 'function_call', callId: id, name: tool, status: 'completed' },
      arguments: JSON.stringify(given),
    }));
  };
  const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2, requests: 1 };
  return {
    getResponse: (request: Parameters<typeof outputOf>[0]) =>
      Promise.resolve({ output: outputOf(request), usage: new sdk.Usage(usage) }),
    async *getStreamedResponse(request: Parameters<typeof outputOf>[0]) {
      await Promise.resolve();
      yield { type: 'response_done', response: { id: 'r', output: outputOf(request), usage } };
    },
  };
}

export const openaiAgentsDriver: SdkDriver = async (world) => {
  const toolOf = (name: ToolName, execute: (input: never) => unknown, more = {}): FunctionToolLike =>
    sdk.tool({ ...more, name, description: name, parameters: SCHEMAS[name], execute, errorFunction: null });
  const tools = [
    toolOf('note', world.note),
    toolOf('pay', world.pay),
    toolOf('fail', world.fail),
    toolOf('hang', world.hang),
    toolOf('hidden', world.note),
    toolOf('asking', world.note, { needsApproval: true }),
  ];
  const governed = await governTools(tools, { pay: { outside: false } });
  return {
    definitions: governed.definitions,
    converse: (of, state): Conversation => {
      let calls: readonly ModelCall[] = [];
      const agent = new sdk.Agent({ name: 'a', model: modelOf(() => calls), tools: governed.for(of) });
      let last: Result | null = null;
      const done = async (running: Promise<Result>): Promise<Asked> => {
        last = await running;
        await last.completed;
        return askedIn(last);
      };
      return {
        ask: (given, stream = false) => {
          calls = given;
          return done(sdk.run(agent, 'do it', { stream }));
        },
        resume: async (approved) => {
          const at = state !== undefined && last === null ? await sdk.RunState.fromString(agent, state) : last?.state;
          if (at === undefined) throw new Error('nothing to resume');
          for (const item of (at as unknown as { getInterruptions(): Item[] }).getInterruptions())
            if (approved) at.approve(item);
            else at.reject(item);
          return done(sdk.run(agent, at));
        },
        state: () => Promise.resolve(last?.state.toString() ?? ''),
      };
    },
  };
};

function askedIn({ newItems, interruptions }: Result): Asked {
  const outputs = newItems.filter(({ type }) => type === 'tool_call_output_item');
  return {
    results: Object.fromEntries(outputs.map(({ rawItem }) => [rawItem.callId ?? '', valueOf(rawItem.output)])),
    pending: interruptions.map(({ rawItem }) => rawItem.callId ?? ''),
  };
}

function valueOf(output: unknown): unknown {
  const { text } = (typeof output === 'object' ? output : { text: output }) as { readonly text?: unknown };
  const said = String(text);
  return said.startsWith('Error: ') ? said.replace('Error', 'error') : (JSON.parse(said) as unknown);
}
