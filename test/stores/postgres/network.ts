// A network between a store and its server. It loses a commit, or its answer, with the connection or silently.

import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

export type Loss =
  | 'none'
  | 'of the commit'
  | 'of its answer'
  | 'of everything'
  /** The commit stays in the network until `release`. */
  | 'of time';

export class Network {
  loss: Loss = 'none';
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #late: (() => void)[] = [];

  /** @param commit what the message of a commit contains: by default, the name of its prepared statement */
  constructor(port: number, commit = 'turnpike_commit\0') {
    this.#server = createServer((near) => {
      const far = connect(port, '127.0.0.1');
      const cut = () => {
        near.destroy();
        far.destroy();
      };
      for (const socket of [near, far]) {
        this.#sockets.add(socket);
        socket.on('error', cut);
      }
      far.on('close', cut);
      // The server does not learn at once that a client behind a lost network has gone.
      near.on('close', () => this.#late.length === 0 && far.destroy());
      this.#forward(near, far, commit, cut);
    });
  }

  #forward(near: Socket, far: Socket, commit: string, cut: () => void): void {
    let isCommit = false;
    near.on('data', (bytes) => {
      if (this.loss === 'of everything') return;
      isCommit = bytes.includes(commit);
      if (isCommit && this.loss === 'of the commit') cut();
      else if (isCommit && this.loss === 'of time') this.#late.push(() => far.write(bytes));
      else far.write(bytes);
    });
    far.on('data', (bytes) => {
      if (isCommit && this.loss === 'of its answer') cut();
      else if (!near.destroyed) near.write(bytes);
    });
  }

  /** How many commits are in the network. */
  get late(): number {
    return this.#late.length;
  }

  /** Delivers what is still in the network. */
  release(): void {
    for (const deliver of this.#late.splice(0)) deliver();
  }

  async port(): Promise<number> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return (this.#server.address() as AddressInfo).port;
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}
