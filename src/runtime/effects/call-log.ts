// Logs errors of the service's code. A message may contain the input of the call: in a tree whose policy has a lane
// that withholds content, only its hash is logged (C83).

import { sha256 } from '../../core/contract/hash.js';
import type { TreeEngine } from '../../engine/tree-engine.js';
import { hasWithholdingLane } from '../../core/policy/authorize-run.js';
import type { Log } from '../../engine/ports/log.js';
import { rootRunIdOf } from '../../core/contract/run/run-context.js';

/** An error of the platform: its message contains no data of a call. */
export class PlatformError extends Error {}

/** Logs the error of a run's call. A tree that cannot be read counts as one that withholds. */
export class CallLog {
  readonly #log: Log;
  readonly #peekTree: TreeEngine['peek'];

  constructor(log: Log, tree: TreeEngine['peek']) {
    this.#log = log;
    this.#peekTree = tree;
  }

  info(message: string, run_id: string, error: unknown): void {
    void this.#write('info', message, { run_id, error });
  }

  error(message: string, run_id: string, error: unknown): void {
    void this.#write('error', message, { run_id, error });
  }

  async #write(
    level: 'info' | 'error',
    message: string,
    { run_id, error }: { readonly run_id: string; readonly error: unknown },
  ): Promise<void> {
    const isShown = error instanceof PlatformError || !(await this.#isWithholding(run_id));
    this.#log[level](message, { run_id, error: isShown ? error : hashOf(error) });
  }

  async #isWithholding(run_id: string): Promise<boolean> {
    const tree = await this.#peekTree(rootRunIdOf(run_id)).catch(() => null);
    return tree?.policy == null || hasWithholdingLane(tree.policy);
  }
}

function hashOf(error: unknown): object {
  const text = textOf(error);
  return { withheld: { sha256: sha256(text), bytes: Buffer.byteLength(text) } };
}

/** Code can throw any value, even one that cannot be converted to text. */
function textOf(error: unknown): string {
  try {
    return String(error);
  } catch {
    return '';
  }
}
