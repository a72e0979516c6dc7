// The sandbox of one case that several simulated workers change, each with its own memory of the usage.

import type { JsonObject } from '../../../src/core/contract/json.js';
import type {
  Effect,
  EffectResult,
  GatherRequest,
  PathFact,
  SandboxFacts,
} from '../../../src/core/contract/run/effect.js';
import type { Artifact } from '../../../src/core/contract/artifact-ref.js';
import type { Scheduler } from '../../fixtures/slow-store.js';
import { ABSENT, editedPolicy, proposal } from '../../fixtures/tree.js';

const BYTES_MAX = 100;
const FILES_MAX = 5;
const PATHS = 8;
const CONTENT_MAX = 40;

/** The shipped policy with small quotas. */
export const SMALL_QUOTAS: readonly Artifact[] = editedPolicy({
  actions: [
    ['  bytes_max: 104857600', `  bytes_max: ${BYTES_MAX}`],
    ['  files_max: 10000', `  files_max: ${FILES_MAX}`],
    ['denials_per_run_max: 10 ', 'denials_per_run_max: 1000 '],
  ],
});

/** How one worker sees the sandbox. */
export interface SandboxView {
  gather(request: GatherRequest): SandboxFacts;
  /** @returns null if the change cannot be made */
  change(effect: Effect): EffectResult | null;
  forgetUsage(): void;
}

export class SimulatedSandbox {
  readonly violations: string[] = [];
  readonly #files = new Map<string, number>();
  /** Runs whose effect was settled before it happened: nothing reserves it any more. */
  readonly #settled = new Set<string>();
  #late = 0;

  get bytes(): number {
    return [...this.#files.values()].reduce((sum, bytes) => sum + bytes, 0);
  }

  /** A proposal for any of a few files. */
  draw(scheduler: Scheduler): Record<string, unknown> {
    const path = `/sandbox/${scheduler.below(PATHS)}.txt`;
    if (scheduler.below(4) === 0) return proposal('DELETE_FILE', { path });
    return proposal('WRITE_FILE', { path, content: 'x'.repeat(1 + scheduler.below(CONTENT_MAX)) });
  }

  noteSettled(run_id: string): void {
    this.#settled.add(run_id);
  }

  view(): SandboxView {
    const view: { usage: { bytes: number; files: number } | null } = { usage: null };
    return {
      gather: ({ paths, usage }) => {
        view.usage ??= { bytes: this.bytes, files: this.#files.size };
        return { paths: paths.map((path) => this.#fact(path)), usage: usage ? { ...view.usage } : null };
      },
      change: (effect) => {
        const before = { bytes: this.bytes, files: this.#files.size };
        const result = this.#change(effect);
        if (view.usage !== null) {
          view.usage.bytes += this.bytes - before.bytes;
          view.usage.files += this.#files.size - before.files;
        }
        return result;
      },
      forgetUsage: () => (view.usage = null),
    };
  }

  #change({ action, args, run_id }: Effect): EffectResult | null {
    const path = textOf(args, 'path');
    if (action === 'DELETE_FILE') return this.#files.delete(path) ? { status: 'done', result: {} } : null;
    const bytes = textOf(args, 'content').length;
    this.#files.set(path, bytes);
    if (this.#settled.has(run_id)) this.#late += 1;
    if (this.bytes > BYTES_MAX + this.#late * CONTENT_MAX)
      this.violations.push(`after ${run_id} the case has ${this.bytes} of ${BYTES_MAX} bytes`);
    if (this.#files.size > FILES_MAX + this.#late)
      this.violations.push(`after ${run_id} the case has ${this.#files.size} of ${FILES_MAX} files`);
    return { status: 'done', result: { bytes_written: bytes } };
  }

  #fact(path: string): PathFact {
    const bytes = this.#files.get(path);
    return bytes === undefined ? ABSENT : { status: 'file', bytes, inode: '7', mtime_ns: '1' };
  }
}

const textOf = (args: JsonObject, name: string): string => {
  const value = args[name];
  return typeof value === 'string' ? value : '';
};
