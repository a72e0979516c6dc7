// The tools that agents are offered over MCP: one for raw proposals, one for each action that the policy allows, one
// for each registered tool that their lane lists, and those of features. The offer authorizes nothing: the pinned
// policy of a run decides.

import type { ToolDefinition, ActionDefinition } from '../../core/contract/policy/catalogue.js';
import type { JsonObject } from '../../core/contract/json.js';
import type { Policy } from '../../core/policy/policy.js';
import type { ToolCallResult } from './tool-results.js';
import {
  toToolSchema,
  NewRunArguments,
  NewRunOutput,
  RunArgument,
  ProposeArguments,
  Reasoning,
  StepAnswer,
  type ToolSchema,
} from './tool-schemas.js';
import Type from 'typebox';

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
