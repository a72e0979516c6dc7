// The connections of an HTTP server: limits their number, and how much of their input is parsed.
//
// Node parses all requests of a chunk of 64 KiB before any of them has a response. So the data of a socket is given to
// the parser in small pieces, and held back while the connection has too many requests without a response. Data that is
// held back costs nothing when the client disconnects.

import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';

/** Size of the first piece of a chunk. It grows while pieces start no request, as in a request body. */
const PIECE_BYTES = 512;
const PIECE_BYTES_MAX = 65_536;
/** What a client may send after requests without a response. Beyond it, the connection is closed after those. */
const REST_BYTES_MAX = 131_072;

export interface ConnectionLimits {
  /** Maximum number of connections. A new one beyond it closes the connection that has been idle longest. */
  readonly connections: number;
  /** Requests of a connection without a response, at which parsing stops. At least 2: one may still need its body. */
  readonly requests: number;
}

interface ConnectionState {
  /** Requests without a response. */
  outstanding: number;
  /** Requests so far. */
  started: number;
  /** Whether input was discarded: then no request can follow. */
  isCut: boolean;
  /** Parses waiting input, within the limits. */
  feed: () => void;
}

export class HttpConnections {
  readonly #limits: ConnectionLimits;
  /** The connection that has been idle longest comes first. */
  readonly #sockets = new Map<Socket, ConnectionState>();

  constructor(server: Server, limits: ConnectionLimits) {
    this.#limits = limits;
    // The HTTP parser of an HTTPS server reads the secured socket.
    const event = server instanceof TlsServer ? 'secureConnection' : 'connection';
    server.on(event, (socket: Socket) => this.#add(socket));
    server.prependListener('request', (request, response) => this.#begin(request, response));
  }

  #add(socket: Socket): void {
    if (this.#sockets.size >= this.#limits.connections && !this.#closeIdle()) {
      socket.destroy();
      return;
    }
    const connection: ConnectionState = { outstanding: 0, started: 0, isCut: false, feed: () => undefined };
    this.#sockets.set(socket, connection);
    socket.once('close', () => this.#sockets.delete(socket));
    feedInPieces(socket, connection, this.#limits.requests);
  }

  #begin({ socket }: IncomingMessage, response: ServerResponse): void {
    const connection = this.#sockets.get(socket);
    if (connection === undefined) return;
    connection.outstanding += 1;
    connection.started += 1;
    response.once('close', () => {
      connection.outstanding -= 1;
      connection.feed();
      if (connection.outstanding > 0 || !this.#sockets.delete(socket) || socket.destroyed) return;
      this.#sockets.set(socket, connection);
      if (connection.isCut) socket.destroySoon();
    });
  }

  /** @returns whether an idle connection was closed */
  #closeIdle(): boolean {
    for (const [socket, { outstanding }] of this.#sockets) {
      if (outstanding > 0) continue;
      this.#sockets.delete(socket);
      socket.destroy();
      return true;
    }
    return false;
  }
}

/** Inserts itself between a socket and the HTTP parser, which has its listener on the socket already. */
function feedInPieces(socket: Socket, connection: ConnectionState, requests: number): void {
  const [parse] = socket.listeners('data') as ((piece: Buffer) => void)[];
  // Another version of Node may attach its parser in another way: then only the limit of connections applies.
  if (parse === undefined || socket.listenerCount('data') !== 1) return;
  let rest: Buffer | null = null;
  connection.feed = (): void => {
    let size = PIECE_BYTES;
    while (rest !== null && connection.outstanding < requests && !socket.isPaused() && !socket.destroyed) {
      const { started } = connection;
      const piece: Buffer = rest.subarray(0, size);
      rest = rest.length > size ? rest.subarray(size) : null;
      parse.call(socket, piece);
      size = connection.started === started ? Math.min(size * 2, PIECE_BYTES_MAX) : PIECE_BYTES;
    }
  };
  socket.removeListener('data', parse);
  socket.on('data', (chunk: Buffer) => {
    if (connection.isCut) return;
    rest = rest === null ? chunk : Buffer.concat([rest, chunk]);
    connection.feed();
    if (connection.outstanding < requests || bytesIn(rest) <= REST_BYTES_MAX) return;
    connection.isCut = true;
    rest = null;
  });
  socket.on('resume', connection.feed);
}

const bytesIn = (rest: Buffer | null): number => rest?.length ?? 0;
