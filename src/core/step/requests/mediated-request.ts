// The complete request of a mediated run. No later component has to interpret the proposal again (S0-53).

import type { ActionDefinition } from '../../contract/policy/catalogue.js';
import { type ArtifactRef } from '../../contract/artifact-ref.js';
import { sha256 } from '../../contract/hash.js';
import { canonicalJson } from '../../contract/canonical-json.js';
import type { Effect } from '../../contract/run/effect.js';
import type { RunCreated } from '../../contract/run/entry.js';
import type { JsonObject } from '../../contract/json.js';
import { retryContext, childContext, contextInLane, type RunContext } from '../../contract/run/run-context.js';
import { InvariantError } from '../../errors.js';
import { laneContext } from '../../policy/authorize-run.js';
import type { Policy } from '../../policy/policy.js';
import type { AuthorizationSubject } from '../authorization-subject.js';
import { isIdempotent, isInCommit, privilegedRequest } from './action-request.js';
import { withRecordedNames } from '../check-phases.js';

const contexts = new WeakMap<RunContext, { readonly run: RunContext; readonly lane_id: string | null }>();

/**
 * The context of the mediated run of this action. It is in the action's own lane if the policy names one (D12).
 * A step needs the context several times, so the last one of each agent run is cached.
 */
export function mediatedContext(
  step: Pick<AuthorizationSubject, 'agent' | 'action' | 'mediated_run_id'>,
  policy: Policy,
): RunContext {
  const lane_id = policy.actions.get(step.action ?? '')?.lane ?? step.agent.lane_id;
  const run_kind = policy.catalogue.action(step.action ?? '')?.run_kind ?? 'tool_gateway';
  const known = contexts.get(step.agent);
  if (known?.run.run_id === step.mediated_run_id && known.lane_id === lane_id && known.run.run_kind === run_kind) {
    return known.run;
  }
  const child = childContext(step.agent, step.mediated_run_id, run_kind);
  const lane = lane_id === null ? undefined : policy.lanes.get(lane_id);
  const run = lane === undefined ? contextInLane(child, lane_id, child.case_id) : laneContext(child, lane);
  contexts.set(step.agent, { run, lane_id });
  return run;
}

/** One attempt at an action: its mediated run, and for a retry the run of the earlier attempt. */
export interface Attempt {
  readonly run: RunContext;
  readonly retry: RunCreated['retry'];
  /** The key of the first attempt, or of an earlier request. Null: its own run id. */
  readonly idempotency_key: string | null;
}

/** C54: every retry is a separate run, a child of the first attempt's run, for the same agent. */
export function retryAttempt(
  first: RunContext,
  run_id: string,
  count: number,
  retryOf: string,
  { reason, key }: { readonly reason: string; readonly key: string | null },
): Attempt {
  const logical_parent_run_id = first.parent_run_id ?? first.root_run_id;
  return {
    run: retryContext(first, run_id),
    retry: { count, reason, of: retryOf, logical_parent_run_id },
    idempotency_key: key ?? first.run_id,
  };
}

/** @param key the key of an earlier request for the same, which may have had its effect (C95) */
export const firstAttempt = (run: RunContext, key: string | null = null): Attempt => ({
  run,
  retry: null,
  idempotency_key: key,
});

/** SHA-256 of the canonical request (S4-60). */
export const requestHash = ({ name }: ActionDefinition, args: JsonObject, { case_id }: RunContext): string =>
  sha256(canonicalJson({ action: name, args, case_id }));

/** The request of an action that AUTHORIZE has decided. @throws InvariantError if the action does not exist */
export function mediatedRequest(step: AuthorizationSubject, { run, retry, idempotency_key }: Attempt, policy: Policy) {
  const { catalogue } = policy;
  const definition = catalogue.action(step.action ?? '');
  if (definition === undefined) throw new InvariantError('an action is mediated that does not exist');
  const args = step.authorization.args ?? step.args ?? {};
  const hash = requestHash(definition, args, run);
  const idempotent = isIdempotent(definition, args, catalogue);
  const effect: Omit<Effect, 'run_id' | 'idempotency_key'> = {
    action: definition.name,
    args,
    case_id: run.case_id,
    request_hash: hash,
    before: step.authorization.before,
    partial_outputs: canLeavePartialOutputs(run, policy),
    repeatable: idempotent,
    explained: step.exposure === 'explained',
    limits: effectLimits(policy),
  };
  return {
    privileged: withRecordedNames(privilegedRequest(definition, args, run, catalogue, step.label)),
    hash,
    effect,
    idempotency_key,
    in_commit: isInCommit(definition, args, catalogue),
    idempotent,
    inputs: [step.payload],
    written:
      definition.name === 'WRITE_RECORD'
        ? writtenRecord(args, run, step.payload, policy)
        : writtenArtifact(definition, args, run, step.payload),
    retry,
    overlay: step.overlay,
  };
}

/** S4-65: partial outputs are stored only if the lane permits them. */
export const canLeavePartialOutputs = ({ lane_id }: RunContext, { lanes }: Policy): boolean =>
  lane_id !== null && lanes.get(lane_id)?.partial_outputs === true;

/** A reference to the content of a written file. The payload contains the content, so it is not stored again. */
function writtenArtifact(
  definition: ActionDefinition,
  args: JsonObject,
  run: RunContext,
  payload: ArtifactRef,
): ArtifactRef | null {
  const content = args['content'];
  if (definition.paths.length === 0 || definition.write === null || typeof content !== 'string') return null;
  const hash = sha256(content);
  return {
    artifact_id: `sha256:${hash}`,
    artifact_kind: 'file_content',
    hash_sha256: hash,
    byte_size: Buffer.byteLength(content),
    ...caseScopeOf(run),
    lineage: { derived_from: [payload.artifact_id], transformation: 'args.content' },
  };
}

/** The kinds of the records that the contract names (S4-61). Records of other tables have the name of their table. */
const RECORD_KINDS: Readonly<Record<string, string>> = {
  transcripts: 'transcript',
  entities: 'entity',
  facts: 'fact',
};
const KIND_CHARS_MAX = 80;

/**
 * A reference to a written record: the hash of its canonical JSON. The payload contains the record, so it is not stored
 * again. Its id differs from that of an equal record of another table.
 */
function writtenRecord(
  { target, record }: JsonObject,
  run: RunContext,
  payload: ArtifactRef,
  { catalogue }: Policy,
): ArtifactRef | null {
  if (typeof target !== 'string' || record === undefined) return null;
  const text = canonicalJson(record);
  const known = Object.hasOwn(RECORD_KINDS, target) ? RECORD_KINDS[target] : undefined;
  const { plane, confidentiality = [] } = catalogue.target(target) ?? {};
  const marks = Object.fromEntries(confidentiality.map((flag) => [flag, true] as const));
  return {
    artifact_id: `record:${sha256(canonicalJson([target, record]))}`,
    artifact_kind: known ?? target.slice(0, KIND_CHARS_MAX),
    hash_sha256: sha256(text),
    hash_source: 'normalized_json',
    byte_size: Buffer.byteLength(text),
    ...(plane === 'shared' ? { scope: 'shared' as const } : caseScopeOf(run)),
    lineage: { derived_from: [payload.artifact_id], transformation: 'args.record' },
    ...(confidentiality.length === 0 ? {} : { confidentiality: marks }),
  };
}

const caseScopeOf = ({ case_id }: RunContext): Pick<ArtifactRef, 'scope' | 'case_id'> =>
  case_id === null ? {} : { scope: 'case', case_id };

/**
 * EXECUTE of an action without an effect: THINK and FINISH succeed once they are allowed (C09).
 * @returns the result, or null for an action that an executor must run
 */
export function unprivilegedResult({ name }: ActionDefinition, args: JsonObject): JsonObject | null {
  if (name === 'THINK') return {};
  if (name !== 'FINISH') return null;
  const { response } = args;
  if (response === undefined) throw new InvariantError('FINISH was executed with arguments that are not valid');
  return { response };
}

/** Read limits for an executor. They are part of the effect, so the executor needs no policy. */
export const effectLimits = ({ limits }: Policy): Effect['limits'] => ({
  read_bytes_max: limits.read_bytes_max,
  list_entries_max: limits.list_entries_max,
});
