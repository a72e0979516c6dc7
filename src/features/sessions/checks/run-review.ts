// Reviewers: programs and callbacks of the service. A program reads the order as JSON from its standard input. Its exit
// code is the verdict: 0 pass, 1 fail, 2 warn. The last line that it prints, to either stream, must be its findings,
// even if the list is empty:
//
//   {"findings":[{"severity":"error","message":"...","file":"/sandbox/a.md","line":3}],"summary":"..."}
//
// Severity is error, warning or info. `file`, `line` and `summary` are optional; other members are rejected. Without
// that line an exit code is not a verdict, because a program that crashes also ends with 1 or 2.

import { isUtf8 } from 'node:buffer';
import { GATE_FINDINGS_MAX, type GateVerdict, GATE_VERDICTS, GateFinding } from '../contract/session.js';
import { closed, Nullable, OneOf } from '../../../core/contract/shapes.js';
import { isConforming } from '../../../core/contract/validators.js';
import type { CommandOrder, CommandRun, CommandRunner } from '../../../engine/ports/effects/command-runner.js';
import { scanJson } from '../../../core/contract/json.js';
import type { BoundedCalls } from '../../../runtime/effects/bounded-calls.js';
import type { EffectContext } from '../../../runtime/effects/define-effects.js';
import { runSpecCommand } from './run-spec-command.js';
import Type, { type Static } from 'typebox';

/** What a reviewer must judge: whether the output of a phase is what the phase asked for. */
export interface ReviewOrder {
  readonly spec_id: string;
  readonly session_id: string;
  readonly phase_id: string;
  readonly step_id: string;
  readonly gate_attempt_id: string;
  /** The case whose sandbox contains the output; null if the session has none. */
  readonly case_id: string | null;
  readonly phase: { readonly title: string; readonly tasks: readonly ReviewedTask[] };
  /** The spec's instruction to the reviewer. */
  readonly instruction: string | null;
  /** Sandbox paths (`/sandbox/...`) that the agent's runs in this phase have changed, up to a thousand: a hint. */
  readonly files_touched: readonly string[];
}

export interface ReviewedTask {
  readonly id: string;
  readonly title: string;
  readonly status: string;
  /**
   * The instruction to the agent, and the acceptance criteria of the spec. A verification has neither. A task also has
   * neither if its texts would exceed the limit together with those of earlier tasks.
   */
  readonly instruction?: string;
  readonly acceptance?: readonly string[];
}

/** The result of a review: a verdict with its findings. */
export interface Review {
  readonly verdict: GateVerdict;
  readonly findings: readonly GateFinding[];
  readonly summary: string | null;
}

/** Limit of output that is kept. Most of it may be progress messages. */
const OUTPUT_BYTES_MAX = 4_194_304;
/** How much of the end of the output goes into a finding. */
const OUTPUT_TAIL_BYTES = 500;

const VERDICTS: Readonly<Partial<Record<number, GateVerdict>>> = { 0: 'pass', 1: 'fail', 2: 'warn' };

/** What each kind of reviewer gets: what to judge, and a signal that aborts the review. */
interface ReviewTask {
  readonly order: ReviewOrder;
  readonly signal: AbortSignal;
  readonly timeout_ms: number;
}

/**
 * Reviews once by a program of the spec. Any failure of the review is the verdict `fail`, with a finding that says so.
 * @throws ActionNotExecutedError if this machine cannot start a review, which must not count against the work
 * @throws `signal.reason` if the signal is aborted; there is no verdict then
 */
export async function reviewByCommand(
  commands: CommandRunner,
  command: Pick<CommandOrder, 'argv' | 'case_id' | 'cwd'>,
  { order, signal, timeout_ms }: ReviewTask,
): Promise<Review> {
  const stdin = Buffer.from(`${JSON.stringify(order)}\n`);
  const bounds = { timeout_ms, output_bytes_max: OUTPUT_BYTES_MAX };
  return toReview(await runSpecCommand(commands, { ...command, stdin, ...bounds }, signal));
}

function toReview(run: CommandRun): Review {
  const { exit_code, timed_out, truncated, output } = run;
  const verdict = VERDICTS[exit_code];
  if (timed_out) return failedReview('The time of the review was over before it had ended');
  if (verdict === undefined) return failedReview(`The reviewer ended with exit code ${exit_code}: ${outputTail(run)}`);
  if (truncated) return failedReview(`The reviewer printed more than can be read: ${run.output_bytes} bytes`);
  const parsedOutput = parseFindings(output);
  if (parsedOutput !== null) return { verdict, findings: parsedOutput.findings, summary: parsedOutput.summary ?? null };
  return failedReview(
    `The reviewer ended with exit code ${exit_code}, but its last line is no JSON object with "findings", ` +
      `of ${GATE_FINDINGS_MAX} findings and ${REVIEW_BYTES_MAX} bytes at most: ${outputTail(run)}`,
  );
}

const outputTail = ({ output }: CommandRun): string =>
  Buffer.from(output.slice(-OUTPUT_TAIL_BYTES)).toString('utf8').trim();

/**
 * Code of the service that reviews a phase. An error, an invalid answer and a late answer count as the verdict `fail`.
 * The callback gets its own copy of the order.
 */
export type ReviewCallback = (
  order: ReviewOrder,
  context: Pick<EffectContext, 'signal'>,
) => ReviewAnswer | Promise<ReviewAnswer>;

declare module '../../../runtime/host-feature.js' {
  interface AddedOptions {
    /** Reviews the result of a session's phase, for gates whose reviewer is `callback`. */
    readonly reviewer?: ReviewCallback;
  }
}

const isAnswer = (answer: unknown): boolean => isConforming(ReviewAnswer, answer);

/** The same by a callback of the service. */
export async function reviewByCallback(
  calls: BoundedCalls,
  callback: ReviewCallback,
  context: Omit<EffectContext, 'signal'>,
  { order, signal, timeout_ms }: ReviewTask,
): Promise<Review> {
  signal.throwIfAborted();
  const callReviewer = ({ signal: timeoutSignal }: EffectContext) =>
    Promise.race([
      callback(structuredClone(order), { signal: AbortSignal.any([signal, timeoutSignal]) }),
      rejectOnAbort(signal),
    ]);
  // A review has no side effects, so its outcome is never unknown: without an answer it has no verdict.
  const effectless = { hasSideEffects: false, isRepeatable: false };
  const bounds = { timeout_ms, result_bytes_max: REVIEW_BYTES_MAX, isConforming: isAnswer, ...effectless };
  const result = await calls.run(callReviewer, context, bounds);
  signal.throwIfAborted();
  if (result.status === 'done') {
    const { verdict, findings, summary = null } = result.result as unknown as ReviewAnswer;
    return { verdict, findings, summary };
  }
  const isTimeout = result.status === 'failed' && result.cause === 'TIMEOUT';
  return failedReview(isTimeout ? 'The time of the review was over' : 'The reviewer of the service gave no review');
}

const rejectOnAbort = (signal: AbortSignal): Promise<never> =>
  new Promise((_settle, fail) => signal.addEventListener('abort', () => fail(new Error('called off')), { once: true }));

// What a reviewer may answer. Its answer is validated before use: a reviewer reads work of an agent, which may have
// manipulated it.

/** Limit of the JSON text. */
const REVIEW_BYTES_MAX = 262_144;
const DEPTH_MAX = 4;
const MESSAGE_CHARS_MAX = 2_000;

const reviewFields = {
  findings: Type.Array(GateFinding, { maxItems: GATE_FINDINGS_MAX }),
  summary: Type.Optional(Nullable(Type.String({ maxLength: 4_000 }))),
};

/** Output of a program, in addition to its exit code. */
const Findings = Type.Object(reviewFields, closed);
type Findings = Static<typeof Findings>;

/** Answer of a callback. */
export const ReviewAnswer = Type.Object({ verdict: OneOf(GATE_VERDICTS), ...reviewFields }, closed);
export type ReviewAnswer = Static<typeof ReviewAnswer>;

/** A review without a valid answer: it fails. */
const failedReview = (message: string): Review => ({
  verdict: 'fail',
  findings: [{ severity: 'error', message: message.slice(0, MESSAGE_CHARS_MAX).toWellFormed() }],
  summary: null,
});

/**
 * The findings in the last line of a program's output, which must be `{"findings": [...], "summary"?: ...}`; otherwise
 * null.
 */
function parseFindings(output: Uint8Array): Findings | null {
  const line = lastLine(output);
  if (line.length > REVIEW_BYTES_MAX || !isUtf8(line)) return null;
  const scanned = scanJson(Buffer.from(line).toString('utf8'), DEPTH_MAX);
  return scanned.ok && isConforming(Findings, scanned.value) ? (scanned.value as unknown as Findings) : null;
}

/** The last line without trailing blank lines. It is searched from the end, because the output may be long. */
function lastLine(output: Uint8Array): Uint8Array {
  let end = output.length;
  while (end > 0 && BLANKS.has(output[end - 1] ?? 0)) end--;
  return output.subarray(output.lastIndexOf(LINE_FEED, end - 1) + 1, end);
}

const LINE_FEED = 0x0a;
const BLANKS: ReadonlySet<number> = new Set([0x09, LINE_FEED, 0x0d, 0x20]);
