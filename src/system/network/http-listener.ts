// HTTP over TCP. The caller handles requests and decides what they may do; this file limits how many requests there are
// and how long they take.

import { createServer, type IncomingMessage, type Server, type ServerOptions, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { UsageError } from '../../core/errors.js';
import { errorCode } from '../error-code.js';
import { HttpConnections } from './http-connections.js';
import { noteArrival } from '../system-pace.js';
import type { TlsCertificate, TlsCredentials } from './tls-certificate.js';

/** Maximum number of connections; a new one beyond it closes the connection that has been idle longest. */
const CONNECTIONS_MAX = 512;
/** Requests of one connection without a response; later ones are parsed when those have their responses. */
const REQUESTS_MAX = 2;
const HEADER_BYTES_MAX = 16_384;
const HEADERS_MAX = 64;
/** Time limits for all headers of a request, and for the whole request, in ms. */
const HEADERS_MS = 10_000;
const REQUEST_MS = 30_000;
const KEEP_ALIVE_MS = 5_000;
/** A connection without traffic for this time is closed, in ms. Longer than the interval of keep-alive comments. */
const SILENT_MS = 120_000;
const CHECK_MS = 5_000;
const IDLE_CHECK_MS = 20;
/** Connections in their TLS handshake, and the time limit of one, in ms. */
const HANDSHAKES_MAX = 128;
const HANDSHAKE_MS = 10_000;

export interface HttpListenOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** Must always respond in the end: if it throws, the connection is closed and `onError` gets the error. */
  readonly handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  readonly onError: (error: unknown) => void;
  /** Serves HTTPS. Default: HTTP. */
  readonly tls?: TlsCertificate | undefined;
  /** Takes over a connection that requests another protocol. Default: upgrades are refused. */
  readonly upgrade?: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
  /** Maximum number of connections. Default: 512. */
  readonly connections?: number;
  /** Maximum size of the headers of a request. Default: 16 KiB. */
  readonly headerBytes?: number;
}

export interface HttpListener {
  readonly port: number;
  /** Accepts no more requests, waits `grace` ms for those in flight, and closes the remaining connections. */
  close(grace: number): Promise<void>;
}

/** @throws UsageError if the address cannot be listened on */
export async function listenHttp(options: HttpListenOptions): Promise<HttpListener> {
  const { host, port, handle, onError, upgrade, tls, connections = CONNECTIONS_MAX } = options;
  const serverOptions = { ...SERVER_OPTIONS, maxHeaderSize: options.headerBytes ?? HEADER_BYTES_MAX };
  const server = tls === undefined ? createServer(serverOptions) : createSecureServer(tls, serverOptions);
  server.maxHeadersCount = HEADERS_MAX;
  server.timeout = SILENT_MS;
  server.on('request', (request, response) => {
    handle(request, response).catch((error: unknown) => {
      onError(error);
      response.destroy();
    });
  });
  server.on('connection', noteArrival);
  // Another protocol attaches its own listeners to the socket.
  if (upgrade === undefined) {
    new HttpConnections(server, { connections, requests: REQUESTS_MAX });
  } else {
    server.maxConnections = connections;
    server.on('upgrade', upgrade);
  }
  try {
    await listen(server, host, port);
  } catch (error) {
    tls?.close();
    throw error;
  }
  server.on('error', onError);
  return { port: (server.address() as AddressInfo).port, close: (grace) => closeServer(server, grace) };
}

const SERVER_OPTIONS = {
  headersTimeout: HEADERS_MS,
  requestTimeout: REQUEST_MS,
  keepAliveTimeout: KEEP_ALIVE_MS,
  connectionsCheckingInterval: CHECK_MS,
};

function createSecureServer(tls: TlsCertificate, serverOptions: ServerOptions): Server {
  const secureOptions = ({ cert, key }: TlsCredentials) => ({ cert, key, minVersion: 'TLSv1.2' }) as const;
  const server = createTlsServer({
    ...serverOptions,
    ...secureOptions(tls.credentials),
    handshakeTimeout: HANDSHAKE_MS,
  });
  limitHandshakes(server, HANDSHAKES_MAX);
  tls.watch((credentials) => server.setSecureContext(secureOptions(credentials)));
  server.on('close', () => tls.close());
  return server;
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
    // A connection becomes idle with its response, and would otherwise be kept alive for another request.
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

// Limits the connections that have not finished their TLS handshake: they have no request that could be limited.

/** Inserts itself into an HTTPS server. A new handshake beyond the limit closes the oldest unfinished one. */
function limitHandshakes(server: TlsServer, handshakesMax: number): void {
  /** By remote address and port: the secured socket is another object than the connection. */
  const unfinished = new Map<string, Socket>();
  server.on('connection', (socket: Socket) => {
    const name = nameOf(socket);
    unfinished.set(name, socket);
    socket.once('close', () => {
      if (unfinished.get(name) === socket) unfinished.delete(name);
    });
    if (unfinished.size <= handshakesMax) return;
    const [oldest] = unfinished.values();
    oldest?.destroy();
  });
  server.on('secureConnection', (socket) => unfinished.delete(nameOf(socket)));
}

const nameOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress ?? ''} ${remotePort ?? ''}`;
