// Function tools of the OpenAI Agents SDK (package `@openai/agents`, from 0.20) under policy (0066). The SDK is not
// imported: its tools are plain objects.

import { type Json, type JsonObject, readJson } from '../../core/contract/json.js';
import { GovernedCallError, usageError } from '../../core/errors.js';
import type { Tool } from '../../runtime/effects/define-effects.js';
import { SdkCalls, type GovernedRun, type SdkToolCall } from './sdk-calls.js';
import { registerSdkTool, WaitingCalls, type RegisteredTool, type SdkTool, type ToolFacts } from './sdk-tool.js';

export { GovernedCallError } from '../../core/errors.js';
export type { GovernedRun } from './sdk-calls.js';
export type { ToolFacts } from './sdk-tool.js';

/** A function tool, as far as it is used here. */
export interface FunctionToolLike {
  readonly type: 'function';
  readonly name: string;
  readonly description: string;
  readonly parameters: object;
  readonly timeoutMs?: number | undefined;
  readonly timeoutBehavior?: string | undefined;
  readonly invoke: (runContext: never, input: string, details?: never) => Promise<unknown>;
  readonly needsApproval: (runContext: never, input: never, callId?: string) => Promise<boolean>;
}

/** Tools of the SDK, registered with Turnpike. */
export interface GovernedFunctionTools<TOOLS extends readonly FunctionToolLike[]> {
  /** For the option `tools` of `openTurnpike`. */
  readonly definitions: readonly Tool[];
  /**
   * The same tools for one agent run, for an `Agent`. Every call is a proposal, and the tool's own function runs only
   * if policy allows that. A call that needs an approval is one of the `interruptions` of the SDK; approving it there
   * counts only after the votes that Turnpike has recorded. The model gets failures as text.
   */
  for(of: GovernedRun): TOOLS;
}

/**
 * Puts function tools under policy.
 * @param facts for each tool by its name, what policy has to know about it
 * @throws UsageError for a tool that turns its failures into outputs, or with parameters that cannot be registered
 */
export async function governTools<TOOLS extends readonly FunctionToolLike[]>(
  tools: TOOLS,
  facts: Readonly<Record<string, ToolFacts>> = {},
): Promise<GovernedFunctionTools<TOOLS>> {
  const waiting = new WaitingCalls();
  for (const tool of tools) await requireErrors(tool);
  const governed = tools.map(
    (tool) => [tool, registerSdkTool(sdkToolOf(tool), facts[tool.name] ?? {}, waiting)] as const,
  );
  return {
    definitions: governed.map(([, { tool }]) => tool),
    for(of) {
      const calls = new SdkCalls(of, waiting);
      return governed.map(([tool, registered]) => governedTool(tool, registered, calls)) as readonly unknown[] as TOOLS;
    },
  };
}

/**
 * By default the SDK makes a text of every error, and then nothing tells a failure from an output. It parses the input
 * before it calls the function, so text that is not JSON shows what the tool does.
 * @throws UsageError
 */
async function requireErrors(tool: FunctionToolLike): Promise<void> {
  if (tool.timeoutMs !== undefined && tool.timeoutBehavior !== 'raise_exception')
    throw usageError(`the tool ${tool.name} makes an output of its timeout: set timeoutBehavior: 'raise_exception'`);
  const isThrown = await tool.invoke({} as never, '{').then(
    () => false,
    () => true,
  );
  if (!isThrown) throw usageError(`the tool ${tool.name} makes outputs of its errors: set errorFunction: null`);
}

function sdkToolOf(tool: FunctionToolLike): SdkTool {
  return {
    name: tool.name,
    description: tool.description,
    inputSchema: JSON.parse(JSON.stringify(tool.parameters)) as JsonObject,
    // The SDK has no way to parse without calling: what the registered schema accepts goes to the tool.
    parse: (input) => Promise.resolve(input),
    execute: (input, { signal, options }) => {
      const { runContext = {}, details = {} } = (options ?? {}) as Partial<InvokeOptions>;
      const either = details.signal === undefined ? signal : AbortSignal.any([details.signal, signal]);
      return tool.invoke(runContext as never, JSON.stringify(input), { ...details, signal: either } as never);
    },
  };
}

interface InvokeOptions {
  readonly runContext: object;
  readonly details: {
    readonly signal?: AbortSignal;
    /** `id` is that of the item, or of the answer with the call. */
    readonly toolCall?: { readonly callId?: string; readonly id?: string };
  };
}

function governedTool(tool: FunctionToolLike, registered: RegisteredTool, calls: SdkCalls): FunctionToolLike {
  const callOf = (id: string | undefined, input: Json, place: string | null = null): SdkToolCall => {
    if (id === undefined) throw usageError(`call the tool ${tool.name} with a tool call that has an id`);
    return { id, place, tool: registered, input };
  };
  return {
    ...tool,
    needsApproval: async (runContext, input, callId) =>
      (await calls.needsApproval(callOf(callId, input))) || tool.needsApproval(runContext, input, callId),
    invoke: async (runContext, text, details) => {
      const options: InvokeOptions = { runContext, details: { ...(details as InvokeOptions['details'] | undefined) } };
      try {
        const { callId, id: place = null } = options.details.toolCall ?? {};
        return await calls.execute(callOf(callId, parseInput(text), place), options);
      } catch (error) {
        // As the SDK does by default: an error ends the run of the agent, and a text is for the model.
        if (error instanceof GovernedCallError) return `Error: ${error.message}`;
        throw error;
      }
    },
  };
}

/** Text that is not JSON is proposed as it is, so that it is refused and recorded. */
const parseInput = (text: string): Json => readJson(text) ?? text;
