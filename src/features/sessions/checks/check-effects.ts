// Runs RUN_VERIFICATION and REVIEW_PHASE, by which the platform itself finds out whether work is done (C68, C70). The
// spec defines the command and its folder. The outcome is the result of a run like any other.

import Type, { type Static } from 'typebox';
import type { Effect, EffectResult } from '../../../core/contract/run/effect.js';
import { SpecCommand } from '../contract/session-spec.js';
import { closed, Nullable, OneOf } from '../../../core/contract/shapes.js';
import { isConforming } from '../../../core/contract/validators.js';
import { ActionNotExecutedError } from '../../../core/errors.js';
import { requireCapability } from '../../../engine/ports/effects/capability.js';
import type { CommandRunner } from '../../../engine/ports/effects/command-runner.js';
import type { Log } from '../../../engine/ports/log.js';
import type { Secrets } from '../../../core/contract/secrets.js';
import { REVIEW_PHASE, RUN_VERIFICATION } from '../rules/checks.js';
import { evidenceChecksum } from '../rules/step-proof.js';
import { commandHash } from '../rules/receipt.js';
import type { BoundedCalls } from '../../../runtime/effects/bounded-calls.js';
import { reviewByCallback, reviewByCommand, type Review, type ReviewCallback, type ReviewOrder } from './run-review.js';
import { runSpecCommand, truncateOutput } from './run-spec-command.js';

/** Limit of recorded output of a verification, which may print 8 times as much. */
const OUTPUT_BYTES_MAX = 4_194_304;

const Id = Type.String({ minLength: 1, maxLength: 160 });
const commandFields = {
  cwd: Type.String({ maxLength: 1_024 }),
  timeout_ms: Type.Integer({ minimum: 1, maximum: 3_600_000 }),
};

const VerificationArgs = Type.Object({ step_id: Id, task_id: Id, command: SpecCommand, ...commandFields }, closed);
type VerificationArgs = Static<typeof VerificationArgs>;

const ReviewedTask = Type.Object(
  {
    id: Id,
    title: Type.String(),
    status: Type.String(),
    instruction: Type.Optional(Type.String()),
    acceptance: Type.Optional(Type.Array(Type.String())),
  },
  closed,
);

const ReviewArgs = Type.Object(
  {
    spec_id: Id,
    session_id: Id,
    phase_id: Id,
    step_id: Id,
    gate_attempt_id: Id,
    /** A person's review is not an effect. */
    reviewer: OneOf(['command', 'callback']),
    command: Nullable(SpecCommand),
    ...commandFields,
    instruction: Nullable(Type.String()),
    title: Type.String(),
    tasks: Type.Array(ReviewedTask),
    files_touched: Type.Array(Type.String()),
  },
  closed,
);
type ReviewArgs = Static<typeof ReviewArgs>;

export interface CheckParts {
  readonly commands: CommandRunner;
  /** Null if the service has no review callback. */
  readonly review: ReviewCallback | null;
  readonly calls: BoundedCalls;
  readonly secrets: Secrets;
  readonly log: Log;
}

export class CheckEffects {
  readonly #parts: CheckParts;
  readonly #inFlight = new Set<AbortController>();

  constructor(parts: CheckParts) {
    this.#parts = parts;
  }

  /**
   * @returns `failed` if certainly nothing was run, `unknown` if it was aborted. A command that fails is done: its exit
   * code is the result.
   */
  async run(effect: Effect): Promise<EffectResult> {
    requireCapability(effect);
    const abort = new AbortController();
    this.#inFlight.add(abort);
    try {
      return await this.#runCheck(effect, abort.signal);
    } catch (error) {
      const { run_id } = effect;
      if (!(error instanceof ActionNotExecutedError)) {
        this.#parts.log.error('a check was aborted; its outcome is unknown', { run_id, error });
        return { status: 'unknown' };
      }
      this.#parts.log.error('a check was not executed', { run_id, error });
      return { status: 'failed', cause: error.retryable ? 'NOT_EXECUTED' : 'REFUSED', detail: error.message };
    } finally {
      this.#inFlight.delete(abort);
    }
  }

  /** After a crash, the outcome of a command is lost with the process that waited for it. */
  settle(effect: Effect): EffectResult {
    requireCapability(effect);
    return { status: 'unknown' };
  }

  /** Aborts all running checks, because the process is about to end. */
  abort(): void {
    for (const check of this.#inFlight) check.abort(new Error('the process ends'));
  }

  #runCheck(effect: Effect, signal: AbortSignal): Promise<EffectResult> {
    const { action, args } = effect;
    if (action === RUN_VERIFICATION && isVerificationArgs(args)) return this.#verify(effect, args, signal);
    if (action === REVIEW_PHASE && isReviewArgs(args)) return this.#review(effect, args, signal);
    return Promise.resolve({ status: 'failed', cause: 'INTERNAL' });
  }

  async #verify({ case_id }: Effect, args: VerificationArgs, signal: AbortSignal): Promise<EffectResult> {
    if (case_id === null) return { status: 'failed', cause: 'INTERNAL' };
    const { command: argv, cwd, timeout_ms } = args;
    const order = { argv, case_id, cwd, timeout_ms, output_bytes_max: OUTPUT_BYTES_MAX, stdin: null };
    const run = await runSpecCommand(this.#parts.commands, order, signal);
    const { exit_code, output_sha256, output_bytes, timed_out, walled } = run;
    const { text, whole } = truncateOutput(run);
    return {
      status: 'done',
      result: {
        command_hash: commandHash(argv),
        exit_code,
        output_digest: output_sha256,
        output_bytes,
        output: text,
        truncated: !whole,
        timed_out,
        walled,
      },
    };
  }

  async #review(effect: Effect, args: ReviewArgs, signal: AbortSignal): Promise<EffectResult> {
    const { gate_attempt_id, step_id, phase_id, session_id } = args;
    const review = await this.#reviewBy(effect, args, signal);
    const evidence = { gate_attempt_id, step_id, phase_id, verdict: review.verdict };
    const checksum = evidenceChecksum(this.#parts.secrets, session_id, evidence);
    return { status: 'done', result: { ...evidence, ...toJsonReview(review), checksum } };
  }

  async #reviewBy(effect: Effect, args: ReviewArgs, signal: AbortSignal): Promise<Review> {
    const { commands, review, calls } = this.#parts;
    const { case_id, run_id, idempotency_key } = effect;
    const { reviewer, command: argv, cwd, timeout_ms } = args;
    const task = { order: orderOf(effect, args), signal, timeout_ms };
    if (reviewer === 'callback') {
      if (review === null) throw new ActionNotExecutedError('the service has no reviewer', { retryable: false });
      return reviewByCallback(calls, review, { run_id, case_id, idempotency_key }, task);
    }
    if (argv === null || case_id === null)
      throw new ActionNotExecutedError('no command to review with', { retryable: false });
    return reviewByCommand(commands, { argv, case_id, cwd }, task);
  }
}

const isVerificationArgs = (args: unknown): args is VerificationArgs => isConforming(VerificationArgs, args);
const isReviewArgs = (args: unknown): args is ReviewArgs => isConforming(ReviewArgs, args);

function orderOf({ case_id }: Effect, args: ReviewArgs): ReviewOrder {
  const { spec_id, session_id, phase_id, step_id, gate_attempt_id, title, tasks, instruction, files_touched } = args;
  const ids = { spec_id, session_id, phase_id, step_id, gate_attempt_id, case_id };
  return { ...ids, phase: { title, tasks }, instruction, files_touched };
}

const toJsonReview = ({ findings, summary }: Review) => ({
  findings: findings.map((finding) => ({ ...finding })),
  summary,
});
