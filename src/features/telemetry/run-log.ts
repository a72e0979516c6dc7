// One line of the service log for each step that was denied, and for each end of a run, at level `info`. Never content.

import { isIdentifier, hashText, CANCEL_REASONS } from '../../core/contract/free-text.js';
import type { StepTrace } from '../../core/contract/run/step-trace.js';
import type { RunTermination } from '../../kernel/decision.js';
import type { KnownRun } from '../../kernel/tree.js';
import type { Log } from '../../engine/ports/log.js';

/** Lines in a second; further ones are counted. */
const LINES_PER_SECOND = 100;
const SECOND_MS = 1_000;
/** A rule, an error code or a reason of the platform. Other reasons may be words of a caller. */
const CODE = /^(?:[a-z][a-z_]*\.[A-Za-z0-9_.-]{1,100}|[A-Z][A-Z_]{2,60}|finished|end_of_input)$/;

/** The rule or code of an ending; null for words. */
export const endingCode = (reason: string): string | null =>
  CODE.test(reason) || CANCEL_REASONS.some((known) => known === reason) ? reason : null;

/** The run of a line. */
type LoggedRun = Pick<KnownRun['context'], 'actor' | 'run_kind'> | null;

export class RunLog {
  readonly #log: Log;
  #second = 0;
  #lines = 0;
  #suppressed = 0;

  constructor(log: Log) {
    this.#log = log;
  }

  /** @param time when the step ended, as its entry says: nothing here reads a clock */
  stepDenied({ run_id, rule_id, error_code, action, completed_at }: StepTrace, run: LoggedRun): void {
    this.#write('a step was denied', completed_at, { run_id, rule: rule_id, code: error_code, action }, run);
  }

  runEnded({ run_id, state, reason }: RunTermination, time: string, run: LoggedRun): void {
    const kind = run?.run_kind ?? null;
    this.#write('a run has ended', time, { run_id, kind, state, rule: endingCode(reason) }, run);
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
}

/** An actor may be any text: one that is no identifier is logged as its hash. */
const actorName = (actor_id: string): string => (isIdentifier(actor_id) ? actor_id : hashText(actor_id));
