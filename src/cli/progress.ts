import type { Io } from './io.js';
import { countText, escapeText } from './text/terminal.js';

const PROPOSALS_PER_UPDATE = 64;

/** A progress line on stderr for long inputs, shown only if stderr is a terminal and the responses are not. */
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
    if (!this.#active || this.#count % PROPOSALS_PER_UPDATE !== 0) return;
    this.#shown = true;
    await this.#write(`\r\u001b[K${proposalCountText(counts)}`);
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
export function proposalCountText(counts: ReadonlyMap<string, number>): string {
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  const by = [...counts].map(([outcome, count]) => `${count} ${escapeText(outcome)}`).join(', ');
  return `${countText(total, 'proposal')}${by === '' ? '' : `: ${by}`}`;
}
