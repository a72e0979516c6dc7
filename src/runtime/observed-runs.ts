import type { RunCreated } from '../core/contract/run/entry.js';
import type { RunContext } from '../core/contract/run/run-context.js';
import type { Tree } from '../kernel/tree.js';

/** A run that has ended, as logs and metrics name it. */
interface ObservedEnding {
  /** Null for a session, which is no run. */
  readonly context: Pick<RunContext, 'actor' | 'run_kind'> | null;
  readonly kind: RunContext['run_kind'] | 'session';
}

/**
 * Names the runs that end in this process. A tree forgets the context of a promotion or export when it ends, so these
 * are remembered from their beginning.
 */
export class ObservedRuns {
  readonly #highRisk = new Map<string, RunCreated>();

  onCreated(run: RunCreated): void {
    if (HIGH_RISK_KINDS.has(run.run_kind)) this.#highRisk.set(run.run_id, run);
  }

  /** @returns null for a mediated run, which is part of its step, and for a run that began in another process */
  onEnded(run_id: string, tree: Pick<Tree, 'tree_id' | 'run'> | null): ObservedEnding | null {
    const context = tree?.run(run_id)?.context ?? this.#highRisk.get(run_id) ?? null;
    this.#highRisk.delete(run_id);
    if (context !== null) return { context, kind: context.run_kind };
    return run_id === tree?.tree_id ? { context, kind: 'session' } : null;
  }
}

const HIGH_RISK_KINDS: ReadonlySet<string> = new Set(['promotion', 'export']);
