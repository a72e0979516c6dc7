// The AI SDK 6 with its own scripted model.

import { generateText, simulateReadableStream, stepCountIs, streamText, tool, type ModelMessage } from 'ai';
import { MockLanguageModelV3 } from 'ai/test';
import { governTools } from '../../../src/interfaces/sdk/ai-sdk.js';
import { SCHEMAS, type Asked, type Conversation, type ModelCall, type SdkDriver } from './sdk-scenarios.js';

const USAGE = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

/** The calls first, and then a text. */
function modelOf(calls: readonly ModelCall[]): MockLanguageModelV3 {
  let turn = 0;
  const content = (): Content[] =>
    (turn += 1) === 1 && calls.length > 0
      ? calls.map(({ id, tool: toolName, input }) => ({
          ...{ type: 'tool-call' as const, toolCallId: id, toolName },
          input: JSON.stringify(input),
        }))
      : [{ type: 'text' as const, text: 'done' }];
  const finishOf = (parts: readonly { readonly type: string }[]) =>
    parts[0]?.type === 'tool-call'
      ? { unified: 'tool-calls' as const, raw: 'tool-calls' }
      : { unified: 'stop' as const, raw: 'stop' };
  return new MockLanguageModelV3({
    doGenerate: () => {
      const parts = content();
      return Promise.resolve({ content: parts, finishReason: finishOf(parts), usage: USAGE, warnings: [] });
    },
    doStream: () => {
      const parts = content();
      const chunks: LanguageModelV3StreamPart[] = parts.flatMap(chunksOf);
      chunks.push({ type: 'finish', finishReason: finishOf(parts), usage: USAGE });
      return Promise.resolve({ stream: simulateReadableStream({ chunks }) });
    },
  });
}

type Streamed = Awaited<ReturnType<MockLanguageModelV3['doStream']>>['stream'];
type LanguageModelV3StreamPart = Streamed extends ReadableStream<infer PART> ? PART : never;
type Content = Awaited<ReturnType<MockLanguageModelV3['doGenerate']>>['content'][number];

const chunksOf = (part: Content): LanguageModelV3StreamPart[] =>
  part.type !== 'text'
    ? [part as LanguageModelV3StreamPart]
    : [
        { type: 'text-start', id: 't' },
        { type: 'text-delta', id: 't', delta: part.text },
        { type: 'text-end', id: 't' },
      ];

export const aiSdkDriver: SdkDriver = async (world) => {
  const tools = {
    note: tool({ description: 'Takes a note.', inputSchema: SCHEMAS.note, execute: world.note }),
    pay: tool({ description: 'Pays.', inputSchema: SCHEMAS.pay, execute: world.pay }),
    fail: tool({ inputSchema: SCHEMAS.fail, execute: world.fail }),
    hang: tool({ inputSchema: SCHEMAS.hang, execute: world.hang }),
    hidden: tool({ inputSchema: SCHEMAS.hidden, execute: world.note }),
    asking: tool({ inputSchema: SCHEMAS.asking, execute: world.note, needsApproval: ({ text }) => text !== '' }),
  };
  const governed = await governTools(tools, { pay: { outside: false } });
  return {
    definitions: governed.definitions,
    converse: (of, state): Conversation => {
      const governedTools = governed.for(of);
      let messages = (state === undefined ? [] : JSON.parse(state)) as ModelMessage[];
      const common = { tools: governedTools, stopWhen: stepCountIs(4) };
      const run = async (calls: readonly ModelCall[], streaming: boolean): Promise<Asked> => {
        const settings = { ...common, model: modelOf(calls), messages };
        if (streaming) {
          const streamed = streamText(settings);
          await streamed.consumeStream();
          messages = [...messages, ...(await messagesOf(streamed))];
        } else messages = [...messages, ...(await messagesOf(await generateText(settings)))];
        return askedIn(messages);
      };
      return {
        ask: (calls, streaming = false) => {
          messages = [...messages, { role: 'user', content: 'do it' }];
          return run(calls, streaming);
        },
        resume: (approved) => {
          const approvals = messages.flatMap(({ content }) =>
            typeof content === 'string'
              ? []
              : content.flatMap((part) => (part.type === 'tool-approval-request' ? [part] : [])),
          );
          const content = approvals.map(({ approvalId }) => ({
            ...{ type: 'tool-approval-response' as const, approvalId, approved },
          }));
          messages = [...messages, { role: 'tool', content }];
          return run([], false);
        },
        state: () => Promise.resolve(JSON.stringify(messages)),
      };
    },
  };
};

/** Version 6 has the messages of all steps in `response`, and version 7 outside of it. */
async function messagesOf(result: {
  readonly response: PromiseLike<{ readonly messages: ModelMessage[] }> | { readonly messages: ModelMessage[] };
  readonly responseMessages?: PromiseLike<ModelMessage[]> | ModelMessage[];
}): Promise<ModelMessage[]> {
  return (await result.responseMessages) ?? (await result.response).messages;
}

function askedIn(messages: readonly ModelMessage[]): Asked {
  const parts = messages.flatMap(({ content }) => (typeof content === 'string' ? [] : [...content]));
  const results: Record<string, unknown> = {};
  for (const part of parts) if (part.type === 'tool-result') results[part.toolCallId] = valueOf(part.output);
  const asking = parts.flatMap((part) => (part.type === 'tool-approval-request' ? [part.toolCallId] : []));
  return { results, pending: asking.filter((id) => !(id in results)) };
}

const valueOf = (output: { readonly type: string; readonly value?: unknown }): unknown =>
  output.type === 'json' || output.type === 'text' ? output.value : `error: ${String(output.value)}`;
