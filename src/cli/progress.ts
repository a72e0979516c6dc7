import type { Io } from './io.js';
import { counted, escaped } from './terminal.js';

const EVERY = 64;

/**
 * A line on stderr that says how far a long input has come: only for a person who looks at stderr and not at the
 * responses themselves.
 */
export class Progress {
  readonly #io: Io;
  readonly #active: boolean;
  #shown = false;
  #count = 0;

  constructor(io: Io) {
    this.#io = io;
    this.#active = io.stderr.isTTY && !io.stdout.isTTY;
  }

  async show(counts: ReadonlyMap<string, number>): Promise<void> {
    this.#count += 1;
    if (!this.#active || this.#count % EVERY !== 0) return;
    this.#shown = true;
    await this.#write(`\r\u001b[K${proposals(counts)}`);
  }

  async clear(): Promise<void> {
    if (this.#shown) await this.#write('\r\u001b[K');
    this.#shown = false;
  }

  async #write(text: string): Promise<void> {
    await this.#io.stderr.write(text).catch(() => undefined);
  }
}

/** `3 proposals: 2 SUCCESS, 1 DENIED` */
export function proposals(counts: ReadonlyMap<string, number>): string {
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  const by = [...counts].map(([outcome, count]) => `${count} ${escaped(outcome)}`).join(', ');
  return `${counted(total, 'proposal')}${by === '' ? '' : `: ${by}`}`;
}
