// MCP servers on a complete Turnpike, with the official client of the SDK.

import type { Client as ModernClient } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import { manifestPolicySource } from '../../../src/home/policy/manifest-policy-source.js';
import { IDEMPOTENCY_KEY } from '../../../src/core/contract/idempotency-key.js';
import { winstonLog } from '../../../src/system/winston-log.js';
import type { StepTrace } from '../../../src/core/contract/run/step-trace.js';
import type { McpService } from '../../../src/interfaces/mcp/agent-connection.js';
import { mcpService, type McpOptions, createConnection } from '../../../src/interfaces/mcp/mcp-service.js';
import { sdkServer } from '../../../src/interfaces/mcp/sdk-server.js';
import type { Bench } from '../../fixtures/bench.js';
import { TEST_CASE } from '../../fixtures/in-one-case.js';

export const silent = winstonLog('silent');

/** An MCP service on a test Turnpike, with the policy of that Turnpike. */
export const serviceOn = (bench: Bench, options: Partial<McpOptions> = {}): McpService =>
  mcpService({
    turnpike: bench.turnpike,
    policies: manifestPolicySource(bench.contract),
    log: silent,
    ...options,
    agent: { case: TEST_CASE, ...options.agent },
  });

let connections = 0;

/** A client on its own connection, without a transport between them. */
export async function clientOf(service: McpService, id = `connection-${(connections += 1)}`): Promise<Client> {
  const [here, there] = InMemoryTransport.createLinkedPair();
  await sdkServer(createConnection(service, id), service, 'legacy').connect(there);
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(here);
  return client;
}

export interface Called {
  readonly isError: boolean;
  readonly structured: Readonly<Record<string, unknown>> | undefined;
  readonly text: string;
  readonly content: CallToolResult['content'];
  readonly run_id: unknown;
}

/** The clients of both SDKs. */
type AnyClient = Pick<Client, 'callTool'> | Pick<ModernClient, 'callTool'>;

/** Calls a tool, with an idempotency key if one is given. */
export async function call(client: AnyClient, name: string, args: object = {}, key?: string): Promise<Called> {
  const _meta = key === undefined ? {} : { _meta: { [IDEMPOTENCY_KEY]: key } };
  const result = (await client.callTool({ name, arguments: { ...args }, ..._meta })) as CallToolResult;
  const [first] = result.content;
  return {
    isError: result.isError ?? false,
    structured: result.structuredContent,
    text: first?.type === 'text' ? first.text : '',
    content: result.content,
    run_id: result._meta?.['turnpike/run-id'],
  };
}

/** Sends one body to an MCP server over HTTP, without a client. */
export const postTo = (
  { url, token }: { readonly url: string; readonly token: string },
  body: unknown,
  headers: object = {},
): Promise<Response> =>
  fetch(url, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      ...headers,
    },
    body: JSON.stringify(body),
  });

export const GREETING = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
};

/** Opens an MCP session. @returns its id */
export async function openSession(server: { readonly url: string; readonly token: string }): Promise<string> {
  const response = await postTo(server, GREETING);
  await response.text();
  return response.headers.get('mcp-session-id') ?? 'none';
}

export async function traces(bench: Bench): Promise<StepTrace[]> {
  return (await bench.entries()).flatMap((entry) => (entry.type === 'step_trace' ? [entry.body] : []));
}
