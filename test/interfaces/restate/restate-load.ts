// Clients that submit by input id through Restate, repeat what got no answer, and keep a history of what was
// acknowledged. Afterwards the history is compared with the ledger.

import { setTimeout as sleep } from 'node:timers/promises';
import { submitThroughRestate, type ContentExchange } from '../../../src/interfaces/restate/index.js';
import { RestateClientError } from '../../../src/interfaces/restate/index.js';
import type { Turnpike } from '../../../src/index.js';

/** A request without an answer is repeated after this time, in ms. */
const REQUEST_MS = 8_000;
const REPEAT_MS = 50;
/** Every tenth step is submitted again after its answer, and must get the same one. */
const RESEND_EVERY = 10;
const INPUT_PREFIX = 'order-';
const INTERRUPTED = /"message":"The action was interrupted before it happened"/;

export interface Acknowledged {
  readonly run_id: string;
  readonly input_id: string;
  readonly seq: number;
  readonly text: string;
  /** From the first request to the answer, in ms, and when the first request was sent. */
  readonly ms: number;
  readonly sentAt: number;
}

export interface History {
  readonly steps: Acknowledged[];
  /** The input ids that clients have sent, by run, whether they got an answer or not. */
  readonly sent: Map<string, Set<string>>;
  readonly violations: string[];
  repeats: number;
  /** Steps whose worker was killed before it performed the effect; another worker has proved that and recorded it. */
  interrupted: number;
}

interface LoadOptions {
  /** The address of a node that should answer; another one after a failure. */
  readonly ingress: (attempt: number) => string;
  readonly exchange: ContentExchange;
  readonly runs: readonly { readonly run_id: string; readonly key: string }[];
  /** Whether clients go on. */
  readonly goesOn: (steps: number) => boolean;
}

export async function load(options: LoadOptions): Promise<History> {
  const history: History = { steps: [], sent: new Map(), violations: [], repeats: 0, interrupted: 0 };
  await Promise.all(options.runs.map((run) => client(options, run, history)));
  return history;
}

async function client(options: LoadOptions, run: LoadOptions['runs'][number], history: History): Promise<void> {
  for (let step = 0; options.goesOn(step); step += 1) {
    const input_id = `${INPUT_PREFIX}${step}`;
    history.sent.set(run.run_id, (history.sent.get(run.run_id) ?? new Set()).add(input_id));
    const first = await submit(options, { ...run, input_id, step }, history);
    if (first === null) return;
    history.steps.push(first);
    if (INTERRUPTED.test(first.text)) history.interrupted += 1;
    else if (!/"outcome":"SUCCESS"/.test(first.text))
      history.violations.push(`${run.run_id} ${input_id}: ${first.text}`);
    if (step % RESEND_EVERY !== 0) continue;
    const again = await submit(options, { ...run, input_id, step }, history);
    const isSame = again !== null && again.seq === first.seq && again.text === first.text;
    if (!isSame) history.violations.push(`${run.run_id} ${input_id}: a resend got another response`);
  }
}

interface Step {
  readonly run_id: string;
  readonly key: string;
  readonly input_id: string;
  readonly step: number;
}

async function submit(
  { ingress, exchange }: LoadOptions,
  { run_id, key, input_id, step }: Step,
  history: History,
): Promise<Acknowledged | null> {
  const payload = proposalText(step);
  const sentAt = performance.now();
  for (let attempt = 0; ; attempt += 1) {
    try {
      const address = { ingress: ingress(attempt), exchange, key, run_id, input_id, payload };
      const { seq, text } = await submitThroughRestate({ ...address, signal: AbortSignal.timeout(REQUEST_MS) });
      return { run_id, input_id, seq, text, ms: performance.now() - sentAt, sentAt };
    } catch (error) {
      const code = error instanceof RestateClientError ? error.code : 'UNAVAILABLE';
      if (code !== 'UNAVAILABLE') {
        history.violations.push(`${run_id} ${input_id}: ${code}`);
        return null;
      }
      history.repeats += 1;
      await sleep(REPEAT_MS);
    }
  }
}

export const proposalText = (step: number): string =>
  JSON.stringify({
    schema_version: '1.0.0',
    id: `00000000-0000-4000-8000-${String(step).padStart(12, '0')}`,
    reasoning: 'Load.',
    action: 'WRITE_FILE',
    args: { path: `/sandbox/note-${step % 8}.md`, content: `step ${step}` },
  });

/**
 * @returns what the ledger contradicts: acknowledged steps that it lacks, has in another order or with another
 * response, and inputs that it has twice or that no client has sent
 */
export async function compareWithLedger(turnpike: Turnpike, history: History): Promise<readonly string[]> {
  const found = [...history.violations];
  for (const [run_id, sent] of history.sent) {
    const own = history.steps.filter((step) => step.run_id === run_id);
    found.push(...(await compareRun(turnpike, run_id, own, sent)));
  }
  const verdict = await turnpike.ledger.verify({ replay: false });
  if (!verdict.ok) found.push(`the ledger does not verify: ${JSON.stringify(verdict).slice(0, 400)}`);
  return found;
}

async function compareRun(
  turnpike: Turnpike,
  run_id: string,
  own: readonly Acknowledged[],
  sent: ReadonlySet<string>,
): Promise<readonly string[]> {
  const found: string[] = [];
  const seqs = new Map<string, number[]>();
  let traces = 0;
  for await (const { type, seq, body } of turnpike.ledger.entries(run_id.split('.', 1)[0] ?? '')) {
    if (type === 'step_trace') traces += 1;
    if (type !== 'input' || body.kind !== 'proposal') continue;
    seqs.set(body.input_id, [...(seqs.get(body.input_id) ?? []), seq]);
  }
  let last = -1;
  for (const { input_id, seq, text } of own) {
    const isRecorded = (seqs.get(input_id) ?? []).includes(seq);
    if (!isRecorded) found.push(`lost: ${run_id} ${input_id}`);
    if (seq <= last) found.push(`order: ${run_id} ${input_id} is recorded before the step that its client sent before`);
    last = seq;
    const payload = proposalText(Number(input_id.slice(INPUT_PREFIX.length)));
    const recorded = isRecorded ? await turnpike.respond(run_id, payload, { inputId: input_id }) : text;
    if (recorded !== text) found.push(`response: ${run_id} ${input_id} got another one than the ledger has`);
  }
  for (const [input_id, at] of seqs) {
    if (at.length > 1) found.push(`twice: ${run_id} ${input_id}`);
    if (!sent.has(input_id)) found.push(`never sent: ${run_id} ${input_id}`);
  }
  if (traces > seqs.size) found.push(`twice: ${run_id} has ${traces} steps of ${seqs.size} inputs`);
  return found;
}
