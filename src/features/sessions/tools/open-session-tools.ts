// The tools of sessions as agents are offered them over MCP.

import type { JsonObject } from '../../../core/contract/json.js';
import type { OpenTools } from '../../../interfaces/mcp/added-tools.js';
import type { AddedToolResult, OfferedTool } from '../../../interfaces/mcp/offer.js';
import { toAnswerResult } from '../../../interfaces/mcp/tool-results.js';
import { toToolSchema } from '../../../interfaces/mcp/tool-schemas.js';
import {
  ReviewArguments,
  SessionOutput,
  TaskArguments,
  TaskOutput,
  VerificationArguments,
} from './session-tool-schemas.js';
import {
  callSessionTool,
  createSessionTools,
  toSessionCaller,
  type SessionToolAnswer,
  type SessionToolsOptions,
} from './session-tools.js';

/** Opens the session tools for the agents of one server. A token needs the right `sessions`. */
export const openSessionTools: OpenTools = ({ turnpike, agent, principal, options: { sessions = {} } }) => {
  if (sessions === null || principal?.rights.has('sessions') === false) return [];
  const role = principal === null ? {} : { role: toSessionCaller(principal).role };
  const tools = createSessionTools(turnpike.sessions, { ...sessions, ...role }, agent);
  return SESSION_TOOLS.map((offered) => ({ offered, call: (args) => callTool(offered.name, args, tools) }));
};

/** The commands whose answer may contain a step for the agent. Commands that only read give it no run. */
const STEP_COMMANDS: readonly string[] = ['start', 'next', 'replay', 'resume'];

async function callTool(tool: SessionToolName, args: JsonObject, tools: SessionToolsOptions): Promise<AddedToolResult> {
  const answer = await callSessionTool(tool, args, tools);
  const run = tool === 'task' && STEP_COMMANDS.some((name) => name === args['command']) ? runOf(answer) : undefined;
  return { result: toAnswerResult(answer), ...(run === undefined ? {} : { run }) };
}

/** The run of the step in an answer; undefined if the answer does not say which step is outstanding. */
function runOf({ success, data }: SessionToolAnswer): string | null | undefined {
  if (data === null || !('next_step' in data)) return undefined;
  const run_id = data.next_step?.run_id ?? null;
  return success || run_id !== null ? run_id : undefined;
}

type SessionToolName = Parameters<typeof callSessionTool>[0];

const SESSION_TOOLS: readonly (OfferedTool & { readonly name: SessionToolName })[] = [
  {
    name: 'task',
    title: 'Task',
    description:
      'Work through a spec step by step. start gives a session and its first next_step; do what its instruction says, ' +
      'then report it with next and the whole last_step_result, step_proof unchanged. replay gives the last answer again.',
    inputSchema: toToolSchema(TaskArguments),
    outputSchema: toToolSchema(TaskOutput),
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
  },
  {
    name: 'review',
    title: 'Review',
    description: 'Have the outstanding gate of a phase reviewed. Gives the gate_attempt_id that its report needs.',
    inputSchema: toToolSchema(ReviewArguments),
    outputSchema: toToolSchema(SessionOutput),
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
  },
  {
    name: 'verification',
    title: 'Verification',
    description: 'Run the command of the outstanding verification. Gives the receipt that its report needs.',
    inputSchema: toToolSchema(VerificationArguments),
    outputSchema: toToolSchema(SessionOutput),
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  },
];
