// Serves a connection with the official SDK: the SDK negotiates the protocol and pairs requests with responses; the
// connection lists the tools and executes the calls.

import {
  McpServer,
  ProtocolError,
  ProtocolErrorCode,
  type CallToolResult,
  type Tool,
} from '@modelcontextprotocol/server';
import { drawToken } from '../../stores/keys/access-token.js';
import { IDEMPOTENCY_KEY } from '../../core/contract/idempotency-key.js';
import { type JsonObject, parseOwnJson } from '../../core/contract/json.js';
import { agentTrace } from '../../core/contract/trace-context.js';
import type { Log } from '../../engine/ports/log.js';
import type { AgentConnection } from './agent-connection.js';
import { RUN_ID_META, type ToolCallResult } from './tool-results.js';

/** `legacy`: protocol 2025-11-25 and older, with sessions. `modern`: 2026-07-28, without. */
type ProtocolEra = 'legacy' | 'modern';

const KEY_CHARS_MAX = 256;
/** The error of the SDK may quote the request, which must not be logged. */
export const MISPLACED_MESSAGE = 'a message over MCP was out of place';
const INSTRUCTIONS =
  'Everything that you do here is a proposal: it is checked against policy, recorded, and has exactly one response. ' +
  'A refusal is an answer, with a code and a message; the same proposal again will not be allowed either. ' +
  'Use the tool of an action, or `propose` with a raw proposal. To work through a spec, begin with `task`.';

export function sdkServer(
  connection: AgentConnection,
  { version, log }: { readonly version: string; readonly log: Log },
  era: ProtocolEra,
): McpServer {
  const mcp = new McpServer(
    { name: 'turnpike', version },
    { capabilities: { tools: { listChanged: false } }, instructions: INSTRUCTIONS },
  );
  // The low-level server: tools registered on `mcp` itself would need zod schemas, and would report errors by throwing.
  const { server } = mcp;
  server.setRequestHandler('tools/list', async ({ params }) => {
    // All tools are on one page, so this server never issues a cursor.
    if (params?.cursor !== undefined) throw invalidParams('Unknown cursor');
    return { tools: (await listOfferedTools(connection, log)) as unknown as Tool[] };
  });
  server.setRequestHandler('tools/call', async ({ params }, { mcpReq }) => {
    const { _meta: meta } = mcpReq;
    const key = meta?.[IDEMPOTENCY_KEY] ?? null;
    if (key !== null && !isKey(key)) throw invalidParams(`${IDEMPOTENCY_KEY} is not a valid key`);
    // Without sessions, a client may use one id for many requests: it identifies no call.
    const request_id = era === 'modern' ? drawToken() : mcpReq.id;
    const args = (params.arguments ?? {}) as JsonObject;
    const call = { name: params.name, args, request_id, key, ...agentTrace(meta?.['traceparent']) };
    const { result, isListed } = await connection.call(call);
    if (!isListed) checkUnlistedCall(result, log);
    return result as CallToolResult;
  });
  server.onerror = () => log.info(MISPLACED_MESSAGE);
  return mcp;
}

const invalidParams = (message: string, data?: unknown): ProtocolError =>
  new ProtocolError(ProtocolErrorCode.InvalidParams, message, data);

/**
 * The ledger has recorded a call of a tool that is not listed (decision 0048). Its client gets the error of the
 * protocol, with the response of the step.
 * @throws ProtocolError unless the run has pinned a policy that allows the call
 */
function checkUnlistedCall({ isError, structuredContent, content, _meta }: ToolCallResult, log: Log): void {
  if (isError !== true) return;
  const [first] = content;
  // No run has received the call: its run has ended, or the service cannot take it now.
  if (structuredContent === undefined) log.warn('a call over MCP of a tool that is not listed went into no run');
  const data =
    structuredContent === undefined && first?.type === 'text'
      ? parseOwnJson(first.text)
      : { run_id: _meta?.[RUN_ID_META], response: structuredContent };
  throw invalidParams('Unknown tool', data);
}

const isKey = (key: unknown): key is string =>
  typeof key === 'string' && key.length >= 1 && key.length <= KEY_CHARS_MAX && key.isWellFormed();

async function listOfferedTools(connection: AgentConnection, log: Log): ReturnType<AgentConnection['tools']> {
  try {
    return await connection.tools();
  } catch (error) {
    log.error('the policy cannot be offered over MCP', { error });
    throw new ProtocolError(ProtocolErrorCode.InternalError, 'The service could not do this: its log says why');
  }
}
