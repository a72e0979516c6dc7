// One line of the service log for each step that was denied, and for each end of a run, at level `info`. Never content.
// What is known of a run until then is in `ObservedRuns`, which telemetry uses too.

import { isIdentifier, hashText, CANCEL_REASONS } from '../core/contract/free-text.js';
import type { Catalogue } from '../core/contract/policy/catalogue.js';
import type { RunContext } from '../core/contract/run/run-context.js';
import type { StepTrace } from '../core/contract/run/step-trace.js';
import type { Log } from '../engine/ports/log.js';
import type { ObservedInput, ObservedTick, TickObserver } from '../engine/tick/tick-observer.js';
import type { RunTermination } from '../kernel/decision.js';
import type { Tree } from '../kernel/tree.js';
import { observedAction } from './observed-names.js';
import type { RunCreated } from '../core/contract/run/entry.js';

/** Lines in a second; further ones are counted. */
const LINES_PER_SECOND = 100;
const SECOND_MS = 1_000;
/** A rule, an error code or a reason of the platform. Other reasons may be words of a caller. */
const CODE = /^(?:[a-z][a-z_]*\.[A-Za-z0-9_.-]{1,100}|[A-Z][A-Z_]{2,60}|finished|end_of_input)$/;

/** The rule or code of an ending; null for words. */
export const endingCode = (reason: string): string | null =>
  CODE.test(reason) || CANCEL_REASONS.some((known) => known === reason) ? reason : null;

interface RunLogOptions {
  readonly log: Log;
  readonly catalogue: Pick<Catalogue, 'action'>;
}

/** The run of a line. */
type LoggedRun = Pick<RunContext, 'actor'> | null;

/** Logs what ticks have recorded. Times are those of the entries: nothing here reads a clock. */
export class RunLog implements TickObserver {
  readonly #log: Log;
  readonly #catalogue: RunLogOptions['catalogue'];
  readonly #runs = new ObservedRuns();
  #second = 0;
  #lines = 0;
  #suppressed = 0;
  #hasFailed = false;

  constructor({ log, catalogue }: RunLogOptions) {
    this.#log = log;
    this.#catalogue = catalogue;
  }

  /** It measures nothing. */
  now(): number {
    return 0;
  }

  onFolded(): void {
    // Nothing of a fold is logged.
  }

  onTick({ outcomes, tree }: Pick<ObservedTick, 'outcomes' | 'tree'>): void {
    try {
      for (const outcome of outcomes) this.#onOutcome(outcome, tree);
    } catch (error) {
      this.#onFailure(error);
    }
  }

  #onOutcome({ tree_id, decisions }: ObservedInput, tree: ObservedTick['tree']): void {
    for (const { entries } of decisions) {
      for (const { entry } of entries) {
        if (entry.type === 'run_created') this.#runs.onCreated(entry.body);
        else if (entry.type === 'step_trace' && entry.body.outcome === 'DENIED') {
          this.#logDeniedStep(entry.body, tree(tree_id));
        }
      }
    }
    for (const { entries, ended } of decisions) {
      const [first] = entries;
      const time = first?.entry.type === 'input' ? first.entry.body.time : '';
      for (const ending of ended) this.#logEnding(ending, time, tree(tree_id));
    }
  }

  #logDeniedStep({ run_id, rule_id, error_code, action, completed_at }: StepTrace, tree: Tree | null): void {
    const name = observedAction(this.#catalogue, action);
    const fields = { run_id, rule: rule_id, code: error_code, action: name };
    this.#write('a step was denied', completed_at, fields, tree?.run(run_id)?.context ?? null);
  }

  #logEnding({ run_id, state, reason }: RunTermination, time: string, tree: Tree | null): void {
    const run = this.#runs.onEnded(run_id, tree);
    if (run === null) return;
    const kind = run.context?.run_kind ?? null;
    this.#write('a run has ended', time, { run_id, kind, state, rule: endingCode(reason) }, run.context);
  }

  #write(
    message: string,
    time: string,
    fields: Readonly<Record<string, string | null>> & { readonly run_id: string },
    run: LoggedRun,
  ): void {
    const second = Math.floor(Date.parse(time) / SECOND_MS);
    if (second !== this.#second) [this.#second, this.#lines] = [second, 0];
    this.#lines += 1;
    if (this.#lines > LINES_PER_SECOND) {
      this.#suppressed += 1;
      return;
    }
    this.#log.info(message, {
      ...fields,
      actor: run === null ? null : actorName(run.actor.actor_id),
      ...(this.#suppressed === 0 ? {} : { suppressed_lines: this.#suppressed }),
    });
    this.#suppressed = 0;
  }

  /** A log that throws must never end a step, a commit or the process. */
  #onFailure(error: unknown): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    try {
      this.#log.error('a line of the service log has failed; further failures are not logged', { error });
    } catch {
      // This log has no place for the error.
    }
  }
}

/** An actor may be any text: one that is no identifier is logged as its hash. */
const actorName = (actor_id: string): string => (isIdentifier(actor_id) ? actor_id : hashText(actor_id));

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
