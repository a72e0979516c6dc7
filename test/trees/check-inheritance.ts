// What a run inherits from its parent (S4-54 to S4-57, C46), how its id is derived (D11), and what a retry is (C54).

import { canonicalJson } from '../../src/core/contract/json.js';
import {
  behalfOf,
  endOf,
  firstOf,
  isResolution,
  isVote,
  stateIn,
  type Faults,
  type Life,
  type Story,
} from './story.js';

const PINNED = [
  'contract_version',
  'policy_versions',
  'correlation_id',
  'root_run_id',
  'taxonomy_versions',
  'scope',
] as const;

export function inheritance(story: Story): Faults {
  const faults: Faults = [];
  const ordinals = new Map<string, number>();
  for (const [run_id, life] of story.lives) {
    const fault = (what: string): number => faults.push(`${run_id}: ${what}`);
    const parent = story.lives.get(life.run.parent_run_id ?? '');
    if (parent !== undefined) inherited(story, life, parent, fault);
    if (life.run.retry !== null) retried(story, life, fault);
    events(life, fault);
    const behalf = behalfOf(life);
    if (behalf === null) continue;
    const ordinal = (ordinals.get(behalf) ?? 0) + 1;
    ordinals.set(behalf, ordinal);
    if (run_id !== `${behalf}.${ordinal}`) fault(`should be ${behalf}.${ordinal}`);
  }
  return faults;
}

type Fault = (what: string) => unknown;

function inherited({ policy }: Story, { run }: Life, { run: parent }: Life, fault: Fault): void {
  for (const name of PINNED) {
    if (canonicalJson(run[name]) !== canonicalJson(parent[name])) fault(`has another ${name} than its parent`);
  }
  const lane = policy.lanes.get(run.lane_id ?? '');
  const case_id = lane?.inherits_case_id === false ? null : parent.case_id;
  if (run.case_id !== case_id)
    fault(`has case ${run.case_id ?? 'none'} where its parent has ${parent.case_id ?? 'none'}`);
  if (parent.run_kind === 'orchestrator') return;
  if (run.role_id !== parent.role_id || canonicalJson(run.actor) !== canonicalJson(parent.actor))
    fault('acts on behalf of another actor');
}

/** S4-66 to S4-69. */
function retried(story: Story, life: Life, fault: Fault): void {
  const { retry } = life.run;
  const { retries } = story.policy;
  if (retry === null) return;
  const first = firstOf(story, life);
  const before = story.lives.get(retry.of);
  if (first.run.retry !== null || first === life) fault('its parent is not the first attempt');
  const attempts = [...story.lives.values()].filter(
    ({ run }) => run.retry !== null && run.parent_run_id === first.run.run_id,
  );
  if (retry.count !== attempts.indexOf(life) + 1 || retry.count > retries.max) fault(`is attempt ${retry.count}`);
  const previous = retry.count === 1 ? first : attempts[retry.count - 2];
  if (before === undefined || before !== previous) return void fault('is not another attempt of the one before it');
  const end = endOf(before);
  const { event } = end ?? {};
  if (event === undefined || stateIn(event) !== 'failed' || event.error?.retryable !== true)
    fault('tries again what has not failed for now');
  if (event?.error?.error_code !== retry.reason) fault(`gives ${retry.reason} as the reason`);
  if (retry.logical_parent_run_id !== first.run.parent_run_id) fault('acts for another run than the first attempt');
  const woken = story.turns[life.turn]?.input;
  const due = Date.parse(event?.timestamp_utc ?? '') + retries.backoff_ms * 2 ** (retry.count - 1);
  if (woken?.kind !== 'wake' || !(Date.parse(woken.time) >= due)) fault('did not wait for its time');
}

/** S4-82: every event contains the pins with which its run was created. */
function events({ run, said }: Life, fault: Fault): void {
  for (const { event } of said) {
    const same =
      canonicalJson([event.contract_version, event.policy_versions]) ===
        canonicalJson([run.contract_version, run.policy_versions]) &&
      event.correlation_id === run.correlation_id &&
      event.root_run_id === run.root_run_id &&
      (event.parent_run_id ?? null) === run.parent_run_id &&
      (event.case_id ?? null) === run.case_id &&
      (event.lane_id ?? null) === run.lane_id &&
      canonicalJson(event.taxonomy_versions ?? null) === canonicalJson(run.taxonomy_versions);
    if (!same) fault(`${event.event_id} has not what the run has`);
    if (isVote(event) || isResolution(event)) continue;
    if (event.role_id !== run.role_id || canonicalJson(event.actor) !== canonicalJson(run.actor))
      fault(`${event.event_id} is of another actor`);
  }
}
