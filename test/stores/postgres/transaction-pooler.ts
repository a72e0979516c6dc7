// A pooler that gives each transaction one of its server sessions, like PgBouncer with transaction pooling. It reads
// only what it needs of the protocol: a session is free again after a ReadyForQuery outside of a transaction.

import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

const READY_FOR_QUERY = 0x5a;
const IDLE = 0x49;
const HEADER_BYTES = 5;

interface ServerSession {
  readonly socket: Socket;
  /** The client that uses it now. */
  client: Socket | null;
  received: Buffer;
}

export class TransactionPooler {
  readonly #port: number;
  readonly #server: Server;
  readonly #sessions: ServerSession[] = [];
  readonly #sockets = new Set<Socket>();

  constructor(port: number) {
    this.#port = port;
    this.#server = createServer((client) => this.#serve(client));
  }

  async port(): Promise<number> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return (this.#server.address() as AddressInfo).port;
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #serve(client: Socket): void {
    this.#sockets.add(client);
    client.on('error', () => client.destroy());
    // The first message is the startup: it opens a session, which is free once it is ready.
    client.once('data', (startup) => {
      const session = this.#open(client);
      session.socket.write(startup);
      client.on('data', (bytes) => this.#sessionFor(client).socket.write(bytes));
    });
  }

  /** The session that the client uses, or else the last one that became free. */
  #sessionFor(client: Socket): ServerSession {
    const own = this.#sessions.find((session) => session.client === client);
    const session = own ?? this.#sessions.find((one) => one.client === null);
    if (session === undefined) throw new Error('no session is free: the test opens as many as it uses');
    session.client = client;
    return session;
  }

  #open(client: Socket): ServerSession {
    const session: ServerSession = { socket: connect(this.#port, '127.0.0.1'), client, received: Buffer.alloc(0) };
    this.#sockets.add(session.socket);
    this.#sessions.unshift(session);
    session.socket.on('error', () => session.socket.destroy());
    session.socket.on('data', (bytes: Buffer) => {
      const { client: current } = session;
      if (isReady(session, bytes)) this.#free(session);
      current?.write(bytes);
    });
    return session;
  }

  #free(session: ServerSession): void {
    session.client = null;
    this.#sessions.splice(this.#sessions.indexOf(session), 1);
    this.#sessions.unshift(session);
  }
}

/** Whether these bytes end with a ReadyForQuery outside of a transaction. */
function isReady(session: ServerSession, bytes: Buffer): boolean {
  session.received = Buffer.concat([session.received, bytes]);
  let ready = false;
  for (;;) {
    const { received } = session;
    if (received.length < HEADER_BYTES) return ready;
    const end = 1 + received.readUInt32BE(1);
    if (received.length < end) return ready;
    ready = received[0] === READY_FOR_QUERY && received[HEADER_BYTES] === IDLE;
    session.received = received.subarray(end);
  }
}
