// An agent that is a language model, asked through the AI SDK (package `ai`, an optional peer dependency; only who
// imports `turnpike/ai` needs it). The SDK is given no tools, so that it can execute nothing, and its text is not
// touched: whatever the model said is what is proposed.

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
import { AgentError } from '../errors.js';
import type { Agent, AgentProposal, AgentTurn } from '../ports/agent.js';
import { usageError } from './system/usage-error.js';

export interface AiSdkAgentOptions {
  /** A model of a provider package. A bare name is refused: the SDK would ask a gateway of its own for it. */
  readonly model: Extract<LanguageModel, { readonly specificationVersion: 'v3' }>;
  /** Default 8192. */
  readonly maxOutputTokens?: number;
  readonly temperature?: number;
  readonly topP?: number;
  readonly seed?: number;
  /** How often a call that the provider calls retryable is made again, with a growing pause. Default 2, at most 10. */
  readonly maxRetries?: number;
  /** For one proposal with all its retries. Default 2 minutes. */
  readonly timeoutMs?: number;
  /** How long one answer may be, in bytes of UTF-8. A longer one is an error. Default 4 MiB, at most 32. */
  readonly outputBytesMax?: number;
  /**
   * Read the answer as it comes, and stop where it gets too long, reasoning included. Some providers do not say then
   * what it has cost. Default: the provider is asked for the whole answer.
   */
  readonly stream?: boolean;
  /** Handed to the provider as it is: reasoning effort, caching and the like. */
  readonly providerOptions?: Readonly<Record<string, Readonly<Record<string, JSONValue>>>>;
}

/**
 * An agent for `runAgent`. What it throws is an AgentError, whose `cause` is the provider's own error and may hold what
 * was sent to it. Reasoning, tool calls and files that a model puts beside its text are not part of its proposal.
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
  // Callers without types pass anything.
  if ((model as Partial<Model> | null)?.specificationVersion !== 'v3')
    throw usageError('model: a model (v3) of a provider');
  const outputBytesMax = requireWholeNumber('outputBytesMax', options.outputBytesMax ?? 4_194_304, 1, BYTES_CEILING);
  const call = {
    model: wrapModel(model, stream, outputBytesMax),
    maxOutputTokens: requireWholeNumber('maxOutputTokens', options.maxOutputTokens ?? 8_192, 1, 10_000_000),
    maxRetries: requireWholeNumber('maxRetries', options.maxRetries ?? 2, 0, 10),
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { topP }),
    ...(seed === undefined ? {} : { seed }),
    ...(providerOptions === undefined ? {} : { providerOptions }),
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

/** One proposal, or an AgentError by the time that was given; a provider that does not let go is left behind. */
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
 * The model behind what the SDK does not do: its own streaming reads on when nobody reads it any more and keeps what it
 * has read, and it prints the warnings of a provider on the console, which may be somebody's protocol.
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
      // Reasoning is not kept, and still has an end.
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

/** What the provider reports, if that is a number at all. */
function tokensIn({ totalTokens }: LanguageModelUsage): number | null {
  if (typeof totalTokens !== 'number' || !(totalTokens >= 0)) return null;
  return Math.min(Number.MAX_SAFE_INTEGER, Math.ceil(totalTokens));
}

/**
 * What a model is told: the system text does not change within a run. What comes from files and tools is inside the
 * JSON of a response, in a message of the user, and never in the system text.
 */
function promptOf(turn: AgentTurn): { readonly system: string; readonly messages: ModelMessage[] } {
  const { instructions, schemas, task, conversation, fresh_id } = turn;
  const messages: ModelMessage[] = [];
  let userText = task === null ? 'Begin.' : `The task:\n${task}`;
  for (const { proposal, response, left_out } of conversation) {
    if (left_out > 0) userText += `\n\n[${left_out} earlier proposals and responses are left out here]`;
    messages.push({ role: 'user', content: userText });
    // Providers refuse a message without text.
    messages.push({ role: 'assistant', content: proposal.trim() === '' ? '(nothing)' : proposal });
    userText = response;
  }
  messages.push({ role: 'user', content: `${userText}\n\nAn id for your next proposal: ${fresh_id}` });
  return { system: `${instructions}\n\nThe schemas:\n${JSON.stringify(schemas)}`, messages };
}

/** Whatever was thrown, as the one class. A provider's words are in `cause` alone. */
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
