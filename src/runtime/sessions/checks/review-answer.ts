// What a reviewer may say. It is held against this before anybody goes by it: a reviewer reads what an agent has made,
// and may have been talked into anything.

import Type, { type Static } from 'typebox';
import { isUtf8 } from 'node:buffer';
import { GATE_FINDINGS_MAX, GATE_VERDICTS, GateFinding } from '../../../contract/session/session.js';
import { closed, Nullable, OneOf } from '../../../contract/shapes.js';
import { isConforming } from '../../../contract/validators.js';
import type { Review } from '../../../ports/reviewer.js';
import { scanJson } from '../../../step/json-scanner.js';

/** Of the JSON text. */
export const REVIEW_BYTES_MAX = 262_144;
const DEPTH_MAX = 4;
const MESSAGE_CHARS_MAX = 2_000;

const reviewFields = {
  findings: Type.Array(GateFinding, { maxItems: GATE_FINDINGS_MAX }),
  summary: Type.Optional(Nullable(Type.String({ maxLength: 4_000 }))),
};

/** What a program says beside its exit code. */
const Findings = Type.Object(reviewFields, closed);
type Findings = Static<typeof Findings>;

/** What code of the service says. */
export const ReviewAnswer = Type.Object({ verdict: OneOf(GATE_VERDICTS), ...reviewFields }, closed);
export type ReviewAnswer = Static<typeof ReviewAnswer>;

/** A review that has come to nothing: it passes nobody. */
export const failedReview = (message: string): Review => ({
  verdict: 'fail',
  findings: [{ severity: 'error', message: message.slice(0, MESSAGE_CHARS_MAX).toWellFormed() }],
  summary: null,
});

/** What the last line of a program's output says, which must be `{"findings": [...], "summary"?: ...}`; else null. */
export function parseFindings(output: Uint8Array): Findings | null {
  const line = lastLine(output);
  if (line.length > REVIEW_BYTES_MAX || !isUtf8(line)) return null;
  const scanned = scanJson(Buffer.from(line).toString('utf8'), DEPTH_MAX);
  return scanned.ok && isConforming(Findings, scanned.value) ? (scanned.value as unknown as Findings) : null;
}

/** Without the blank lines after it. Found from the end: what stands before may be anything, and long. */
function lastLine(output: Uint8Array): Uint8Array {
  let end = output.length;
  while (end > 0 && BLANKS.has(output[end - 1] ?? 0)) end--;
  return output.subarray(output.lastIndexOf(LINE_FEED, end - 1) + 1, end);
}

const LINE_FEED = 0x0a;
const BLANKS: ReadonlySet<number> = new Set([0x09, LINE_FEED, 0x0d, 0x20]);
