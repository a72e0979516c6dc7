// Tools of the AI SDK (package `ai` 6 and 7, an optional peer dependency) under policy (0066).

import { asSchema, jsonSchema, type ToolSet } from 'ai';
import { type JsonObject, canonicalJson } from '../../core/contract/json.js';
import { usageError } from '../../core/errors.js';
import type { Tool } from '../../runtime/effects/define-effects.js';
import type { RunRequest } from '../../runtime/agents/run-requests.js';
import { SdkCalls, type GovernedRun, type SdkToolCall } from './sdk-calls.js';
import { registerSdkTool, WaitingCalls, type RegisteredTool, type SdkTool, type ToolFacts } from './sdk-tool.js';

export { GovernedCallError } from '../../core/errors.js';
export type { GovernedRun } from './sdk-calls.js';
export type { ToolFacts } from './sdk-tool.js';

/** Tools of the AI SDK, registered with Turnpike. */
export interface GovernedAiTools<TOOLS extends ToolSet> {
  /** For the option `tools` of `openTurnpike`. */
  readonly definitions: readonly Tool[];
  /**
   * The same tools for one agent run, to pass to `generateText`, `streamText` or an agent. Every call is a proposal,
   * and the tool's own function runs only if policy allows that. A call that needs an approval is one for the SDK too
   * (`tool-approval-request`); the SDK's answer counts only after the votes that Turnpike has recorded. What the tool
   * itself wants to be asked about, the SDK asks as before.
   */
  for(of: GovernedRun): TOOLS;
  /** The request of a call that needs an approval, for the people who vote on it; null if it has made none. */
  requestOf(of: GovernedRun, call: AiToolCall): Promise<RunRequest | null>;
}

/** A call, as parts of messages have it. */
export interface AiToolCall {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: unknown;
}

/**
 * Puts tools of the AI SDK under policy.
 * @param facts for each tool, what policy has to know about it
 * @throws UsageError for a tool without a function of its own, or with a schema that cannot be registered
 */
export async function governTools<TOOLS extends ToolSet>(
  tools: TOOLS,
  facts: { readonly [NAME in keyof TOOLS]?: ToolFacts } = {},
): Promise<GovernedAiTools<TOOLS>> {
  const waiting = new WaitingCalls();
  const registered = new Map<string, RegisteredTool>();
  const sdkTools = new Map<string, SdkTool>();
  for (const [name, tool] of Object.entries(tools)) {
    const sdkTool = sdkToolOf(name, tool, (await asSchema(tool.inputSchema).jsonSchema) as JsonObject);
    sdkTools.set(name, sdkTool);
    registered.set(name, registerSdkTool(sdkTool, facts[name] ?? {}, waiting));
  }
  const callOf = (name: string, input: unknown, { toolCallId: id, messages = [] }: CallOptions): SdkToolCall => {
    const tool = registered.get(name);
    if (tool === undefined) throw usageError(`there is no governed tool ${name}`);
    const place = countAnsweredCalls(messages, { toolCallId: id, input });
    return { id, place, tool, input: input as JsonObject };
  };
  return {
    definitions: [...registered.values()].map(({ tool }) => tool),
    for(of) {
      const calls = new SdkCalls(of, waiting);
      const governed = Object.entries(tools).map(([name, tool]) => [
        name,
        {
          ...tool,
          // What the schema of the tool refuses is proposed too, so that it is recorded.
          inputSchema: jsonSchema(sdkTools.get(name)?.inputSchema ?? {}),
          needsApproval: async (input: unknown, options: ApprovalOptions) =>
            (await calls.needsApproval(callOf(name, input, options))) ||
            asksItself(tool, sdkTools.get(name), input as JsonObject, options),
          execute: (input: unknown, options: CallOptions) => calls.execute(callOf(name, input, options), options),
        },
      ]);
      return Object.fromEntries(governed) as TOOLS;
    },
    requestOf: (of, { toolName, toolCallId, input }) =>
      new SdkCalls(of, waiting).requestOf(callOf(toolName, input, { toolCallId })),
  };
}

/** What the SDK says of a call: its id, and the conversation before it. */
interface CallOptions {
  readonly toolCallId: string;
  readonly messages?: readonly unknown[];
}

type ApprovalOptions = Parameters<Extract<ToolSet[string]['needsApproval'], (...given: never) => unknown>>[1];

/** Whether the tool itself wants an approval of the application. It gets valid input only; other input is refused. */
async function asksItself(
  { needsApproval = false }: ToolSet[string],
  sdkTool: SdkTool | undefined,
  input: JsonObject,
  options: ApprovalOptions,
): Promise<boolean> {
  if (typeof needsApproval === 'boolean' || sdkTool === undefined) return needsApproval === true;
  const parsed = await sdkTool.parse(input).then(
    (value) => ({ value }),
    () => null,
  );
  return parsed !== null && needsApproval(parsed.value, options);
}

function sdkToolOf(
  name: string,
  tool: ToolSet[string],
  inputSchema: JsonObject,
): Parameters<typeof registerSdkTool>[0] {
  const { execute, inputSchema: own } = tool;
  // A tool of the provider or of the browser: its calls cannot be decided here.
  if (execute === undefined) throw usageError(`the tool ${name} has no execute function: Turnpike cannot govern it`);
  const { validate } = asSchema(own);
  return {
    name,
    description: tool.description ?? name,
    inputSchema,
    parse: async (input) => {
      const validated = await (validate?.(input) ?? { success: true, value: input });
      if (!validated.success) throw validated.error;
      return validated.value as unknown;
    },
    execute: async (input, { signal, options }) => {
      const given = (options ?? { toolCallId: '', messages: [] }) as Parameters<typeof execute>[1];
      const abortSignal = given.abortSignal === undefined ? signal : AbortSignal.any([given.abortSignal, signal]);
      return lastOf(await execute(input as never, { ...given, abortSignal }));
    },
  };
}

/** A tool may return several values one after another: the last one is its output. */
async function lastOf(output: unknown): Promise<unknown> {
  if (typeof output !== 'object' || output === null || !(Symbol.asyncIterator in output)) return output;
  let last: unknown = null;
  for await (const value of output as AsyncIterable<unknown>) last = value;
  return last;
}

/** A call, as messages of a conversation have it. */
interface CallOfMessages {
  readonly toolCallId: string;
  readonly input: unknown;
}

/**
 * How many equal calls with the same id have a result in the messages before this call: its place among them. It is the
 * same in another process that has the same messages.
 */
function countAnsweredCalls(messages: readonly unknown[], { toolCallId, input }: CallOfMessages): number {
  const given = textOf(input);
  let [count, isEqual] = [0, false];
  for (const part of messages.flatMap(partsOf)) {
    if (part.toolCallId !== toolCallId) continue;
    if (part.type === 'tool-call') isEqual = textOf(part.input) === given;
    else if (part.type === 'tool-result' && isEqual) [count, isEqual] = [count + 1, false];
  }
  return count;
}

interface MessagePart {
  readonly type?: unknown;
  readonly toolCallId?: unknown;
  readonly input?: unknown;
}

const partsOf = (message: unknown): readonly MessagePart[] => {
  const { content } = (message ?? {}) as { readonly content?: unknown };
  return Array.isArray(content) ? (content as unknown[]).filter(isPart) : [];
};

const isPart = (part: unknown): part is MessagePart => typeof part === 'object' && part !== null;

/** Input of a model is JSON, but may have lone surrogates or be too deep to be canonical. */
function textOf(input: unknown): string {
  try {
    return canonicalJson(input);
  } catch {
    return JSON.stringify(input);
  }
}
