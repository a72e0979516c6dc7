// A program as a reviewer. It reads the order as JSON from its standard input. Its exit code is the verdict: 0 pass,
// 1 fail, 2 warn. The last line that it prints, to either stream, is its findings, also where there are none:
//
//   {"findings":[{"severity":"error","message":"...","file":"/sandbox/a.md","line":3}],"summary":"..."}
//
// Severity is error, warning or info; `file`, `line` and `summary` may be left out, anything else may not be put in.
// Without that line, no exit code is a verdict: a program that has lost its way ends with 1 or 2 as well.

import { GATE_FINDINGS_MAX, type GateVerdict } from '../../../contract/session/session.js';
import type { CommandRun, CommandRunner } from '../../../ports/effects/command-runner.js';
import type { Review, Reviewer } from '../../../ports/reviewer.js';
import { runSpecCommand } from './run-spec-command.js';
import { failedReview, parseFindings, REVIEW_BYTES_MAX } from './review-answer.js';

/** What is kept of what it prints, most of which may be about its progress. */
const OUTPUT_BYTES_MAX = 4_194_304;
/** How much of its last words goes into a finding. */
const OUTPUT_TAIL_BYTES = 500;

const VERDICTS: Readonly<Partial<Record<number, GateVerdict>>> = { 0: 'pass', 1: 'fail', 2: 'warn' };

/** Which program, and where. */
export interface ReviewerCommand {
  readonly argv: readonly string[];
  readonly case_id: string;
  readonly cwd: string;
  readonly timeout_ms: number;
}

/** A reviewer that runs a program of the spec, once for each review. */
export const commandReviewer = (commands: CommandRunner, command: ReviewerCommand): Reviewer => ({
  async review(order, signal) {
    const stdin = Buffer.from(`${JSON.stringify(order)}\n`);
    const limits = { timeout_ms: command.timeout_ms, output_bytes_max: OUTPUT_BYTES_MAX };
    const { argv, case_id, cwd } = command;
    return toReview(await runSpecCommand(commands, { argv, case_id, cwd, stdin, ...limits }, signal));
  },
});

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
