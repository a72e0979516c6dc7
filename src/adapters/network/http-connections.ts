// The connections of an HTTP server: how many there are, and how much of what they send is parsed.
//
// Node parses all requests of a chunk before any of them has an answer, 64 KiB at a time. So what a socket brings is
// handed to the parser in small pieces, and no more of it while the connection has requests without an answer. What is
// not handed over costs nothing when the client hangs up.

import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** The first piece of a chunk. It is larger where a piece has begun no request, as those of a body do. */
const PIECE_BYTES = 512;
const PIECE_BYTES_MAX = 65_536;
/** What a client may send behind requests without an answer. With more, its connection is closed behind those. */
const REST_BYTES_MAX = 131_072;

export interface ConnectionLimits {
  /** Connections at the same time. For one more, the one is closed that has been idle longest. */
  readonly connections: number;
  /** Requests of a connection without an answer, from which on no more is parsed. At least 2: one may need its body. */
  readonly requests: number;
}

interface ConnectionState {
  /** Requests without an answer. */
  outstanding: number;
  /** Requests so far. */
  started: number;
  /** Whether something of it was thrown away: no request can follow. */
  isCut: boolean;
  /** Hands over what waits, as far as it may. */
  feed: () => void;
}

export class HttpConnections {
  readonly #limits: ConnectionLimits;
  /** The one that has been idle longest comes first. */
  readonly #sockets = new Map<Socket, ConnectionState>();

  constructor(server: Server, limits: ConnectionLimits) {
    this.#limits = limits;
    server.on('connection', (socket) => this.#add(socket));
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

  /** @returns whether there was one */
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

/** Puts itself between a socket and the parser of its server, which listens to the socket by now. */
function feedInPieces(socket: Socket, connection: ConnectionState, requests: number): void {
  const [parse] = socket.listeners('data') as ((piece: Buffer) => void)[];
  // Another version of Node may listen in another way: requests are then refused one by one.
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
