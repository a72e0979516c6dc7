// Tools of Mastra (package `@mastra/core`, from 1.71) under policy (0066). The package is not imported: a governed tool
// is a copy of the tool, with the same class.

import type { Json, JsonObject } from '../../core/contract/json.js';
import { usageError } from '../../core/errors.js';
import type { Tool } from '../../runtime/effects/define-effects.js';
import { SdkCalls, type GovernedRun } from './sdk-calls.js';
import { registerSdkTool, WaitingCalls, type RegisteredTool, type SdkTool, type ToolFacts } from './sdk-tool.js';

export { GovernedCallError } from '../../core/errors.js';
export type { GovernedRun } from './sdk-calls.js';
export type { ToolFacts } from './sdk-tool.js';

/** A tool of Mastra, as far as it is used here. */
export interface MastraToolLike {
  readonly id: string;
  readonly description: string;
  readonly inputSchema?: unknown;
  readonly execute?: unknown;
  readonly requireApproval?: unknown;
  readonly needsApprovalFn?: unknown;
}

/** Tools of Mastra, registered with Turnpike. */
export interface GovernedMastraTools<TOOLS extends Readonly<Record<string, MastraToolLike>>> {
  /** For the option `tools` of `openTurnpike`. */
  readonly definitions: readonly Tool[];
  /**
   * The same tools for one agent run, for an `Agent`. Every call is a proposal, and the tool's own function runs only
   * if policy allows that. A call that needs an approval waits for `approveToolCall`, which counts only after the votes
   * that Turnpike has recorded.
   */
  for(of: GovernedRun): TOOLS;
}

/**
 * Puts tools of Mastra under policy.
 * @param facts for each tool by its key, what policy has to know about it
 * @throws UsageError for a tool without a function or an input schema, or with a schema that cannot be registered
 */
export function governTools<TOOLS extends Readonly<Record<string, MastraToolLike>>>(
  tools: TOOLS,
  facts: { readonly [NAME in keyof TOOLS]?: ToolFacts } = {},
): GovernedMastraTools<TOOLS> {
  const waiting = new WaitingCalls();
  const governed = Object.entries(tools).map(([name, tool]) => {
    const registered = registerSdkTool(sdkToolOf(name, tool), facts[name] ?? {}, waiting);
    return [name, tool, registered] as const;
  });
  return {
    definitions: governed.map(([, , { tool }]) => tool),
    for(of) {
      const calls = new SdkCalls(of, waiting);
      const copies = governed.map(([name, tool, registered]) => [name, governedTool(tool, registered, calls)]);
      return Object.fromEntries(copies) as TOOLS;
    },
  };
}

/** A schema of any package that follows the two standards of schemas. */
interface StandardSchema {
  readonly '~standard'?: {
    readonly validate: (value: unknown) => Validated | Promise<Validated>;
    readonly jsonSchema?: { readonly input: (options: { readonly target: string }) => object };
  };
}
interface Validated {
  readonly value?: unknown;
  readonly issues?: readonly unknown[];
}

type Execute = (input: unknown, context: object) => Promise<unknown>;

function sdkToolOf(name: string, tool: MastraToolLike): SdkTool {
  const standard = (tool.inputSchema as StandardSchema | undefined)?.['~standard'];
  const schema = standard?.jsonSchema?.input({ target: 'draft-07' });
  if (typeof tool.execute !== 'function') throw usageError(`the tool ${name} has no execute function`);
  if (standard === undefined || schema === undefined) throw usageError(`the tool ${name} has no inputSchema`);
  const execute = tool.execute.bind(tool) as Execute;
  return {
    name,
    description: tool.description,
    inputSchema: JSON.parse(JSON.stringify(schema)) as JsonObject,
    parse: async (input) => {
      const { issues } = await standard.validate(input);
      if (issues !== undefined) throw new Error('invalid input');
      // The tool parses its input itself.
      return input;
    },
    execute: (input, { signal, options }) => {
      const context = (options ?? {}) as { readonly abortSignal?: AbortSignal };
      const either = context.abortSignal === undefined ? signal : AbortSignal.any([context.abortSignal, signal]);
      return execute(input, { ...context, abortSignal: either });
    },
  };
}

/** What Mastra gives to a tool that an agent calls. */
interface CallContext {
  readonly agent?: { readonly toolCallId?: string };
}

type OwnApproval = (input: Json, context: object | undefined) => boolean | Promise<boolean>;

/** Whether the tool itself wants an approval of the application. */
async function asksItself(
  { needsApprovalFn, requireApproval }: MastraToolLike,
  input: Json,
  context: object | undefined,
): Promise<boolean> {
  const own = typeof needsApprovalFn === 'function' ? needsApprovalFn : requireApproval;
  return typeof own === 'function' ? (own as OwnApproval)(input, context) : own === true;
}

/** What the schema of the tool refuses is proposed too, so that it is recorded. */
const withoutValidation = (schema: StandardSchema): StandardSchema => ({
  '~standard': { ...schema['~standard'], validate: (value: unknown) => ({ value }) },
});

function governedTool(tool: MastraToolLike, registered: RegisteredTool, calls: SdkCalls): MastraToolLike {
  // Mastra does not say which call it asks about: equal calls are one request, as for the people who vote.
  const needsApproval = async (input: Json, context?: object): Promise<boolean> =>
    (await calls.needsApproval({
      id: JSON.stringify(['approval', registered.name, input]),
      place: null,
      tool: registered,
      input,
    })) || asksItself(tool, input, context);
  const execute = (input: Json, context: CallContext = {}): Promise<Json> => {
    const id = context.agent?.toolCallId;
    if (id === undefined) throw usageError(`call the tool ${registered.name} with a tool call that has an id`);
    return calls.execute({ id, place: null, tool: registered, input }, context);
  };
  const own = {
    ...{ execute, requireApproval: needsApproval, needsApprovalFn: needsApproval },
    inputSchema: withoutValidation(tool.inputSchema as StandardSchema),
  };
  const copy = Object.create(Object.getPrototypeOf(tool) as object, Object.getOwnPropertyDescriptors(tool)) as object;
  for (const [name, value] of Object.entries(own))
    Object.defineProperty(copy, name, { value, writable: true, enumerable: true, configurable: true });
  return copy as MastraToolLike;
}
