// The network namespace of a worker: its only way to other processes is a pair of virtual interfaces. While one is
// down, packets are lost and no connection is closed, as between machines. It needs Linux and the right to do so.

import { execFileSync } from 'node:child_process';

let namespaces = 0;
let isPossible: boolean | null = null;

/** Whether this process may create network namespaces. */
export function canCreateNamespaces(): boolean {
  isPossible ??= attempt();
  return isPossible;
}

function attempt(): boolean {
  try {
    Namespace.create().remove();
    return true;
  } catch {
    return false;
  }
}

const ip = (...args: readonly string[]): void => void execFileSync('ip', args, { stdio: 'ignore' });

export class Namespace {
  readonly #name: string;
  readonly #link: string;
  /** The address of this process for the worker. */
  readonly near: string;
  /** The address of the worker. */
  readonly far: string;

  private constructor(name: string, net: string) {
    this.#name = name;
    this.#link = `${name}h`;
    this.near = `${net}.1`;
    this.far = `${net}.2`;
  }

  /** @throws if this process may not, or the machine has no `ip` */
  static create(): Namespace {
    namespaces += 1;
    // Other campaigns may run on this machine.
    const net = `10.${100 + (process.pid % 100)}.${namespaces % 256}`;
    const namespace = new Namespace(`tp${process.pid}n${namespaces}`, net);
    ip('netns', 'add', namespace.#name);
    try {
      namespace.#connect();
      return namespace;
    } catch (error) {
      namespace.remove();
      throw error;
    }
  }

  #connect(): void {
    const inside = ['-n', this.#name];
    ip('link', 'add', this.#link, 'type', 'veth', 'peer', 'name', 'veth', 'netns', this.#name);
    ip('addr', 'add', `${this.near}/30`, 'dev', this.#link);
    ip('link', 'set', this.#link, 'up');
    ip(...inside, 'addr', 'add', `${this.far}/30`, 'dev', 'veth');
    ip(...inside, 'link', 'set', 'veth', 'up');
    ip(...inside, 'link', 'set', 'lo', 'up');
  }

  /** The command that runs a program in the namespace, in the same process. */
  get command(): readonly string[] {
    return ['ip', 'netns', 'exec', this.#name];
  }

  down(): void {
    ip('link', 'set', this.#link, 'down');
  }

  up(): void {
    ip('link', 'set', this.#link, 'up');
  }

  remove(): void {
    try {
      ip('netns', 'del', this.#name);
    } catch {
      // It was removed before.
    }
  }
}
