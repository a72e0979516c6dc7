// Mastra with a scripted model and its own storage.

import { governTools, type MastraToolLike } from '../../../../src/interfaces/sdk/mastra.js';
import {
  SCHEMAS,
  type Asked,
  type Conversation,
  type ModelCall,
  type SdkDriver,
  type ToolName,
} from '../sdk-scenarios.js';
import { loadPackage } from './load-package.js';

interface Result {
  readonly finishReason: string | undefined;
  readonly suspendPayload?: { readonly toolCallId?: string };
}
/** Of a prompt. */
interface Message {
  readonly role: string;
  readonly content: readonly {
    readonly type: string;
    readonly toolCallId?: string;
    readonly output?: { readonly type: string; readonly value?: unknown };
  }[];
}
interface Called {
  readonly prompt: readonly Message[];
}
interface Agent {
  generate(prompt: string, options: object): Promise<Result>;
  stream(prompt: string, options: object): Promise<{ getFullOutput(): Promise<Result> }>;
  approveToolCallGenerate(of: object): Promise<Result>;
  declineToolCallGenerate(of: object): Promise<Result>;
}
const { createTool } = (await loadPackage('@mastra/core/dist/tools/index.js')) as {
  createTool: (options: object) => MastraToolLike;
};
const agents = (await loadPackage('@mastra/core/dist/agent/index.js')) as { Agent: new (options: object) => object };
const { Mastra } = (await loadPackage('@mastra/core/dist/mastra/index.js')) as {
  Mastra: new (options: object) => { getAgent(name: string): Agent };
};
const { InMemoryStore } = (await loadPackage('@mastra/core/dist/storage/index.js')) as {
  InMemoryStore: new () => object;
};

const RUN = { runId: 'chat-1' };
/** The database of the application is there when the next process begins. */
const storages = new Map<string, object>();

/** A model that makes its calls first, and then ends. It keeps what it gets to know of them. */
class ScriptedModel {
  readonly specificationVersion = 'v3';
  readonly provider = 'scripted';
  readonly modelId = 'm';
  readonly supportedUrls = {};
  calls: readonly ModelCall[] = [];
  readonly results: Record<string, unknown> = {};

  doGenerate = (called: Called): Promise<object> => Promise.resolve({ ...this.#answer(called), warnings: [] });

  doStream = (called: Called): Promise<object> => {
    const { content, ...end } = this.#answer(called);
    const parts = content.flatMap((part): object[] => ('text' in part ? textChunks(part.text) : [part]));
    const chunks = [{ type: 'stream-start', warnings: [] }, ...parts, { type: 'finish', ...end }];
    return Promise.resolve({ stream: ReadableStream.from(chunks) });
  };

  #answer({ prompt }: Called) {
    for (const { content } of prompt.filter(({ role }) => role === 'tool'))
      for (const { toolCallId, output } of content)
        if (toolCallId !== undefined) this.results[toolCallId] = valueOf(output);
    const isAnswered = prompt.some(({ role }) => role === 'tool') || this.calls.length === 0;
    const content = isAnswered
      ? [{ type: 'text', text: 'done' }]
      : this.calls.map(({ id, tool, input }) => ({
          ...{ type: 'tool-call', toolCallId: id, toolName: tool },
          input: JSON.stringify(input),
        }));
    const unified = isAnswered ? 'stop' : 'tool-calls';
    const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
    return { content, finishReason: { unified, raw: unified }, usage };
  }
}

const textChunks = (text: string): object[] => [
  { type: 'text-start', id: 't' },
  { type: 'text-delta', id: 't', delta: text },
  { type: 'text-end', id: 't' },
];

const valueOf = (output: Message['content'][number]['output']): unknown =>
  output?.type === 'json' ? output.value : `error: ${String(output?.value)}`;

export const mastraDriver: SdkDriver = (world) => {
  const toolOf = (id: ToolName, execute: (input: never) => unknown, more = {}): MastraToolLike =>
    createTool({
      ...more,
      id,
      description: id,
      inputSchema: SCHEMAS[id],
      execute: (input: never) => Promise.resolve(input).then(execute),
    });
  const tools = {
    note: toolOf('note', world.note),
    pay: toolOf('pay', world.pay),
    fail: toolOf('fail', world.fail),
    hang: toolOf('hang', world.hang),
    hidden: toolOf('hidden', world.note),
    asking: toolOf('asking', world.note, { requireApproval: true }),
  };
  const governed = governTools(tools, { pay: { outside: false } });
  return {
    definitions: governed.definitions,
    converse: (of, state = of.run.run_id + String(storages.size)): Conversation => {
      const model = new ScriptedModel();
      const storage = storages.get(state) ?? new InMemoryStore();
      storages.set(state, storage);
      const options = { id: 'a', name: 'a', instructions: 'x', model, tools: governed.for(of) };
      const agent = new Mastra({ storage, logger: false, agents: { a: new agents.Agent(options) } }).getAgent('a');
      const askedIn = ({ finishReason, suspendPayload }: Result): Asked => ({
        results: { ...model.results },
        pending: finishReason === 'suspended' ? [suspendPayload?.toolCallId ?? ''] : [],
      });
      return {
        ask: async (calls, streaming = false) => {
          model.calls = calls;
          if (!streaming) return askedIn(await agent.generate('do it', RUN));
          return askedIn(await (await agent.stream('do it', RUN)).getFullOutput());
        },
        resume: async (approved) => {
          const of = { ...RUN, toolCallId: 'c1' };
          return askedIn(approved ? await agent.approveToolCallGenerate(of) : await agent.declineToolCallGenerate(of));
        },
        state: () => Promise.resolve(state),
      };
    },
  };
};
