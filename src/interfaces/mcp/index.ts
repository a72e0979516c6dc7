// `turnpike/mcp`: an MCP server for agents, as the command `turnpike mcp` serves it.

export type { SessionOptions } from '../../features/sessions/sessions.js';
export { mcpService, type McpOptions, type OfferOptions } from './mcp-service.js';
export type { AgentIdentity } from './run-gateway.js';
export { serveHttp, type ServeMcpHttpOptions, type McpHttpServer } from './serve-http.js';
export { serveStdio, type ServeStdioOptions, type StdioEnding } from './serve-stdio.js';
export type { McpService } from './agent-connection.js';
