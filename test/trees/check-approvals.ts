// D7, from the vote events: whatever a policy requires approval for was approved by enough people, for that request of
// that run, in time, and not twice with one approval.

import type { ApprovalRule } from '../../src/core/contract/run/approval.js';
import { canonicalJson } from '../../src/core/contract/json.js';
import { sha256 } from '../../src/core/contract/hash.js';
import {
  actOf,
  behalfOf,
  isVote,
  proposalBefore,
  verdictsOf,
  type Faults,
  type Life,
  type Said,
  type Story,
} from './story.js';

const COUNTED = ['approval.accepted', 'approval.granted'];

export function approvals(story: Story): Faults {
  const faults: Faults = [...story.lives.values()].flatMap((life) => strangers(story, life));
  const used = new Set<string>();
  for (const [run_id, life] of story.lives) {
    const fault = (what: string): number => faults.push(`${run_id}: ${what}`);
    const { run_kind, retry } = life.run;
    const parent = story.lives.get(behalfOf(life) ?? '');
    const act = actOf(story, life);
    if (act === null || parent === undefined || retry !== null) continue;
    const own = run_kind === 'promotion' || run_kind === 'export';
    if (!own && parent.run.run_kind !== 'agent') continue;
    const rule = story.policy.approvals.find(({ for: subject }) => subject === (own ? run_kind : act.action));
    const asker = own ? life : parent;
    const digest = sha256(canonicalJson({ ...act, case_id: asker.run.case_id, run_id: asker.run.run_id }));
    const last = verdictsOf(life).at(-1);
    if (last === undefined) continue;
    const { event } = last;
    const waiting = event.authz?.rule_id === 'approval.required' && event.outcome === 'allow';
    if (rule === undefined) {
      if (event.request_hash_sha256 !== undefined) fault('has a digest, and no rule wants one');
      continue;
    }
    if (waiting) continue;
    const at = own ? event.timestamp_utc : (proposalBefore(story, life)?.time ?? event.timestamp_utc);
    const granted = isGranted(asker, digest, at, last.seq, rule);
    if (event.outcome === 'allow') {
      if (!granted) fault('was allowed without the approvals that its rule wants');
      if (event.request_hash_sha256 !== digest) fault('was allowed by another digest');
      if (used.has(digest)) fault('uses an approval that was used before');
      // Only an action that enters EXECUTE uses an approval: a write that was denied below its gateway has not.
      if (executed(story, life)) used.add(digest);
    } else if (event.authz?.rule_id.startsWith('approval.') === true && granted && !used.has(digest)) {
      fault(`was denied by ${event.authz.rule_id}, and is approved`);
    }
  }
  return faults;
}

const executed = ({ lives }: Story, { run, performed }: Life): boolean =>
  performed.length > 0 || (lives.get(`${run.run_id}.1`)?.performed.length ?? 0) > 0;

/** Enough different people, the earliest vote not too old, and no rejection by an eligible person. */
function isGranted(asker: Life, digest: string, at: string, before: number, rule: ApprovalRule): boolean {
  // All votes before the decision; their age counts from the time of the request.
  const votes = asker.said.filter(
    ({ event, seq }) => isVote(event) && seq < before && event.request_hash_sha256 === digest,
  );
  if (votes.some(({ event }) => event.authz?.rule_id === 'approval.rejected')) return false;
  const fresh = votes.filter(
    ({ event }) =>
      COUNTED.includes(event.authz?.rule_id ?? '') &&
      Date.parse(at) - Date.parse(event.timestamp_utc) < rule.expires_minutes * 60_000,
  );
  return new Set(fresh.map(({ event }) => event.actor.actor_id.trim().toLowerCase())).size >= rule.quorum;
}

/**
 * No vote of an agent, the system, a stranger or the requester counts, nor a vote for a request that does not exist.
 */
function strangers(story: Story, life: Life): Faults {
  const { policy } = story;
  const requests = requestedOf(story, life);
  return life.said.flatMap(({ event, seq }) => {
    const rule_id = event.authz?.rule_id ?? '';
    if (!isVote(event) || ![...COUNTED, 'approval.rejected'].includes(rule_id)) return [];
    const request = requests.find(
      (asked) => asked.seq < seq && asked.event.request_hash_sha256 === event.request_hash_sha256,
    );
    const role = policy.roles.get(event.role_id ?? '');
    const wrong =
      event.actor.actor_type !== 'human' ||
      role?.class !== 'human' ||
      !policy.approvals.some(({ approver_roles }) => approver_roles.includes(role.role_id)) ||
      event.actor.actor_id.trim().toLowerCase() === life.run.actor.actor_id.toLowerCase() ||
      request === undefined;
    return wrong ? [`${life.run.run_id}: a vote of ${event.actor.actor_id} has counted`] : [];
  });
}

/** The decisions by which the run, or a run on its behalf, has requested approval. */
const requestedOf = ({ lives }: Story, asker: Life): readonly Said[] =>
  [asker, ...[...lives.values()].filter((life) => behalfOf(life) === asker.run.run_id)].flatMap((life) =>
    verdictsOf(life).filter(({ event }) => event.authz?.rule_id.startsWith('approval.') === true),
  );
