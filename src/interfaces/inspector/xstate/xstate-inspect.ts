// A WebSocket for viewers of @xstate/inspect 0.8, on a port of its own. Viewers cannot send a header, so the path
// contains the secret, which is valid for this port only. Host and Origin are checked as for every request. The
// original server lets a viewer send events to the machines; this one only sends. The only message that it accepts from
// a viewer is `xstate.inspecting`.

import { timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocketServer, type WebSocket } from 'ws';
import { isJsonObject, readJson } from '../../../core/contract/json.js';
import { drawToken } from '../../../stores/keys/access-token.js';
import { listenHttp } from '../../../system/network/http-listener.js';
import type { InspectionHub } from './inspection-hub.js';
import { winstonLog } from '../../../system/winston-log.js';
import { UsageError } from '../../../core/errors.js';
import type { Log } from '../../../engine/ports/log.js';
import { sha256 } from '../../../core/contract/hash.js';
import { createRequestGuard, loopbackNames, type RequestGuard } from '../../service/request-guard.js';
import { isLoopback } from '../../../core/contract/safe-url.js';
import { hostForUrl } from '../../mcp/serve-http.js';

/** Options of a server for XState inspectors. */
export interface XstateInspectOptions {
  readonly hub: InspectionHub;
  /** Only a loopback address. Default: 127.0.0.1. */
  readonly host?: string;
  /** Default: any free port. */
  readonly port?: number;
  /** The secret in the path. Default: a random one. */
  readonly token?: string;
  /** Allowed values of the Origin header; a viewer that is not a page sends none. */
  readonly origins?: readonly string[];
  readonly log?: Log;
}

/** A WebSocket server for XState inspectors, on loopback. */
export interface XstateInspectServer {
  /** The server address for a viewer: `ws://127.0.0.1:PORT/SECRET`. */
  readonly url: string;
  /** Closes the connections of the viewers, then the server. */
  close(): Promise<void>;
}

const VIEWERS_MAX = 16;
const RECEIVED_BYTES_MAX = 65_536;
/**
 * Limit of unsent data for a viewer. A new viewer gets all known actors at once, about 10 kB each. A viewer that falls
 * further behind is disconnected and may reconnect.
 */
const UNSENT_BYTES_MAX = 64 * 1024 * 1024;

const NO_TOKENS = { find: () => null };

/** @throws UsageError if the address is not loopback, or the server cannot listen on it */
export async function serveXstateInspect(options: XstateInspectOptions): Promise<XstateInspectServer> {
  const { hub, host = '127.0.0.1', port = 0, token = drawToken(), origins = [], log = winstonLog('warn') } = options;
  if (!isLoopback(host)) {
    throw new UsageError({
      code: 'USAGE',
      message: `${host} is not a loopback address: viewers must run on this machine`,
    });
  }
  const server = new WebSocketServer({ noServer: true, maxPayload: RECEIVED_BYTES_MAX, perMessageDeflate: false });
  const path = sha256(`/${token}`);
  let guard: RequestGuard | null = null;
  const connect = async (request: IncomingMessage, connection: Duplex, head: Buffer): Promise<void> => {
    const refusal = await checkViewer(request, guard, path);
    const status = refusal ?? (server.clients.size >= VIEWERS_MAX ? '503 Service Unavailable' : null);
    if (status === null) server.handleUpgrade(request, connection, head, (viewer) => serveViewer(viewer, hub));
    else connection.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  };
  const upgrade = (request: IncomingMessage, connection: Duplex, head: Buffer): void => {
    connection.on('error', () => connection.destroy());
    void connect(request, connection, head);
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
      for (const viewer of server.clients) viewer.terminate();
      server.close();
      await closing;
    },
  };
}

/** @returns the HTTP status of the refusal, or null if the viewer may connect */
async function checkViewer(request: IncomingMessage, guard: RequestGuard | null, path: string): Promise<string | null> {
  if (guard === null) return '403 Forbidden';
  const { refusal } = await guard(request);
  if (refusal !== null) return refusal.status === 400 ? '400 Bad Request' : '403 Forbidden';
  const given = Buffer.from(sha256(request.url ?? ''));
  return timingSafeEqual(given, Buffer.from(path)) ? null : '401 Unauthorized';
}

function serveViewer(viewer: WebSocket, hub: InspectionHub): void {
  let stopListening: (() => void) | null = null;
  const unsubscribe = (): void => {
    stopListening?.();
    stopListening = null;
  };
  viewer.on('close', unsubscribe);
  viewer.on('error', () => viewer.terminate());
  viewer.on('message', (data: Buffer, isBinary: boolean) => {
    if (isBinary || stopListening !== null || !isInspecting(data.toString())) return;
    stopListening = hub.listen((message) => {
      if (viewer.bufferedAmount > UNSENT_BYTES_MAX) viewer.terminate();
      else if (viewer.readyState === viewer.OPEN) viewer.send(JSON.stringify(message));
    });
  });
}

function isInspecting(text: string): boolean {
  const message = readJson(text);
  return isJsonObject(message) && message['type'] === 'xstate.inspecting';
}
