// `turnpike/mcp`: an MCP server for agents, as the command `turnpike mcp` serves it.

export { mcpService, type McpOptions, type OfferOptions, type SessionOptions } from './options.js';
export type { AgentIdentity } from './run-door.js';
export { serveHttp, type HttpServing, type McpHttpServer } from './serve-http.js';
export { serveStdio, type StdioServing } from './serve-stdio.js';
export type { McpService } from './service.js';
export type { Leaving } from './stdio.js';
