// An agent that is a language model, called through the AI SDK (package `ai`, an optional peer dependency; only users
// of `turnpike/ai` need it). The SDK gets no tools, so that it can execute nothing. The text of the model is proposed
// unchanged.

import {
  APICallError,
  generateText,
  RetryError,
  wrapLanguageModel,
  type JSONValue,
  type LanguageModel,
  type LanguageModelUsage,
  type ModelMessage,
} from 'ai';
import { AgentError, usageError } from '../../core/errors.js';
import { omitUndefined } from '../../core/omit-undefined.js';
import type { Agent, AgentProposal, AgentTurn, RequestOutcome } from '../../engine/ports/agent-exchange.js';

/** Options of an agent that calls a model through the AI SDK. */
export interface AiSdkAgentOptions {
  /**
   * A model of a provider package. A bare name is refused, because the SDK would resolve it through its own gateway.
   */
  readonly model: Extract<LanguageModel, { readonly specificationVersion: 'v3' }>;
  /** Default 8192. */
  readonly maxOutputTokens?: number;
  readonly temperature?: number;
  readonly topP?: number;
  readonly seed?: number;
  /**
   * How often a call is retried if the provider reports a retryable error, with growing pauses. Default 2, at most 10.
   */
  readonly maxRetries?: number;
  /** Timeout of one proposal with all its retries, in ms. Default 2 minutes. */
  readonly timeoutMs?: number;
  /** Maximum length of one answer in bytes of UTF-8; a longer one is an error. Default 4 MiB, at most 32 MiB. */
  readonly outputBytesMax?: number;
  /**
   * Streams the answer and stops when it becomes too long, reasoning included. Some providers do not report the token
   * usage then. Default: requests the whole answer.
   */
  readonly stream?: boolean;
  /** Passed to the provider unchanged: reasoning effort, caching and so on. */
  readonly providerOptions?: Readonly<Record<string, Readonly<Record<string, JSONValue>>>>;
}

/**
 * Creates an agent for `runAgent`. It throws only AgentError, whose `cause` is the provider's own error and may contain
 * the request. Reasoning, tool calls and files of a model are not part of its proposal.
 * @throws UsageError for options out of range
 */
export function aiSdkAgent(options: AiSdkAgentOptions): Agent {
  const settings = agentSettingsOf(options);
  return { propose: (turn, signal) => proposeWithin(settings, turn, signal) };
}

interface AgentSettings {
  readonly outputBytesMax: number;
  readonly timeoutMs: number;
  readonly call: Omit<Parameters<typeof generateText>[0], 'prompt' | 'messages' | 'system' | 'abortSignal'>;
}

const BYTES_CEILING = 33_554_432;

function agentSettingsOf(options: AiSdkAgentOptions): AgentSettings {
  const { model, temperature, topP, seed, providerOptions, stream = false } = options;
  // Callers without types may pass anything.
  if ((model as Partial<Model> | null)?.specificationVersion !== 'v3')
    throw usageError('model: a model (v3) of a provider');
  const outputBytesMax = requireWholeNumber('outputBytesMax', options.outputBytesMax ?? 4_194_304, 1, BYTES_CEILING);
  const call = {
    model: wrapModel(model, stream, outputBytesMax),
    maxOutputTokens: requireWholeNumber('maxOutputTokens', options.maxOutputTokens ?? 8_192, 1, 10_000_000),
    maxRetries: requireWholeNumber('maxRetries', options.maxRetries ?? 2, 0, 10),
    ...omitUndefined({ temperature, topP, seed, providerOptions }),
  };
  return {
    call,
    timeoutMs: requireWholeNumber('timeoutMs', options.timeoutMs ?? 120_000, 1, 86_400_000),
    outputBytesMax,
  };
}

function requireWholeNumber(name: string, value: number, least: number, most: number): number {
  if (Number.isSafeInteger(value) && value >= least && value <= most) return value;
  throw usageError(`${name}: a whole number from ${least} to ${most}`);
}

/** One proposal, or an AgentError at the latest after the timeout; a provider that ignores the abort is abandoned. */
async function proposeWithin(settings: AgentSettings, turn: AgentTurn, signal: AbortSignal): Promise<AgentProposal> {
  const own = new AbortController();
  const timer = setTimeout(() => own.abort(TIMED_OUT), settings.timeoutMs);
  const eitherSignal = AbortSignal.any([signal, own.signal]);
  try {
    eitherSignal.throwIfAborted();
    return await Promise.race([requestProposal(settings, turn, eitherSignal), rejectOnAbort(eitherSignal)]);
  } catch (error) {
    throw agentErrorOf(error, signal, own.signal);
  } finally {
    clearTimeout(timer);
    own.abort();
  }
}

const TIMED_OUT = Symbol('timed out');

const rejectOnAbort = (signal: AbortSignal): Promise<never> =>
  new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error('aborted')), { once: true });
  });

async function requestProposal({ call, outputBytesMax }: AgentSettings, turn: AgentTurn, abortSignal: AbortSignal) {
  const { text, totalUsage } = await generateText({ ...call, ...promptOf(turn), abortSignal });
  if (Buffer.byteLength(text) > outputBytesMax) throw tooLargeError(outputBytesMax);
  return { raw: text, tokens: tokensIn(totalUsage) };
}

/**
 * Wraps the model, because the SDK's own streaming continues without a reader and buffers everything, and because the
 * SDK prints provider warnings on the console, which may be the channel of a protocol.
 */
const wrapModel = (model: Model, stream: boolean, bytesMax: number): Model =>
  wrapLanguageModel({
    model,
    middleware: {
      specificationVersion: 'v3',
      wrapGenerate: async ({ doGenerate, doStream, params }) =>
        stream
          ? collectStream(await doStream(), params.abortSignal, bytesMax)
          : { ...(await doGenerate()), warnings: [] },
    },
  });

async function collectStream(
  { stream }: StreamResult,
  signal: AbortSignal | undefined,
  bytesMax: number,
): Promise<GenerateResult> {
  const reader = stream.getReader();
  const cancelReader = (): void => void reader.cancel().catch(() => undefined);
  signal?.addEventListener('abort', cancelReader, { once: true });
  const texts: string[] = [];
  let [parts, bytes] = [0, 0];
  try {
    for (;;) {
      const { value: part } = await reader.read();
      if (part === undefined) throw new Error('the stream broke off');
      if (part.type === 'error') throw part.error;
      parts += 1;
      // Reasoning is not stored, but is limited too.
      if ('delta' in part) bytes += Buffer.byteLength(part.delta);
      if (Math.max(parts, bytes) > bytesMax) throw tooLargeError(bytesMax);
      if (part.type === 'text-delta') texts.push(part.delta);
      if (part.type !== 'finish') continue;
      const { usage, finishReason } = part;
      return { content: [{ type: 'text', text: texts.join('') }], usage, finishReason, warnings: [] };
    }
  } finally {
    signal?.removeEventListener('abort', cancelReader);
    cancelReader();
  }
}

type Model = AiSdkAgentOptions['model'];
type StreamResult = Awaited<ReturnType<Model['doStream']>>;
type GenerateResult = Awaited<ReturnType<Model['doGenerate']>>;

const tooLargeError = (bytesMax: number): AgentError =>
  new AgentError({ code: 'AGENT_OUTPUT_TOO_LARGE', message: `the model said more than ${bytesMax} bytes` });

/** The token count that the provider reports, or null if it is not a number. */
function tokensIn({ totalTokens }: LanguageModelUsage): number | null {
  if (typeof totalTokens !== 'number' || !(totalTokens >= 0)) return null;
  return Math.min(Number.MAX_SAFE_INTEGER, Math.ceil(totalTokens));
}

/**
 * Builds the prompt. The system text does not change within a run. Content of files and tools is inside the JSON of a
 * response, in a user message, and never in the system text.
 */
function promptOf(turn: AgentTurn): { readonly system: string; readonly messages: ModelMessage[] } {
  const { instructions, schemas, task, conversation, fresh_id } = turn;
  const messages: ModelMessage[] = [];
  let userText = task === null ? 'Begin.' : `The task:\n${task}`;
  for (const { proposal, response, left_out, request } of conversation) {
    if (left_out > 0) userText += `\n\n[${left_out} earlier proposals and responses are left out here]`;
    messages.push({ role: 'user', content: userText });
    // Providers reject a message without text.
    messages.push({ role: 'assistant', content: proposal.trim() === '' ? '(nothing)' : proposal });
    userText = request === undefined ? response : `${response}\n\n${REQUEST_NOTES[request]}`;
  }
  messages.push({ role: 'user', content: `${userText}\n\nAn id for your next proposal: ${fresh_id}` });
  return { system: `${instructions}\n\nThe schemas:\n${JSON.stringify(schemas)}`, messages };
}

const REQUEST_NOTES = {
  approved: '[A person has approved this request since. It was proposed again for you, under another id.]',
  rejected: '[A person has rejected this request. The same proposal again will be denied.]',
  expired: '[This request was not approved in time.]',
} as const satisfies Record<RequestOutcome, string>;

/** Maps every error to an AgentError. The provider's text is only in `cause`. */
function agentErrorOf(error: unknown, outer: AbortSignal, own: AbortSignal): AgentError {
  const last: unknown = RetryError.isInstance(error) ? error.lastError : error;
  if (last instanceof AgentError) return last;
  if (outer.aborted) return new AgentError({ code: 'AGENT_ABORTED', message: 'the proposal is not waited for' });
  if (own.reason === TIMED_OUT) {
    return new AgentError({ code: 'AGENT_TIMEOUT', message: 'the model did not answer in time', cause: error });
  }
  const status = APICallError.isInstance(last) ? last.statusCode : undefined;
  const message = `the model's provider failed${status === undefined ? '' : ` with status ${status}`}`;
  return new AgentError({ code: 'AGENT_FAILED', message, cause: error });
}
