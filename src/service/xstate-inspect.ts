// A WebSocket for viewers of @xstate/inspect, on a port of its own. They can send no header, so what lets one in stands
// in the path: a secret of this port alone, which opens nothing else. Host and Origin are asked as everywhere.

import { timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { drawToken } from '../adapters/keys/access-token.js';
import { listenHttp } from '../adapters/network/http-listener.js';
import type { InspectionHub } from '../adapters/inspector/inspection-hub.js';
import { winstonLog } from '../adapters/system/winston-log.js';
import { xstateInspectSocket } from '../adapters/inspector/xstate-inspect-socket.js';
import { UsageError } from '../errors.js';
import type { Log } from '../ports/log.js';
import { sha256 } from '../contract/hash.js';
import { createRequestGuard, loopbackNames, type RequestGuard } from './request-guard.js';
import { isLoopback } from './http/serve.js';
import { hostForUrl } from './mcp/serve-http.js';

/** Options of a server for XState inspectors. */
export interface XstateInspectOptions {
  readonly hub: InspectionHub;
  /** Only a loopback address. Default: 127.0.0.1. */
  readonly host?: string;
  /** Default: any that is free. */
  readonly port?: number;
  /** The secret in the path. Default: one is drawn. */
  readonly token?: string;
  /** Origins of pages that may look, as they stand in the Origin header; a viewer that is no page has none. */
  readonly origins?: readonly string[];
  readonly log?: Log;
}

/** A WebSocket server for XState inspectors, on loopback. */
export interface XstateInspectServer {
  /** What a viewer is given as its server: `ws://127.0.0.1:PORT/SECRET`. */
  readonly url: string;
  /** Closes the connections of the viewers, then the server. */
  close(): Promise<void>;
}

const NO_TOKENS = { find: () => null };

/** @throws UsageError where the address cannot be listened on, or is not loopback */
export async function serveXstateInspect(options: XstateInspectOptions): Promise<XstateInspectServer> {
  const { hub, host = '127.0.0.1', port = 0, token = drawToken(), origins = [], log = winstonLog('warn') } = options;
  if (!isLoopback(host)) {
    throw new UsageError({ code: 'USAGE', message: `${host} is no loopback address: viewers look from this machine` });
  }
  const socket = xstateInspectSocket(hub);
  const path = sha256(`/${token}`);
  let guard: RequestGuard | null = null;
  const upgrade = (request: IncomingMessage, connection: Duplex, head: Buffer): void => {
    connection.on('error', () => connection.destroy());
    const status = checkViewer(request, guard, path);
    if (status === null) socket.upgrade(request, connection, head);
    else connection.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  };
  const handle = (_request: IncomingMessage, response: { writeHead(status: number): { end(): unknown } }) =>
    Promise.resolve(void response.writeHead(426).end());
  const failed = (error: unknown): void => log.error('a viewer could not be served', { error });
  const listener = await listenHttp({ host, port, handle, onError: failed, upgrade });
  const names = loopbackNames(listener.port);
  guard = createRequestGuard({ hosts: names.hosts, origins, tokens: NO_TOKENS, isOpen: () => true });
  return {
    url: `ws://${hostForUrl(host)}:${listener.port}/${token}`,
    close: async () => {
      const closing = listener.close(0);
      socket.close();
      await closing;
    },
  };
}

/** Why a viewer does not come in, as HTTP says it; null where it does. */
function checkViewer(request: IncomingMessage, guard: RequestGuard | null, path: string): string | null {
  const refusal = guard === null ? null : guard(request).refusal;
  if (guard === null || refusal !== null) return refusal?.status === 400 ? '400 Bad Request' : '403 Forbidden';
  const given = Buffer.from(sha256(request.url ?? ''));
  return timingSafeEqual(given, Buffer.from(path)) ? null : '401 Unauthorized';
}
