// The events that every run must have (S4-44 to S4-50, S4-79, C48), with the hashes of request and response (S4-40,
// S4-60), and one response to every proposal (S2-20).

import { canonicalJson } from '../../src/core/contract/json.js';
import { sha256 } from '../../src/core/contract/hash.js';
import {
  actOf,
  endOf,
  isRefusal,
  isVote,
  movesOf,
  stateIn,
  verdictsOf,
  type Faults,
  type Life,
  type Story,
} from './story.js';

const ACTS: Readonly<Record<string, string>> = {
  tool_gateway: 'tool_call',
  db_write: 'db_write',
  db_read: 'db_read',
  promotion: 'promotion',
  export: 'export',
};
const OUTCOMES: Readonly<Record<string, string>> = {
  completed: 'success',
  denied: 'deny',
  failed: 'failure',
  cancelled: 'failure',
};

export function events(story: Story): Faults {
  const faults: Faults = [];
  for (const [run_id, life] of story.lives) {
    const fault = (what: string): number => faults.push(`${run_id}: ${what}`);
    ofTheRun(life, fault);
    ofTheAct(story, life, fault);
  }
  for (const [i, turn] of story.turns.entries()) {
    const fault = (what: string): number => faults.push(`turn ${i}: ${what}`);
    const refusals = turn.entries.filter((entry) => entry.type === 'audit_event' && isRefusal(entry.body));
    if (refusals.length !== (turn.refused ? 1 : 0)) fault('a refusal that is not written down, or one that was none');
    if (turn.refused && turn.entries.length !== 2) fault('was refused, and something has moved');
    votes(turn, fault);
  }
  return [...faults, ...replies(story)];
}

type Fault = (what: string) => unknown;

function ofTheRun(life: Life, fault: Fault): void {
  if (verdictsOf(life).length === 0) fault('has no authz_decision');
  const allowed = verdictsOf(life).at(-1);
  const runs = movesOf(life).filter(({ event }) => stateIn(event) === 'running');
  const waits = allowed?.event.authz?.rule_id === 'approval.required';
  if (runs.length !== (allowed?.event.outcome === 'allow' && !waits ? 1 : 0))
    fault(`has ${runs.length} running events`);
  const end = endOf(life)?.event;
  if (end === undefined) return;
  const state = stateIn(end);
  if (end.outcome !== OUTCOMES[state]) fault(`${state} is recorded as ${end.outcome}`);
  if ((end.error !== undefined) !== (state === 'failed'))
    fault(`${state} and ${end.error === undefined ? 'no' : 'an'} error`);
}

function ofTheAct(story: Story, life: Life, fault: Fault): void {
  const { run, said, performed } = life;
  const kind = ACTS[run.run_kind];
  const actionEvents = said.filter(({ event }) => !['system', 'authz_decision'].includes(event.action_type));
  if (kind === undefined) {
    if (actionEvents.length > 0) fault('has an event of an action that its kind does not have');
    return;
  }
  if (actionEvents.some(({ event }) => event.action_type !== kind)) fault('has an event of another kind of action');
  const ran = movesOf(life).some(({ event }) => stateIn(event) === 'running');
  const end = endOf(life)?.event;
  const state = end === undefined ? null : stateIn(end);
  if (run.run_kind === 'export') {
    const operations = actionEvents.map(({ event }) => event.target?.operation).join();
    const all = 'authorize,assemble,finalize';
    if (operations !== (!ran ? '' : state === null ? 'authorize' : all))
      fault(`an export with the events ${operations}`);
  } else if (actionEvents.length !== (ran && state !== null && state !== 'denied' ? 1 : 0)) {
    fault(`is ${state ?? 'alive'} and has ${actionEvents.length} events of its action`);
  }
  const act = actOf(story, life);
  const hash = act === null ? '' : sha256(canonicalJson({ ...act, case_id: run.case_id }));
  if (run.request?.hash_sha256 !== hash) fault('was asked for something else than it was born for');
  for (const { command } of performed) if (command.effect.request_hash !== hash) fault('performs something else');
  for (const { event } of actionEvents)
    if (event.request_hash_sha256 !== hash) fault('has an event of another request');
  answered(story, life, fault);
}

/** The event contains the executor's result. */
function answered({ turns }: Story, life: Life, fault: Fault): void {
  const end = endOf(life);
  const input = end === undefined ? undefined : turns[end.turn]?.input;
  if (end === undefined || input?.kind !== 'result' || input.run_id !== life.run.run_id) return;
  const { event } = life.said.filter(({ seq }) => seq < end.seq).at(-1) ?? {};
  if (event === undefined) return;
  if (event.response_hash_sha256 !== input.result?.hash_sha256) fault('tells of another answer');
  if (event.outcome !== (input.status === 'done' ? 'success' : 'failure'))
    fault(`${input.status} is recorded as ${event.outcome}`);
  const code = input.status === 'unknown' ? 'OUTCOME_UNKNOWN' : input.cause;
  if (input.status !== 'done' && event.error?.error_code !== code)
    fault(`${code ?? ''} is recorded as another failure`);
  if (input.status === 'done' && stateIn(end.event) === 'failed') fault('has succeeded, and failed');
  if (input.status !== 'done' && stateIn(end.event) === 'completed') fault('has failed, and completed');
}

function votes({ input, entries, refused }: Story['turns'][number], fault: Fault): void {
  const voteEvents = entries.flatMap((entry) =>
    entry.type === 'audit_event' && isVote(entry.body) ? [entry.body] : [],
  );
  const asked = input.kind === 'vote' && !refused ? input.digests : [];
  if (voteEvents.map((event) => event.request_hash_sha256).join() !== asked.join())
    fault('votes and their events differ');
  for (const event of voteEvents) {
    if (input.kind === 'vote' && event.actor.actor_id !== input.approver.actor.actor_id)
      fault('the vote event names another voter');
  }
}

/** Every accepted proposal: one trace, one reply, and the next index. */
function replies({ turns, traces }: Story): Faults {
  const faults: Faults = [];
  const open = new Map<string, string>();
  const steps = new Map<string, number>();
  for (const [i, { input, refused, replies: said, ended }] of turns.entries()) {
    if (input.kind === 'proposal' && !refused) {
      if (open.has(input.run_id)) faults.push(`${input.run_id}: two steps at a time`);
      open.set(input.run_id, input.input_id);
    }
    const traced = traces.filter(({ turn }) => turn === i);
    if (traced.length !== said.length) faults.push(`turn ${i}: ${traced.length} traces and ${said.length} replies`);
    for (const [n, { run_id, input_id, response }] of said.entries()) {
      const trace = traced[n]?.trace;
      if (open.get(run_id) !== input_id) faults.push(`${run_id}: ${input_id} was answered, and nothing was asked`);
      open.delete(run_id);
      const index = (steps.get(run_id) ?? 0) + 1;
      steps.set(run_id, index);
      if (trace?.run_id !== run_id || trace.step_index !== index) faults.push(`${run_id}: step ${index} is missing`);
      if (trace?.response_sha256 !== sha256(response)) faults.push(`${run_id}: another response than the trace says`);
    }
    for (const { run_id } of ended) if (open.has(run_id)) faults.push(`${run_id}: has ended and owes a response`);
  }
  return faults;
}
