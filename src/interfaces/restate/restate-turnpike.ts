// What the service uses of a Turnpike, and what it does for each handler. Every function may be called again after a
// failure, by any worker: the ledger knows the input id, so a repeated call has no further effect.

import { LedgerError, RestateServiceError, RunError } from '../../core/errors.js';
import { readReferenced, type ContentExchange } from './content-exchange.js';
import type { CancelMessage, SubmitMessage, SubmitResult, VoteMessage } from './restate-messages.js';
import { parseOwnJson } from '../../core/contract/json.js';
import { sha256 } from '../../core/contract/hash.js';

interface RunEnd {
  readonly state: string;
  readonly reason: string;
}

/** The part of a `Turnpike` that the service uses. */
export interface RestateTurnpike {
  /** As `Turnpike.respond`. */
  respond(
    run_id: string,
    raw: Uint8Array,
    options: { readonly inputId: string; readonly payloadSha256?: string },
  ): Promise<string>;
  /** As `Turnpike.agent`. */
  agent(run_id: string): Promise<{ cancel(reason: string): Promise<RunEnd> } | null>;
  /** As `Turnpike.approve`. */
  approve(ballot: {
    readonly run: string;
    readonly digests: readonly string[];
    readonly decision: 'approve' | 'reject';
    readonly actor: string;
    readonly role: string;
    readonly inputId: string;
  }): Promise<readonly VoteResult[]>;
  /** As `Turnpike.nextTimer`. */
  nextTimer(run_id: string): Promise<string | null>;
  readonly remoteAgents: {
    find(run_id: string): Promise<{ readonly case: string | null; readonly ended: RunEnd | null } | null>;
  };
  readonly ledger: {
    recordedProposal(
      tree_id: string,
      input_id: string,
    ): Promise<{ readonly seq: number; readonly sha256: string } | null>;
    run(run_id: string): Promise<RestateRunRecord | null>;
  };
}

/** What the service reads of a run record. */
export interface RestateRunRecord {
  readonly status: string;
  readonly outcome?: string | null;
  readonly case_id?: string | null;
}

/** The effect of a vote on one digest. */
export interface VoteResult {
  readonly digest: string;
  readonly counted: boolean;
  readonly rule_id: string;
}

export const rootOf = (run_id: string): string => run_id.split('.', 1)[0] ?? run_id;

/**
 * The key of the virtual object of a run: its case, else its tree.
 * @throws RunError RUN_UNKNOWN
 */
export async function keyOf(turnpike: RestateTurnpike, run_id: string): Promise<string> {
  const remote = await turnpike.remoteAgents.find(run_id);
  const known = remote === null ? await turnpike.ledger.run(run_id) : { case_id: remote.case };
  if (known === null) throw new RunError({ code: 'RUN_UNKNOWN', message: `there is no run ${run_id}` });
  return known.case_id ?? rootOf(run_id);
}

/**
 * Submits the proposal whose payload is in the exchange, and puts the response there.
 * @throws LedgerError LEDGER_UNAVAILABLE if the step could not be recorded; RestateServiceError; as `Turnpike.respond`
 */
export async function submitStep(
  turnpike: RestateTurnpike,
  exchange: ContentExchange,
  { run_id, input_id, payload }: SubmitMessage,
): Promise<SubmitResult> {
  const find = () => turnpike.ledger.recordedProposal(rootOf(run_id), input_id);
  let recorded = await find();
  const bytes =
    recorded === null ? await readReferenced(exchange, { kind: 'payload', run_id, input_id }, payload) : null;
  // Another worker may have recorded the step and removed the payload since the first look.
  if (recorded === null && bytes === null) recorded = await find();
  if (recorded === null && bytes === null) throw refusal('PAYLOAD_UNKNOWN');
  if (recorded !== null && recorded.sha256 !== payload.sha256) throw refusal('IDEMPOTENCY_CONFLICT');
  const response = await respond(turnpike, { run_id, input_id, payload }, bytes);
  recorded ??= await find();
  // The response to a step that could not be recorded is not final.
  if (recorded === null) throw new LedgerError({ code: 'LEDGER_UNAVAILABLE', message: 'the step is not recorded' });
  if (recorded.sha256 !== payload.sha256) throw refusal('IDEMPOTENCY_CONFLICT');
  const output = Buffer.from(response);
  const reference = { sha256: sha256(output), bytes: output.byteLength };
  await exchange.write({ kind: 'response', run_id, input_id, sha256: reference.sha256 }, output);
  await exchange.remove({ kind: 'payload', run_id, input_id, sha256: payload.sha256 });
  return { run_id, input_id, seq: recorded.seq, outcome: outcomeOf(response), response: reference };
}

/** A recorded step without a response has its effect still in flight, on this worker or on one that is gone. */
async function respond(
  turnpike: RestateTurnpike,
  { run_id, input_id, payload }: Pick<SubmitMessage, 'run_id' | 'input_id' | 'payload'>,
  bytes: Uint8Array | null,
): Promise<string> {
  // A payload that is recorded is no longer in the exchange.
  const recalled = bytes === null ? { payloadSha256: payload.sha256 } : {};
  try {
    return await turnpike.respond(run_id, bytes ?? new Uint8Array(), { inputId: input_id, ...recalled });
  } catch (error) {
    if (!(error instanceof RunError) || error.code !== 'RUN_ENDED') throw error;
    const isRecorded = (await turnpike.ledger.recordedProposal(rootOf(run_id), input_id)) !== null;
    if (!isRecorded || (await turnpike.agent(run_id)) === null) throw error;
    throw refusal('STEP_PENDING');
  }
}

function outcomeOf(response: string): string {
  const { outcome, decision } = parseOwnJson(response) as { readonly outcome?: string; readonly decision?: string };
  return outcome ?? decision ?? '';
}

/** @throws as `Turnpike.approve` */
export const submitVote = (
  turnpike: RestateTurnpike,
  { run_id, input_id, ...vote }: VoteMessage,
): Promise<readonly VoteResult[]> => turnpike.approve({ ...vote, run: run_id, inputId: input_id });

/**
 * Cancels an agent run.
 * @returns how it has ended, also if it had ended before
 * @throws RunError RUN_UNKNOWN
 */
export async function cancelRun(turnpike: RestateTurnpike, { run_id, reason }: CancelMessage): Promise<RunEnd> {
  const agent = await turnpike.agent(run_id);
  try {
    if (agent !== null) return endOf(await agent.cancel(reason));
  } catch (error) {
    // Another call has ended the run meanwhile.
    const isLate = error instanceof RunError && ['INVALID_STATE_TRANSITION', 'RUN_ENDED'].includes(error.code);
    if (!isLate) throw error;
  }
  const remote = await turnpike.remoteAgents.find(run_id);
  if (remote === null) throw new RunError({ code: 'RUN_UNKNOWN', message: `there is no agent run ${run_id}` });
  if (remote.ended === null) throw refusal('STEP_PENDING');
  return endOf(remote.ended);
}

const endOf = ({ state, reason }: RunEnd): RunEnd => ({ state, reason });

/** An error of the service whose message is its code. */
export const refusal = (code: RestateServiceError['code']): RestateServiceError =>
  new RestateServiceError({ code, message: code });
