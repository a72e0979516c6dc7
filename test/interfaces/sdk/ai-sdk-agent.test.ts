// The adapter to the AI SDK, against the mock model of the SDK: input, output, errors.

import { afterEach, describe, expect, test } from '@jest/globals';
import { APICallError } from 'ai';
import { MockLanguageModelV3 } from 'ai/test';
import { setImmediate as nextTick } from 'node:timers/promises';
import { aiSdkAgent, type AiSdkAgentOptions } from '../../../src/interfaces/sdk/ai-sdk-agent.js';
import type { AgentTurn } from '../../../src/engine/ports/agent-exchange.js';
import { generated, modelThat, toldIn, type Generated } from '../../fixtures/mock-model.js';

const TURN: AgentTurn = {
  instructions: 'Propose.',
  schemas: {
    ...{ proposal: { type: 'object' }, actions: [], tools: [], targets: [], limits: {}, response: { type: 'object' } },
  },
  task: 'Do it.',
  conversation: [],
  last_response: null,
  fresh_id: '00000000-0000-8000-a000-000000000000',
};
const STILL = new AbortController().signal;

const ask = (options: AiSdkAgentOptions, turn: Partial<AgentTurn> = {}, signal = STILL) =>
  aiSdkAgent({ maxRetries: 0, ...options }).propose({ ...TURN, ...turn }, signal);

const never = (): Promise<never> => new Promise(() => undefined);

type StreamPart =
  Awaited<ReturnType<MockLanguageModelV3['doStream']>>['stream'] extends ReadableStream<infer Part> ? Part : never;

/** A model that streams these parts, each on request. */
const streaming = (parts: Iterable<StreamPart>, more: { onCancel?: () => void } = {}): MockLanguageModelV3 =>
  new MockLanguageModelV3({
    doStream: () => {
      const left = parts[Symbol.iterator]();
      const pull = (controller: ReadableStreamDefaultController<StreamPart>): void => {
        const next = left.next();
        if (next.done === true) controller.close();
        else controller.enqueue(next.value);
      };
      const { onCancel } = more;
      return Promise.resolve({
        stream: new ReadableStream<StreamPart>({ pull, ...(onCancel === undefined ? {} : { cancel: onCancel }) }),
      });
    },
  });

const deltas = (...texts: readonly string[]): StreamPart[] => [
  { type: 'stream-start', warnings: [] },
  { type: 'text-start', id: '1' },
  ...texts.map((delta): StreamPart => ({ type: 'text-delta', id: '1', delta })),
  { type: 'text-end', id: '1' },
  { type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage: generated('').usage },
];

describe('the prompt of the model', () => {
  test('the system text contains instructions and schemas, the task is the first message, the id is in the last one', async () => {
    const model = modelThat(() => '{}');
    await ask({ model });
    const [called] = model.doGenerateCalls;
    const { system, messages } = toldIn(called!);
    expect(system).toBe(`Propose.\n\nThe schemas:\n${JSON.stringify(TURN.schemas)}`);
    expect(messages).toEqual([
      { role: 'user', text: `The task:\nDo it.\n\nAn id for your next proposal: ${TURN.fresh_id}` },
    ]);
  });

  test('the conversation in turns; a gap is named, and an empty proposal gets a text', async () => {
    const model = modelThat(() => '{}');
    const conversation = [
      { proposal: '{"a":1}', response: '{"r":1}', left_out: 0 },
      { proposal: ' \n', response: '{"r":2}', left_out: 3 },
    ];
    await ask({ model }, { conversation, task: null });
    expect(toldIn(model.doGenerateCalls[0]!).messages).toEqual([
      { role: 'user', text: 'Begin.' },
      { role: 'assistant', text: '{"a":1}' },
      { role: 'user', text: '{"r":1}\n\n[3 earlier proposals and responses are left out here]' },
      { role: 'assistant', text: '(nothing)' },
      { role: 'user', text: `{"r":2}\n\nAn id for your next proposal: ${TURN.fresh_id}` },
    ]);
  });

  test.each([false, true])('the settings reach the provider, and no tool does (streamed: %s)', async (stream) => {
    const model = new MockLanguageModelV3({
      doGenerate: generated('{}'),
      doStream: () => streaming(deltas('{}')).doStream({ prompt: [] }),
    });
    const providerOptions = { some: { effort: 'low' } };
    await ask({ model, stream, maxOutputTokens: 99, temperature: 0, topP: 0.5, seed: 7, providerOptions });
    const [called] = [...model.doGenerateCalls, ...model.doStreamCalls];
    expect(called).toMatchObject({ maxOutputTokens: 99, temperature: 0, topP: 0.5, seed: 7, providerOptions });
    expect(called?.tools).toBeUndefined();
    expect(called?.responseFormat?.type ?? 'text').toBe('text');
  });
});

describe('S2-04: the text of the model is proposed unchanged', () => {
  const answers = [
    ...['{"a":1}', '```json\n{"a":1}\n```', '  {"a":1}\n', '', '\u0000', '\ufeff{}', '\u202e{}', '\ud800', '{}{}'],
    '{"__proto__":{}}',
    'é'.repeat(100_000),
  ].map((text) => [text.slice(0, 20), text] as const);

  test.each(answers)('%j', async (_begin, text) => {
    expect(await ask({ model: modelThat(() => text) })).toEqual({ raw: text, tokens: 10 });
  });

  test.each(answers)('%j, streamed', async (_begin, text) => {
    const parts = deltas(...Array.from(text));
    expect(await ask({ model: streaming(parts), stream: true })).toEqual({ raw: text, tokens: 10 });
  });

  test.each<readonly [string, Generated['content'], string]>([
    [
      'reasoning is not part of it',
      [
        { type: 'reasoning', text: 'Hm.' },
        { type: 'text', text: '{}' },
      ],
      '{}',
    ],
    [
      'texts are joined',
      [
        { type: 'text', text: '{"a":' },
        { type: 'text', text: '1}' },
      ],
      '{"a":1}',
    ],
    [
      'a tool call is not part of it, and calls nothing',
      [{ type: 'tool-call', toolCallId: '1', toolName: 'rm', input: '{"path":"/"}' }],
      '',
    ],
    ['a file is not part of it', [{ type: 'file', mediaType: 'text/plain', data: 'e30=' }], ''],
    ['no content at all', [], ''],
  ])('%s', async (_what, content, raw) => {
    const model = modelThat(() => ({ ...generated(''), content }));
    expect(await ask({ model })).toEqual({ raw, tokens: 10 });
    // One call of the provider is one proposal, even if it requests further calls.
    expect(model.doGenerateCalls).toHaveLength(1);
  });
});

describe('token usage', () => {
  const usage = (input: number | undefined, output: number | undefined): Generated['usage'] => ({
    inputTokens: { total: input, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total: output, text: undefined, reasoning: undefined },
  });
  test.each([
    [7, 5, 12],
    [7, undefined, 7],
    [undefined, undefined, null],
    [Number.NaN, 5, null],
    [-9, 5, null],
    [0.5, 0.2, 1],
    [Infinity, 5, Number.MAX_SAFE_INTEGER],
    ['7' as unknown as number, 5, null],
  ])('%p and %p tokens are %p', async (input, output, tokens) => {
    const model = modelThat(() => ({ ...generated('{}'), usage: usage(input, output) }));
    expect(await ask({ model })).toEqual({ raw: '{}', tokens });
  });
});

describe('an answer that is too large', () => {
  test('is an error at the first byte beyond the limit, and not before', async () => {
    const text = 'é'.repeat(50);
    const model = modelThat(() => text);
    expect(await ask({ model, outputBytesMax: 100 })).toMatchObject({ raw: text });
    await expect(ask({ model, outputBytesMax: 99 })).rejects.toMatchObject({ code: 'AGENT_OUTPUT_TOO_LARGE' });
    const streamed = { model: streaming(deltas(text)), stream: true };
    expect(await ask({ ...streamed, outputBytesMax: 100 })).toMatchObject({ raw: text });
    await expect(ask({ ...streamed, outputBytesMax: 99 })).rejects.toMatchObject({ code: 'AGENT_OUTPUT_TOO_LARGE' });
  });

  test('is also one with endless reasoning', async () => {
    const thinking = function* (): Generator<StreamPart> {
      yield { type: 'reasoning-start', id: '1' };
      for (;;) yield { type: 'reasoning-delta', id: '1', delta: '' };
    };
    const asked = ask({ model: streaming(thinking()), stream: true, outputBytesMax: 10_000 });
    await expect(asked).rejects.toMatchObject({ code: 'AGENT_OUTPUT_TOO_LARGE' });
  });

  test('of a hundred streamed megabytes is read only slightly beyond the limit', async () => {
    const megabyte = 'x'.repeat(1_000_000);
    let pulled = 0;
    const endless = function* (): Generator<StreamPart> {
      yield* deltas().slice(0, 2);
      for (; pulled < 100; pulled += 1) yield { type: 'text-delta', id: '1', delta: megabyte };
      yield* deltas().slice(2);
    };
    let cancelled = 0;
    const model = streaming(endless(), { onCancel: () => (cancelled += 1) });
    await expect(ask({ model, stream: true })).rejects.toMatchObject({ code: 'AGENT_OUTPUT_TOO_LARGE' });
    for (let turn = 0; turn < 50; turn += 1) await nextTick();
    expect(pulled).toBeLessThan(8);
    expect(cancelled).toBe(1);
  });
});

describe('every failure is one class of errors, and its message contains no text of the provider', () => {
  const apiError = (statusCode: number, isRetryable = false, more: object = {}): APICallError =>
    new APICallError({
      ...{ message: 'secret words', url: 'https://provider.example', requestBodyValues: { prompt: 'case' } },
      ...{ statusCode, isRetryable, ...more },
    });
  // Providers throw anything.
  const thrown = async (error: unknown): Promise<never> => {
    await nextTick();
    throw error;
  };
  const failingModel = (error: unknown): MockLanguageModelV3 =>
    new MockLanguageModelV3({
      doGenerate: () => thrown(error),
      doStream: () => thrown(error),
    });

  test.each([
    ['a refusal', apiError(401), "the model's provider failed with status 401"],
    ['a breakdown', new Error('secret words'), "the model's provider failed"],
    ['no error at all', 'secret words', "the model's provider failed"],
    ['nothing', undefined, "the model's provider failed"],
  ])('%s', async (_what, error, message) => {
    for (const stream of [false, true]) {
      const failed = ask({ model: failingModel(error), stream });
      await expect(failed).rejects.toMatchObject({ name: 'AgentError', code: 'AGENT_FAILED', message });
    }
  });

  test('the cause is the error of the provider', async () => {
    const error = apiError(500);
    await expect(ask({ model: failingModel(error) })).rejects.toMatchObject({ cause: error });
  });

  test('an error in the middle of a stream', async () => {
    const parts = [...deltas('{"a"').slice(0, 3), { type: 'error' as const, error: apiError(529) }];
    const failed = ask({ model: streaming(parts), stream: true });
    await expect(failed).rejects.toMatchObject({ message: "the model's provider failed with status 529" });
  });

  test('a stream that ends early', async () => {
    const failed = ask({ model: streaming(deltas('{}').slice(0, -1)), stream: true });
    await expect(failed).rejects.toMatchObject({ code: 'AGENT_FAILED' });
  });

  test.each([undefined, null, {}, { content: 7 }, { content: [{ type: 'text', text: 'x' }] }])(
    'a provider that answers %j',
    async (answer) => {
      const model = new MockLanguageModelV3({ doGenerate: () => Promise.resolve(answer as unknown as Generated) });
      await expect(ask({ model })).rejects.toMatchObject({ code: 'AGENT_FAILED' });
    },
  );

  test('a retryable error of the provider is retried up to the limit', async () => {
    const soon = { responseHeaders: { 'retry-after-ms': '1' } };
    const model = failingModel(apiError(429, true, soon));
    const failed = ask({ model, maxRetries: 2 });
    await expect(failed).rejects.toMatchObject({ message: "the model's provider failed with status 429" });
    expect(model.doGenerateCalls).toHaveLength(3);
    const once = failingModel(apiError(429, true, soon));
    await expect(ask({ model: once })).rejects.toMatchObject({ code: 'AGENT_FAILED' });
    expect(once.doGenerateCalls).toHaveLength(1);
  });
});

describe('a model that hangs', () => {
  const hanging = (): MockLanguageModelV3 => new MockLanguageModelV3({ doGenerate: never, doStream: never });

  test.each([false, true])('is abandoned when its time is over (streamed: %s)', async (stream) => {
    const model = hanging();
    await expect(ask({ model, stream, timeoutMs: 5 })).rejects.toMatchObject({ code: 'AGENT_TIMEOUT' });
    const [called] = [...model.doGenerateCalls, ...model.doStreamCalls];
    expect(called?.abortSignal?.aborted).toBe(true);
  });

  test.each([false, true])('is abandoned when the caller aborts (streamed: %s)', async (stream) => {
    const caller = new AbortController();
    const model = hanging();
    const asked = ask({ model, stream }, {}, caller.signal);
    setImmediate(() => caller.abort());
    await expect(asked).rejects.toMatchObject({ code: 'AGENT_ABORTED' });
    const [called] = [...model.doGenerateCalls, ...model.doStreamCalls];
    expect(called?.abortSignal?.aborted ?? true).toBe(true);
  });

  test('in the middle of a stream', async () => {
    const caller = new AbortController();
    const parts = function* (): Generator<StreamPart> {
      yield* deltas('{"a"').slice(0, 3);
      caller.abort();
      yield* deltas('":1}').slice(2);
    };
    const asked = ask({ model: streaming(parts()), stream: true }, {}, caller.signal);
    await expect(asked).rejects.toMatchObject({ code: 'AGENT_ABORTED' });
  });

  test('is not called if the caller has aborted before', async () => {
    const model = hanging();
    await expect(ask({ model }, {}, AbortSignal.abort())).rejects.toMatchObject({ code: 'AGENT_ABORTED' });
    expect(model.doGenerateCalls).toHaveLength(0);
  });
});

describe('options', () => {
  const model = modelThat(() => '{}');
  test.each<readonly [string, Partial<AiSdkAgentOptions>]>([
    ['a bare model name, which the SDK would resolve through a gateway', { model: 'openai/gpt-5' as never }],
    ['no model', { model: null as never }],
    ['no output', { maxOutputTokens: 0 }],
    ['retries without end', { maxRetries: Infinity }],
    ['no time', { timeoutMs: 0 }],
    ['more bytes than a proposal may have', { outputBytesMax: 33_554_433 }],
  ])('%s is a usage error', (_what, options) => {
    expect(() => aiSdkAgent({ model, ...options })).toThrow(expect.objectContaining({ code: 'USAGE' }));
  });
});

describe('the console', () => {
  const { info, warn, error } = console;
  afterEach(() => void Object.assign(console, { info, warn, error }));

  test.each([false, true])('is not written to, whatever warnings a provider sends (streamed: %s)', async (stream) => {
    const printed: unknown[] = [];
    const print = (...line: unknown[]): void => void printed.push(line);
    Object.assign(console, { info: print, warn: print, error: print });
    const warnings: Generated['warnings'] = [{ type: 'other', message: '\u001b[2Jsecret words' }];
    const parts = [{ type: 'stream-start' as const, warnings }, ...deltas('{}')];
    const model = new MockLanguageModelV3({
      doGenerate: { ...generated('{}'), warnings },
      doStream: () => streaming(parts).doStream({ prompt: [] }),
    });
    expect(await ask({ model, stream })).toMatchObject({ raw: '{}' });
    expect(printed).toEqual([]);
  });
});
