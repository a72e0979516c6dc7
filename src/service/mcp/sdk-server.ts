// Serves a connection with the official SDK: the SDK negotiates the protocol and pairs requests with responses; the
// connection lists the tools and executes the calls.

import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import {
  CallToolRequestSchema,
  ErrorCode,
  ListToolsRequestSchema,
  McpError,
  type Tool,
} from '@modelcontextprotocol/sdk/types.js';
import type { JsonObject } from '../../contract/json.js';
import { agentTrace } from '../../contract/trace-context.js';
import { IDEMPOTENCY_KEY } from '../../adapters/mcp/mcp-client.js';
import type { Log } from '../../ports/log.js';
import type { AgentConnection } from './agent-connection.js';

export type SdkServer = McpServer;

const KEY_CHARS_MAX = 256;
const INSTRUCTIONS =
  'Everything that you do here is a proposal: it is checked against policy, recorded, and has exactly one response. ' +
  'A refusal is an answer, with a code and a message; the same proposal again will not be allowed either. ' +
  'Use the tool of an action, or `propose` with a raw proposal. To work through a spec, begin with `task`.';

export function sdkServer(connection: AgentConnection, version: string, log: Log): SdkServer {
  const mcp = new McpServer({ name: 'turnpike', version }, { instructions: INSTRUCTIONS });
  // The low-level server: tools registered on `mcp` itself would need zod schemas, and would report errors by throwing.
  const { server } = mcp;
  server.registerCapabilities({ tools: {} });
  server.setRequestHandler(ListToolsRequestSchema, async ({ params }) => {
    // All tools are on one page, so this server never issues a cursor.
    if (params?.cursor !== undefined) throw new McpError(ErrorCode.InvalidParams, 'Unknown cursor');
    return { tools: (await listOfferedTools(connection, log)) as Tool[] };
  });
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, { requestId }) => {
    const key = params._meta?.[IDEMPOTENCY_KEY] ?? null;
    if (key !== null && !isKey(key))
      throw new McpError(ErrorCode.InvalidParams, `${IDEMPOTENCY_KEY} is not a valid key`);
    const args = (params.arguments ?? {}) as JsonObject;
    const trace = agentTrace(params._meta?.['traceparent']);
    const answer = await connection.call({ name: params.name, args, request_id: requestId, key, ...trace });
    if (answer === null) throw new McpError(ErrorCode.InvalidParams, 'Unknown tool');
    return answer;
  });
  // The error message may quote the request, which must not be logged.
  server.onerror = () => log.info('a message over MCP was out of place');
  return mcp;
}

const isKey = (key: unknown): key is string =>
  typeof key === 'string' && key.length >= 1 && key.length <= KEY_CHARS_MAX && key.isWellFormed();

async function listOfferedTools(connection: AgentConnection, log: Log): ReturnType<AgentConnection['tools']> {
  try {
    return await connection.tools();
  } catch (error) {
    log.error('the policy cannot be offered over MCP', { error });
    throw new McpError(ErrorCode.InternalError, 'The service could not do this: its log says why');
  }
}
