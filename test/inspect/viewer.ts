// A real viewer in its own process: @xstate/inspect with xstate 4.

import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { ROOT } from '../root.js';

export type Seen = Readonly<Record<string, unknown>> & { readonly type?: string };

const WAIT_MS = 20_000;

export class Viewer {
  readonly seen: Seen[] = [];
  readonly #process: ChildProcessWithoutNullStreams;
  #waiting: (() => void)[] = [];

  /** @param url the server address as Turnpike prints it */
  constructor(url: string) {
    const program = join(ROOT, 'test/fixtures/xstate-inspect-viewer.mjs');
    this.#process = spawn(process.execPath, [program, url.replace(/^ws:\/\//, '')], { stdio: 'pipe' });
    createInterface({ input: this.#process.stdout }).on('line', (line) => {
      this.seen.push(JSON.parse(line) as Seen);
      for (const look of this.#waiting.splice(0)) look();
    });
  }

  send(message: object): void {
    this.#process.stdin.write(`${JSON.stringify(message)}\n`);
  }

  /**
   * Resolves when the viewer has seen what satisfies the predicate. @throws Error with what it has seen, after a
   * timeout
   */
  async until(satisfies: (seen: readonly Seen[]) => boolean): Promise<readonly Seen[]> {
    const late = AbortSignal.timeout(WAIT_MS);
    while (!satisfies(this.seen)) {
      await new Promise<void>((resolve, reject) => {
        this.#waiting.push(resolve);
        late.addEventListener('abort', () => reject(new Error(`seen so far: ${JSON.stringify(this.seen)}`)));
      });
    }
    return this.seen;
  }

  async close(): Promise<void> {
    const gone = new Promise((resolve) => this.#process.once('exit', resolve));
    this.#process.kill();
    await gone;
  }
}
