// LangGraph.js with a model that is a function of the messages, a real ToolNode, and a checkpointer.

import { AIMessage, ToolMessage, type BaseMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import {
  Command,
  END,
  INTERRUPT,
  isInterrupted,
  MemorySaver,
  MessagesAnnotation,
  START,
  StateGraph,
} from '@langchain/langgraph';
import { ToolNode } from '@langchain/langgraph/prebuilt';
import { governTools } from '../../../src/interfaces/sdk/langchain.js';
import { SCHEMAS, type Asked, type Conversation, type ModelCall, type SdkDriver } from './sdk-scenarios.js';

const THREAD = { configurable: { thread_id: 'chat-1' } };

export const langchainDriver: SdkDriver = (world) => {
  const tools = [
    tool(world.note, { name: 'note', description: 'Takes a note.', schema: SCHEMAS.note }),
    tool(world.pay, { name: 'pay', description: 'Pays.', schema: SCHEMAS.pay }),
    tool(world.fail, { name: 'fail', description: 'Fails.', schema: SCHEMAS.fail }),
    tool(world.hang, { name: 'hang', description: 'Hangs.', schema: SCHEMAS.hang }),
    tool(world.note, { name: 'hidden', description: 'Hidden.', schema: SCHEMAS.hidden }),
    tool(world.note, { name: 'asking', description: 'Asks.', schema: SCHEMAS.asking }),
  ] as const;
  const governed = governTools(tools, { pay: { outside: false } });
  return {
    definitions: governed.definitions,
    converse: (of, state): Conversation => {
      const saver = new MemorySaver();
      if (state !== undefined) restore(saver, state);
      let calls: readonly ModelCall[] = [];
      const graph = new StateGraph(MessagesAnnotation)
        .addNode('model', ({ messages }) => {
          const isFirst = messages.at(-1)?.type === 'human';
          const tool_calls = calls.map(({ id, tool: name, input }) => ({ id, name, args: { ...input } }));
          return { messages: [new AIMessage(isFirst ? { content: '', tool_calls } : 'done')] };
        })
        .addNode('tools', new ToolNode([...governed.for(of)]))
        .addEdge(START, 'model')
        .addConditionalEdges('model', ({ messages }) => {
          const last = messages.at(-1);
          return last !== undefined && AIMessage.isInstance(last) && (last.tool_calls ?? []).length > 0 ? 'tools' : END;
        })
        .addEdge('tools', 'model')
        .compile({ checkpointer: saver });
      const asked = (out: { readonly messages: readonly BaseMessage[] }): Asked => ({
        results: Object.fromEntries(
          out.messages
            .filter((message) => ToolMessage.isInstance(message))
            .map((message) => [message.tool_call_id, valueOf(message)]),
        ),
        pending: isInterrupted<{ tool_call_id: string }>(out)
          ? out[INTERRUPT].map(({ value }) => value?.tool_call_id ?? '')
          : [],
      });
      return {
        ask: async (given, streaming = false) => {
          calls = given;
          const input = { messages: [{ role: 'user', content: 'do it' }] };
          if (!streaming) return asked(await graph.invoke(input, THREAD));
          let parts = 0;
          for await (const part of await graph.stream(input, { ...THREAD, streamMode: 'updates' }))
            parts += Object.keys(part).length;
          if (parts === 0) throw new Error('nothing was streamed');
          return asked((await graph.getState(THREAD)).values as { messages: BaseMessage[] });
        },
        resume: async (approved) => asked(await graph.invoke(new Command({ resume: { approved } }), THREAD)),
        state: () => Promise.resolve(saved(saver)),
      };
    },
  };
};

function valueOf({ status, content }: { readonly status?: string; readonly content: unknown }): unknown {
  if (status === 'error') return `error: ${String(content)}`;
  return typeof content === 'string' ? (JSON.parse(content) as unknown) : content;
}

const ENCODED = '__bytes';
/** The checkpointer of the package keeps everything in memory; an application has a database. */
function saved({ storage, writes }: MemorySaver): string {
  return JSON.stringify({ storage, writes }, (_key, value: unknown) =>
    value instanceof Uint8Array ? { [ENCODED]: Buffer.from(value).toString('base64') } : value,
  );
}
function restore(saver: MemorySaver, text: string): void {
  const revive = (_key: string, value: unknown): unknown => {
    const bytes = (value as { [ENCODED]?: unknown } | null)?.[ENCODED];
    return typeof bytes === 'string' ? new Uint8Array(Buffer.from(bytes, 'base64')) : value;
  };
  const { storage, writes } = JSON.parse(text, revive) as Pick<MemorySaver, 'storage' | 'writes'>;
  Object.assign(saver, { storage, writes });
}
