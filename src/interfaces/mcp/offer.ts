// The tools that agents are offered over MCP: one for raw proposals, one for each action that the policy allows, one
// for each registered tool that their lane lists, and those of features. The offer authorizes nothing: the pinned
// policy of a run decides.

import type { ToolDefinition, ActionDefinition } from '../../core/contract/policy/catalogue.js';
import type { JsonObject } from '../../core/contract/json.js';
import type { Policy } from '../../core/policy/policy.js';
import type { ToolCallResult } from './tool-results.js';
import Type from 'typebox';
import type { Principal } from '../../engine/ports/token-book.js';
import type { Turnpike } from '../../host/turnpike.js';
import type { AddedToolMembers, AddedToolOptions } from '../../runtime/host-feature.js';
import { type AgentIdentity, RUN_END_CAUSES } from './run-gateway.js';
import { REASONING_CHARS_MAX } from '../../core/contract/run/proposal.js';
import { DecisionResponse, DetailedResponse, ExplainedResponse } from '../../core/contract/run/response.js';
import { TERMINAL_STATES } from '../../core/contract/run/run-context.js';
import { closed, Nullable, OneOf, RunId } from '../../core/contract/shapes.js';

type ToolSchema = Readonly<Record<string, unknown>> & { readonly type: 'object' };

/** The schema as plain JSON. Its outermost type must be an object: MCP allows no other. */
export const toToolSchema = (schema: object, more: object = {}): ToolSchema => ({
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  ...(JSON.parse(JSON.stringify({ ...schema, ...more })) as object),
  type: 'object',
});

const Text = (description: string) => Type.String({ description });

const Reasoning = Type.String({
  minLength: 1,
  maxLength: REASONING_CHARS_MAX,
  description: 'Why you want this. It is recorded, and changes no decision.',
});
const RunArgument = Type.Unsafe<string>({
  ...RunId,
  description: 'The run into which this goes: next_step.run_id of a session. Default: that of the outstanding step.',
});

/** One raw payload as text. An invalid proposal is rejected in the phases of the step, not here. */
const ProposeArguments = Type.Object(
  {
    proposal: Text(
      'The proposal as JSON text: an object with exactly schema_version ("1.0.0"), id (a new UUID), reasoning, action, args.',
    ),
    run_id: Type.Optional(RunArgument),
  },
  closed,
);

/** One response: explained, detailed or only the decision, by the exposure of the run. */
const StepAnswer = { anyOf: [ExplainedResponse, DetailedResponse, DecisionResponse] };

/** There is no argument: actor, role, lane and case of a run are those of the server. */
const NewRunArguments = Type.Object({}, closed);

const NewRunOutput = Type.Object(
  {
    run_id: Text('The run for your next proposals'),
    opened: Type.Boolean({ description: 'Whether this call has opened it' }),
    previous: Nullable(
      Type.Object(
        {
          run_id: Type.String(),
          state: OneOf(TERMINAL_STATES),
          cause: OneOf(Object.keys(RUN_END_CAUSES)),
        },
        { ...closed, description: 'The run before, and how it ended' },
      ),
    ),
  },
  closed,
);

/** A tool as `tools/list` shows it. */
export interface OfferedTool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly inputSchema: ToolSchema;
  readonly outputSchema: ToolSchema;
  /** Hints for clients that ask their users before a call. */
  readonly annotations: {
    readonly readOnlyHint: boolean;
    readonly destructiveHint: boolean;
    readonly idempotentHint: boolean;
    readonly openWorldHint: boolean;
  };
}

/** A tool of a feature, for the agents of one server. */
export interface AddedTool {
  readonly offered: OfferedTool;
  /** The text of an error that it throws is logged, and not shown. */
  call(args: JsonObject): Promise<AddedToolResult>;
}

export interface AddedToolResult {
  readonly result: ToolCallResult;
  /** The run into which proposals go that name none; null: the own run of the connection. Absent: as before. */
  readonly run?: string | null;
}

/** The meaning of a tool call. */
export type ToolMeaning =
  ProposalMeaning | { readonly kind: 'new_run' } | { readonly kind: 'added'; readonly tool: AddedTool };

/** A call that becomes a proposal: raw, or of one action. */
export type ProposalMeaning = { readonly kind: 'propose' } | ActionMeaning;

export interface ActionMeaning {
  readonly kind: 'action';
  readonly action: string;
  /** The name of a registered tool, whose arguments are the input of CALL_TOOL; null for other actions. */
  readonly tool: string | null;
  /** The arguments that the offer adds to those of the action. */
  readonly addedArguments: readonly string[];
}

export interface Offer {
  readonly tools: readonly OfferedTool[];
  /** Looks up own names only, so that `constructor` is not a tool. */
  meaning(name: string): ToolMeaning | undefined;
}

/** The tool names that MCP allows. */
const TOOL_NAME = /^[A-Za-z0-9_.-]{1,128}$/;
const CALL_TOOL = 'CALL_TOOL';

type OfferEntry = readonly [OfferedTool, ToolMeaning];

/** Which tools a server offers besides those of actions. */
interface OfferedParts {
  /** The tools of features. */
  readonly added: readonly AddedTool[];
  /** Whether an agent may open another run after one that was denied, failed or was cancelled. */
  readonly newRuns: boolean;
}

/**
 * Creates the offer of a policy for agents of one lane. In a fixed order: the built-in tools, those of features,
 * actions as the policy lists them, registered tools by name. Of two with the same name, the first is offered; the
 * other is reached with `propose`.
 */
export function createOffer(policy: Policy, lane: string, offered: OfferedParts): Offer {
  const entries = new Map<string, OfferEntry>();
  for (const entry of [
    [PROPOSE],
    offered.newRuns ? [NEW_RUN] : [],
    offered.added.map((tool): OfferEntry => [tool.offered, { kind: 'added', tool }]),
    actionEntries(policy),
    toolEntries(policy, lane),
  ].flat()) {
    const [{ name }] = entry;
    if (TOOL_NAME.test(name) && !entries.has(name)) entries.set(name, entry);
  }
  return {
    tools: [...entries.values()].map(([tool]) => tool),
    meaning: (name) => entries.get(name)?.[1],
  };
}

function actionEntries({ actions, catalogue }: Policy): readonly OfferEntry[] {
  return [...actions.keys()].flatMap((name) => {
    const definition = catalogue.action(name);
    if (definition === undefined) return [];
    return [
      proposalEntry(
        name.toLowerCase(),
        definition.summary,
        definition.args,
        { action: name, tool: null },
        hintsOf(definition),
      ),
    ];
  });
}

/** The registered tools that CALL_TOOL can reach from this lane, each as an MCP tool. */
function toolEntries({ actions, lanes, catalogue }: Policy, lane: string): readonly OfferEntry[] {
  const rule = actions.get(CALL_TOOL);
  const listed = lanes.get(rule?.lane ?? lane)?.allowed_actions.tools ?? [];
  if (rule === undefined) return [];
  return [...listed].sort().flatMap((name) => {
    const definition = catalogue.tool(name);
    if (definition === undefined) return [];
    const { summary, input } = definition;
    return [proposalEntry(name, summary, input, { action: CALL_TOOL, tool: name }, toolHints(definition))];
  });
}

/** A tool whose call becomes one proposal. Its own arguments are never confused with the added ones. */
function proposalEntry(
  name: string,
  summary: string,
  args: object,
  subject: { readonly action: string; readonly tool: string | null },
  annotations: OfferedTool['annotations'],
): OfferEntry {
  const { properties = {} } = args as { readonly properties?: Readonly<Record<string, unknown>> };
  const extra = Object.entries({ reasoning: Reasoning, run_id: RunArgument }).filter(
    ([key]) => !Object.hasOwn(properties, key),
  );
  const inputSchema = toToolSchema(args, { properties: { ...properties, ...Object.fromEntries(extra) } });
  const tool = {
    name,
    title: subject.tool ?? subject.action,
    description: `${summary} One call is one proposal: it is checked, recorded, and done only if policy allows it.`,
    inputSchema,
    outputSchema: RESPONSE,
    annotations,
  };
  return [tool, { kind: 'action', ...subject, addedArguments: extra.map(([key]) => key) }];
}

/** The hints of an action. FINISH changes no file and no record, but is not read-only: it ends the run. */
const hintsOf = ({ name, risk, idempotent, outside }: ActionDefinition): OfferedTool['annotations'] => ({
  readOnlyHint: (risk === 'none' && name !== 'FINISH') || risk === 'read',
  destructiveHint: risk === 'write' || risk === 'destructive',
  idempotentHint: idempotent,
  openWorldHint: outside || name === CALL_TOOL,
});

const toolHints = ({ idempotent, outside }: ToolDefinition): OfferedTool['annotations'] => ({
  readOnlyHint: false,
  destructiveHint: true,
  idempotentHint: idempotent,
  openWorldHint: outside,
});

const RESPONSE = toToolSchema(Type.Object({}), StepAnswer);

const PROPOSE: OfferEntry = [
  {
    name: 'propose',
    title: 'Propose',
    description: 'Propose one action as raw JSON text. It goes through all checks, and has exactly one response.',
    inputSchema: toToolSchema(ProposeArguments),
    outputSchema: RESPONSE,
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  },
  { kind: 'propose' },
];

const NEW_RUN: OfferEntry = [
  {
    name: 'new_run',
    title: 'New run',
    description:
      'Open another run after yours was denied, failed or was cancelled: an answer with RUN_ENDED says so. ' +
      'The new run is recorded, and its limits begin anew. While your run has not ended, this gives its id.',
    inputSchema: toToolSchema(NewRunArguments),
    outputSchema: toToolSchema(NewRunOutput),
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  },
  { kind: 'new_run' },
];

/** What an MCP server works on, in this process or through the process that owns the home directory. */
export type ServedTurnpike = Pick<Turnpike, 'remoteAgents'> & AddedToolMembers;

/** The agents of one server, and what their tools work on. */
export interface ToolContext {
  readonly turnpike: ServedTurnpike;
  readonly agent: AgentIdentity;
  /** The token of the agents; null if their client has none. */
  readonly principal: Principal | null;
  readonly options: AddedToolOptions;
}

/**
 * Opens the tools of a feature, in the order in which they are listed; none if the agents are not offered them.
 * @throws UsageError for an option that cannot be used
 */
export type OpenTools = (context: ToolContext) => readonly AddedTool[];
