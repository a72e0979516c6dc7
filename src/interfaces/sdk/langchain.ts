// Tools of LangChain and LangGraph.js (packages `@langchain/core` and `@langchain/langgraph` 1, optional peer
// dependencies) under policy (0066).

import {
  DynamicStructuredTool,
  ToolInputParsingException,
  type StructuredToolInterface,
  type ToolRunnableConfig,
} from '@langchain/core/tools';
import { toJsonSchema } from '@langchain/core/utils/json_schema';
import { interopParseAsync, isInteropZodSchema } from '@langchain/core/utils/types';
import { interrupt } from '@langchain/langgraph';
import type { Json, JsonObject } from '../../core/contract/json.js';
import { usageError } from '../../core/errors.js';
import type { Tool } from '../../runtime/effects/define-effects.js';
import { SdkCalls, type GovernedRun, type SdkToolCall } from './sdk-calls.js';
import { registerSdkTool, WaitingCalls, type RegisteredTool, type SdkTool, type ToolFacts } from './sdk-tool.js';

export { GovernedCallError } from '../../core/errors.js';
export type { GovernedRun } from './sdk-calls.js';
export type { ToolFacts } from './sdk-tool.js';

/** Tools of LangChain, registered with Turnpike. */
export interface GovernedLangchainTools<TOOLS extends readonly StructuredToolInterface[]> {
  /** For the option `tools` of `openTurnpike`. */
  readonly definitions: readonly Tool[];
  /**
   * The same tools for one agent run, for a model and a `ToolNode` or an agent. Every call is a proposal, and the tool
   * itself runs only if policy allows that. A call that needs an approval interrupts its graph with an
   * `ApprovalInterrupt`; the graph needs a checkpointer. Resuming it counts only after the votes that Turnpike has
   * recorded.
   */
  for(of: GovernedRun): TOOLS;
}

/** What a graph is interrupted with. */
export interface ApprovalInterrupt {
  readonly kind: 'turnpike.approval';
  /** The agent run that has made the request. */
  readonly run_id: string;
  /** What people vote on; null if the request was dropped. */
  readonly digest: string | null;
  readonly tool: string;
  readonly tool_call_id: string;
}

/**
 * Puts tools of LangChain under policy.
 * @param facts for each tool by its name, what policy has to know about it
 * @throws UsageError for a tool with a schema that cannot be registered
 */
export function governTools<TOOLS extends readonly StructuredToolInterface[]>(
  tools: TOOLS,
  facts: Readonly<Record<string, ToolFacts>> = {},
): GovernedLangchainTools<TOOLS> {
  const waiting = new WaitingCalls();
  const governed = tools.map((tool) => {
    const inputSchema = toJsonSchema(tool.schema) as unknown as JsonObject;
    return [tool, registerSdkTool(sdkToolOf(tool, inputSchema), facts[tool.name] ?? {}, waiting)] as const;
  });
  return {
    definitions: governed.map(([, { tool }]) => tool),
    for(of) {
      const calls = new SdkCalls(of, waiting);
      return governed.map(
        ([tool, registered]) => new GovernedTool(tool, registered, { of, calls }),
      ) as readonly unknown[] as TOOLS;
    },
  };
}

function sdkToolOf(tool: StructuredToolInterface, inputSchema: JsonObject): SdkTool {
  return {
    name: tool.name,
    description: tool.description,
    inputSchema,
    parse: (input) => {
      const { schema } = tool;
      return isInteropZodSchema(schema) ? interopParseAsync(schema, input) : Promise.resolve(input);
    },
    execute: (input, { signal, options }) => {
      const config = { ...(options as ToolRunnableConfig | null) };
      // Without the call, the tool returns its output and makes no message.
      delete config.toolCall;
      const eitherSignal = config.signal === undefined ? signal : AbortSignal.any([config.signal, signal]);
      return tool.invoke(input as never, { ...config, signal: eitherSignal });
    },
  };
}

interface GovernedToolParts {
  readonly of: GovernedRun;
  readonly calls: SdkCalls;
}

/** A tool whose calls are proposals. */
class GovernedTool extends DynamicStructuredTool {
  readonly #registered: RegisteredTool;
  readonly #calls: SdkCalls;

  constructor(tool: StructuredToolInterface, registered: RegisteredTool, { of, calls }: GovernedToolParts) {
    const { name, description, schema, extras, returnDirect } = tool;
    super({
      ...{ name, description, schema, returnDirect },
      ...(extras === undefined ? {} : { extras }),
      func: async (_parsed: unknown, _manager: unknown, config?: ToolRunnableConfig): Promise<Json> => {
        const call = callIn(name, registered, config);
        if (await calls.needsApproval(call)) {
          const { digest = null } = (await calls.requestOf(call)) ?? {};
          const request: ApprovalInterrupt = {
            kind: 'turnpike.approval',
            run_id: of.run.run_id,
            digest,
            tool: name,
            tool_call_id: call.id,
          };
          // It ends this attempt with an error of the graph. When the graph is resumed, it returns.
          interrupt(request);
        }
        return calls.execute(call, config);
      },
    });
    this.#registered = registered;
    this.#calls = calls;
  }

  /** What the schema of the tool refuses is proposed too, so that it is recorded. */
  override async invoke(...given: Parameters<DynamicStructuredTool['invoke']>): Promise<never> {
    try {
      return (await super.invoke(...given)) as never;
    } catch (error) {
      const [toolCall, config] = given as unknown as [ToolRunnableConfig['toolCall'], ToolRunnableConfig | undefined];
      if (error instanceof ToolInputParsingException && toolCall !== undefined)
        await this.#calls.execute(callIn(this.name, this.#registered, { ...config, toolCall }), config);
      throw error;
    }
  }
}

/** @throws UsageError if the tool is called without an id: then nothing distinguishes a repeated call from a new one */
function callIn(name: string, tool: RegisteredTool, config: ToolRunnableConfig | undefined): SdkToolCall {
  const { id, args } = config?.toolCall ?? {};
  if (id === undefined) throw usageError(`call the tool ${name} with a tool call that has an id`);
  // A graph that is resumed or begun again has the same numbers of steps.
  const step: unknown = config?.metadata?.['langgraph_step'];
  return { id, place: typeof step === 'number' ? step : null, tool, input: args as JsonObject };
}
