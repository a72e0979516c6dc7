// HTTP over TCP: the only file that listens on a port. What a request may do is decided by whoever handles it; here
// stands only how much and how long anybody may ask.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { UsageError } from '../../errors.js';
import { errorCode } from '../system/error-code.js';
import { HttpConnections } from './http-connections.js';
import { noteArrival } from '../system/system-pace.js';

/** Connections at the same time; for one more, the one is closed that has been idle longest. */
const CONNECTIONS_MAX = 512;
/** Requests of one connection without an answer; what comes after them is parsed later. */
const REQUESTS_MAX = 2;
const HEADER_BYTES_MAX = 16_384;
const HEADERS_MAX = 64;
/** For all headers of a request, and for all of it. */
const HEADERS_MS = 10_000;
const REQUEST_MS = 30_000;
const KEEP_ALIVE_MS = 5_000;
/** A connection on which nothing moves for so long is closed. Longer than the pauses between keep-alive comments. */
const SILENT_MS = 120_000;
const CHECK_MS = 5_000;
const IDLE_CHECK_MS = 20;

export interface HttpListenOptions {
  readonly host: string;
  /** 0: any port that is free. */
  readonly port: number;
  /** Made to answer in the end, whatever happens: what it throws closes the connection, and is told to `failed`. */
  readonly handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  readonly onError: (error: unknown) => void;
  /** Takes over a connection that asks for another protocol. Default: none is given up. */
  readonly upgrade?: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
}

export interface HttpListener {
  readonly port: number;
  /** Takes no more requests, gives those under way `grace` milliseconds, and hangs up on whoever is left. */
  close(grace: number): Promise<void>;
}

/** @throws UsageError where the address cannot be listened on */
export async function listenHttp(options: HttpListenOptions): Promise<HttpListener> {
  const { host, port, handle, onError, upgrade } = options;
  const server = createServer({
    maxHeaderSize: HEADER_BYTES_MAX,
    headersTimeout: HEADERS_MS,
    requestTimeout: REQUEST_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionsCheckingInterval: CHECK_MS,
  });
  server.maxHeadersCount = HEADERS_MAX;
  server.timeout = SILENT_MS;
  server.on('request', (request, response) => {
    handle(request, response).catch((error: unknown) => {
      onError(error);
      response.destroy();
    });
  });
  server.on('connection', noteArrival);
  // Another protocol has its own listeners on the socket.
  if (upgrade === undefined) {
    new HttpConnections(server, { connections: CONNECTIONS_MAX, requests: REQUESTS_MAX });
  } else {
    server.maxConnections = CONNECTIONS_MAX;
    server.on('upgrade', upgrade);
  }
  await listen(server, host, port);
  server.on('error', onError);
  return { port: (server.address() as AddressInfo).port, close: (grace) => closeServer(server, grace) };
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause) => {
      const message = `${host}:${port} cannot be listened on (${errorCode(cause)}): name another address`;
      reject(new UsageError({ code: 'USAGE', message, cause }));
    });
    server.listen({ host, port }, () => {
      server.removeAllListeners('error');
      resolve();
    });
  });
}

function closeServer(server: Server, grace: number): Promise<void> {
  return new Promise((resolve) => {
    // A connection is idle as soon as it has its answer, and would else be kept alive for another request.
    const idle = setInterval(() => server.closeIdleConnections(), IDLE_CHECK_MS);
    const timer = setTimeout(() => server.closeAllConnections(), grace);
    server.close(() => {
      clearInterval(idle);
      clearTimeout(timer);
      resolve();
    });
    server.closeIdleConnections();
  });
}
