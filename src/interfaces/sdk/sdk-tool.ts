// A tool of an SDK as a tool of Turnpike (0066). Its schema is converted, so that it can be registered; the tool's own
// function is the code behind it, and only the gateway reaches it.

import type { TObject } from 'typebox';
import { isJsonObject, type Json, type JsonObject, parseOwnJson, canonicalJson } from '../../core/contract/json.js';
import { ActionNotExecutedError, InvariantError, usageError } from '../../core/errors.js';
import { defineTool, type Tool } from '../../runtime/effects/define-effects.js';
import {
  convertInputSchema,
  decodeInput,
  encodeInput,
  type ConvertedInput,
} from '../../runtime/effects/convert-schema.js';
import { printableText, weakenSchema } from '../../runtime/effects/weaken-schema.js';
import { createLruMap } from '../../system/lru-map.js';

/** What the policy of a service has to know about a tool, and no SDK says. */
export interface ToolFacts {
  /** The name that lanes list. Default: the name of the tool. */
  readonly as?: string;
  /** Whether its input leaves the platform. Default true. */
  readonly outside?: boolean;
  /** Whether two executions with one idempotency key have the effect of one. Default false. */
  readonly idempotent?: boolean;
  /** Timeout in milliseconds. Default 30 s. */
  readonly timeout?: number;
}

/** A tool without the types of its SDK. */
export interface SdkTool {
  readonly name: string;
  readonly description: string;
  /** A JSON Schema. */
  readonly inputSchema: JsonObject;
  /** The input as the tool's function expects it. @throws if the tool's own schema refuses it */
  readonly parse: (input: JsonObject) => Promise<unknown>;
  /** The tool's own function. */
  readonly execute: (input: unknown, call: SdkCall) => unknown;
}

/** What the tool's function gets besides its input. */
export interface SdkCall {
  /** Aborted at the timeout, or when the process ends. */
  readonly signal: AbortSignal;
  /** The same in every attempt of one call. */
  readonly idempotency_key: string;
  /** What the SDK has given with this call; null after a restart, when the SDK is not there. */
  readonly options: unknown;
}

/** A tool that is registered. */
export interface RegisteredTool {
  /** The name that lanes list. */
  readonly name: string;
  readonly tool: Tool;
  /** The input in its registered form. */
  readonly encode: (input: Json) => Json;
}

/** How many of the last answered calls are in memory. */
const ANSWERED_MAX = 16_384;

/** The calls that are being executed, with their options by agent run, tool and input; and the answered calls. */
export class WaitingCalls {
  readonly #options = new Map<string, unknown[]>();
  readonly #executing = new Set<string>();
  readonly #answered = createLruMap<true>(ANSWERED_MAX);

  /** Whether the output of a call was returned in this process. */
  isAnswered(name: string): boolean {
    return this.#answered.get(name) === true;
  }

  noteAnswered(name: string): void {
    this.#answered.set(name, true);
  }

  /** @returns false if a call of this name is being executed */
  begin(name: string): boolean {
    if (this.#executing.has(name)) return false;
    this.#executing.add(name);
    return true;
  }

  end(name: string): void {
    this.#executing.delete(name);
  }

  add(key: CallOfRun, options: unknown): void {
    const text = textOf(key);
    this.#options.set(text, [...(this.#options.get(text) ?? []), options]);
  }

  /** The options of the first such call. Equal calls of one run cannot be distinguished, and need not be. */
  take(key: CallOfRun): unknown {
    const [first = null] = this.#options.get(textOf(key)) ?? [];
    return first;
  }

  remove(key: CallOfRun, options: unknown): void {
    const text = textOf(key);
    const left = (this.#options.get(text) ?? []).filter((one) => one !== options);
    if (left.length === 0) this.#options.delete(text);
    else this.#options.set(text, left);
  }
}

interface CallOfRun {
  readonly run_id: string;
  readonly tool: string;
  /** In its registered form. */
  readonly input: Json;
}

const textOf = ({ run_id, tool, input }: CallOfRun): string => canonicalJson([run_id, tool, input]);

/** @throws UsageError if the tool has a schema or a name that cannot be registered */
export function registerSdkTool(sdkTool: SdkTool, facts: ToolFacts, waiting: WaitingCalls): RegisteredTool {
  const { as: name = sdkTool.name, ...common } = facts;
  const weakened = weakenSchema(sdkTool.inputSchema);
  if (isProblem(weakened)) throw usageError(`the tool ${sdkTool.name} cannot be governed: ${weakened.problem}`);
  const converted = convertInputSchema(weakened);
  const tool = defineTool({
    ...{ outside: true, ...common, name },
    summary: printableText(sdkTool.description) || name,
    // A plain JSON Schema; `openTurnpike` checks whether it can be registered.
    input: converted.schema as unknown as TObject,
    output: OUTPUT as unknown as TObject,
    run: async (registered, { run_id, signal, idempotency_key }) => {
      const input = registered as JsonObject;
      const options = waiting.take({ run_id: agentOf(run_id), tool: name, input });
      const output = await sdkTool.execute(await parsed(sdkTool, converted, input), {
        signal,
        idempotency_key,
        options,
      });
      return { json: textOfOutput(output) };
    },
  });
  return { name, tool, encode: (input) => encoded(converted, input) };
}

/** What has no registered form is proposed as the text of its JSON, which the schema refuses. */
function encoded(converted: ConvertedInput, input: Json): Json {
  if (isJsonObject(input) && hasCanonicalForm(input)) return encodeInput(converted, input);
  return JSON.stringify(input);
}

/** A model may write lone surrogates, or JSON that is too deep. */
function hasCanonicalForm(input: Json): boolean {
  try {
    canonicalJson(input);
    return true;
  } catch (error) {
    if (error instanceof InvariantError) return false;
    throw error;
  }
}

/** The output of a tool is any JSON: the record has it as text. */
const OUTPUT = {
  type: 'object',
  properties: { json: { type: 'string' } },
  required: ['json'],
  additionalProperties: false,
};

/** The output of a tool in a recorded result. */
export const outputIn = (result: JsonObject | null): Json => {
  const text = result?.['json'];
  return typeof text === 'string' ? (parseOwnJson(text) as Json) : null;
};

/** The input as the tool's function expects it. The function is not called with any other. */
async function parsed(tool: SdkTool, converted: ConvertedInput, input: JsonObject): Promise<unknown> {
  const decoded = decodeInput(converted, input);
  if (decoded === null) throw refusedInput('a text in it does not hold the JSON that it should', null);
  try {
    return await tool.parse(decoded);
  } catch (error) {
    throw refusedInput('the schema of the tool refuses it', error);
  }
}

const refusedInput = (why: string, cause: unknown): ActionNotExecutedError =>
  new ActionNotExecutedError(`the tool was not called with this input: ${why}`, { retryable: false, cause });

/** Functions may return anything; what JSON cannot say is left out, and nothing is null. */
const textOfOutput = (output: unknown): string => {
  const text: unknown = JSON.stringify(output);
  return typeof text === 'string' ? text : 'null';
};

/** The agent run of a mediated run. */
const agentOf = (run_id: string): string => run_id.slice(0, run_id.lastIndexOf('.'));

const isProblem = (found: object): found is { readonly problem: string } =>
  typeof (found as { readonly problem?: unknown }).problem === 'string';
