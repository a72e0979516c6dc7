// The network between one worker and the server of the database. It delays, cuts, and half-opens connections, and it
// delivers late. It can act when a certain statement passes, before it, or between it and its answer.

import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** What happens to a statement that passes. */
export type Trap =
  /** The connection is cut, and the statement is lost. */
  | 'cut before'
  /** The statement arrives, and its answer is lost with the connection. */
  | 'cut before the answer'
  /** The connection is cut at once, and the statement arrives later. */
  | 'late'
  /** The answer arrives, and the connection is cut right after it. */
  | 'cut after the answer';

interface SetTrap {
  readonly text: string;
  readonly trap: Trap;
  readonly onSprung: () => void;
}

/** How late a statement arrives, in ms. */
const LATE_MS = [20, 200, 1_200] as const;

export class Proxy {
  readonly #server: Server;
  readonly #links = new Set<Link>();
  /** Delay of every byte in both directions, in ms. */
  delayMs = 0;
  /** Cuts each connection after this many messages of the client; null: never. */
  cutEvery: number | null = null;
  #trap: SetTrap | null = null;
  #isDown = false;
  #late = 0;

  constructor(port: number) {
    this.#server = createServer((near) => {
      if (this.#isDown) {
        near.destroy();
        return;
      }
      const link = new Link(near, connect(port, '127.0.0.1'), this);
      this.#links.add(link);
      link.onEnd = () => this.#links.delete(link);
    });
  }

  async listen(address: string): Promise<number> {
    await new Promise<void>((resolve) => this.#server.listen(0, address, resolve));
    return (this.#server.address() as AddressInfo).port;
  }

  /** Springs once, on the next statement that contains the text. */
  set(text: string, trap: Trap, onSprung: () => void = () => undefined): void {
    this.#trap = { text, trap, onSprung };
  }

  /** Removes the trap. */
  clear(): void {
    this.#trap = null;
  }

  /** @returns the trap for a message of the client, which is then gone */
  spring(bytes: Buffer): Trap | null {
    if (this.#trap === null || !bytes.includes(this.#trap.text)) return null;
    const { trap, onSprung } = this.#trap;
    this.#trap = null;
    onSprung();
    return trap;
  }

  lateMs(): number {
    this.#late += 1;
    return LATE_MS[this.#late % LATE_MS.length] ?? 0;
  }

  /** Cuts all connections. */
  cut(): void {
    for (const link of [...this.#links]) link.cut();
  }

  /** Bytes of the open connections disappear, and the server keeps the connections; `end` cuts them. */
  halfOpen(): { readonly end: () => void } {
    const links = [...this.#links];
    for (const link of links) link.isDropping = true;
    return { end: () => links.forEach((link) => link.cut()) };
  }

  /** Bytes wait; `end` delivers them. */
  hold(): { readonly end: () => void } {
    const links = [...this.#links];
    for (const link of links) link.hold();
    return { end: () => links.forEach((link) => link.release()) };
  }

  /** No connection is possible until `up`. */
  down(): void {
    this.#isDown = true;
    this.cut();
  }

  up(): void {
    this.#isDown = false;
  }

  close(): void {
    this.#server.close();
    this.cut();
  }
}

/** One connection. */
class Link {
  isDropping = false;
  onEnd = (): void => undefined;
  readonly #near: Socket;
  readonly #far: Socket;
  readonly #proxy: Proxy;
  readonly #lanes: readonly [Lane, Lane];
  #messages = 0;
  /** What happens when the answer of the trapped statement arrives. */
  #awaited: 'cut' | 'deliver and cut' | null = null;

  constructor(near: Socket, far: Socket, proxy: Proxy) {
    [this.#near, this.#far, this.#proxy] = [near, far, proxy];
    for (const socket of [near, far]) socket.setNoDelay(true).on('error', () => this.cut());
    this.#lanes = [new Lane(far, proxy), new Lane(near, proxy)];
    near.on('data', (bytes) => this.#fromClient(bytes));
    far.on('data', (bytes) => this.#fromServer(bytes));
    far.on('close', () => this.cut());
    near.on('close', () => {
      // A server behind a lost network does not notice that its client has gone.
      if (!this.isDropping && !this.#isLate) this.cut();
    });
  }

  #isLate = false;

  #fromClient(bytes: Buffer): void {
    if (this.isDropping) return;
    this.#messages += 1;
    const { cutEvery } = this.#proxy;
    if (cutEvery !== null && this.#messages >= cutEvery) {
      this.cut();
      return;
    }
    const trap = this.#proxy.spring(bytes);
    if (trap === 'cut before') {
      this.cut();
      return;
    }
    if (trap === 'late') {
      this.#deliverLate(bytes);
      return;
    }
    if (trap === 'cut before the answer') this.#awaited = 'cut';
    if (trap === 'cut after the answer') this.#awaited = 'deliver and cut';
    this.#lanes[0].send(bytes);
  }

  #fromServer(bytes: Buffer): void {
    if (this.isDropping || this.#isLate) return;
    if (this.#awaited === 'cut') {
      this.cut();
      return;
    }
    if (this.#awaited === 'deliver and cut') {
      this.#near.end(bytes);
      this.#far.destroy();
      return;
    }
    this.#lanes[1].send(bytes);
  }

  #deliverLate(bytes: Buffer): void {
    this.#isLate = true;
    this.#near.destroy();
    setTimeout(() => {
      this.#far.write(bytes, () => setTimeout(() => this.cut(), this.#proxy.lateMs()));
    }, this.#proxy.lateMs());
  }

  hold(): void {
    for (const lane of this.#lanes) lane.hold();
  }

  release(): void {
    for (const lane of this.#lanes) lane.release();
  }

  cut(): void {
    this.#near.destroy();
    this.#far.destroy();
    this.onEnd();
  }
}

/** One direction of a connection: bytes stay in their order. */
class Lane {
  readonly #to: Socket;
  readonly #proxy: Proxy;
  #held: Buffer[] | null = null;
  /** Bytes that wait for their delay. */
  readonly #delayed: Buffer[] = [];
  #lastAt = 0;

  constructor(to: Socket, proxy: Proxy) {
    this.#to = to;
    this.#proxy = proxy;
  }

  send(bytes: Buffer): void {
    const now = performance.now();
    const at = Math.max(this.#lastAt, now + this.#proxy.delayMs);
    this.#lastAt = at;
    if (at <= now && this.#delayed.length === 0) {
      this.#write(bytes);
      return;
    }
    this.#delayed.push(bytes);
    // Timers may fire in another order: each delivers the oldest bytes.
    setTimeout(() => this.#write(this.#delayed.shift() ?? Buffer.of()), at - now);
  }

  #write(bytes: Buffer): void {
    if (this.#held !== null) this.#held.push(bytes);
    else if (!this.#to.destroyed) this.#to.write(bytes);
  }

  hold(): void {
    this.#held ??= [];
  }

  release(): void {
    const held = this.#held ?? [];
    this.#held = null;
    for (const bytes of held) this.#write(bytes);
  }
}
