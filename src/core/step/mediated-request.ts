// The request of a mediated run. It is complete: no later component has to interpret the proposal again (S0-53).

import {
  type ActionDefinition,
  columnsOf,
  type Catalogue,
  type TargetDefinition,
} from '../contract/policy/catalogue.js';
import type { ArtifactRef } from '../contract/artifact-ref.js';
import { sha256 } from '../contract/hash.js';
import { type JsonObject, isJsonObject, type Json, canonicalJson } from '../contract/json.js';
import type { Effect } from '../contract/run/effect.js';
import type { RunCreated } from '../contract/run/entry.js';
import { retryContext, childContext, contextInLane, type RunContext } from '../contract/run/run-context.js';
import { InvariantError } from '../errors.js';
import { authorizeWithOverlay, createLabel, laneContext } from '../policy/authorize-run.js';
import type { Verdict } from '../policy/verdict.js';
import type { Policy } from '../policy/policy.js';
import type { AuthorizationSubject } from './authorization-subject.js';
import { hashText } from '../contract/free-text.js';
import { rejectWith, type CheckedValue } from '../contract/fault.js';
import { CONFIDENTIALITY_FLAGS, type Label } from '../contract/policy/labels.js';
import type { OverlayFact } from '../contract/policy/overlay.js';
import type { WriteMode } from '../contract/policy/lanes.js';
import { isSchemaInstance } from '../contract/policy/registered-schema.js';
import type { PrivilegedRequest } from '../policy/privileged-request.js';

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

/** The part of a request that decides whether its run may execute it. */
interface DecidedRequest {
  readonly privileged: PrivilegedRequest;
  readonly effect: Pick<Effect, 'action'>;
  readonly overlay: OverlayFact | null;
}

/** Decides whether a mediated run may execute its request. */
export const authorizeRequest = (
  run: RunContext,
  { effect, privileged, overlay }: DecidedRequest,
  policy: Policy,
): Verdict => authorizeWithOverlay(run, { action: effect.action, privileged, overlay }, policy);

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

// The part of the request that the policy decides: the tool, the table, and the case that owns it. Three actions name
// their target in an argument. The catalogue defines that target; the agent supplies only its name.

/** The request of one action by the mediated run `run`. */
export function privilegedRequest(
  definition: ActionDefinition,
  args: JsonObject,
  run: RunContext,
  catalogue: Catalogue,
  label: Label,
): PrivilegedRequest {
  switch (definition.name) {
    case 'CALL_TOOL': {
      const tool = textOf(args['tool']);
      const known = catalogue.tool(tool);
      const own = ownRequest(definition, run, label);
      const destination = known?.outside === true ? 'outside' : own.destination;
      const unregistered = known === undefined ? 'tool.not_registered' : null;
      const input = args['input'];
      return { ...own, tool, destination, unregistered, ...(isJsonObject(input) ? { input } : {}) };
    }
    case 'WRITE_RECORD':
      return writeRequest(args, ownRequest(definition, run, label), catalogue);
    case 'READ_RECORDS':
      return readRequest(args, ownRequest(definition, run, label), catalogue);
    default:
      return ownRequest(definition, run, label);
  }
}

/** The request with a hash in place of a tool or table that is not registered. AUTHORIZE denies such a request. */
export function withRecordedNames(privileged: PrivilegedRequest): PrivilegedRequest {
  const { unregistered, tool, write, read } = privileged;
  if (unregistered === 'tool.not_registered' && tool !== null) return { ...privileged, tool: hashText(tool) };
  if (unregistered !== 'target.not_registered') return privileged;
  return {
    ...privileged,
    write: write === null ? null : { ...write, table: hashText(write.table) },
    read: read === null ? null : hashText(read),
  };
}

/**
 * Validates the arguments against the schema of the tool or target, after the schema of the action. A target that is
 * not registered has no schema: AUTHORIZE denies it.
 * @returns the rejection, or null
 */
export function checkRegisteredArgs(
  definition: ActionDefinition,
  args: JsonObject,
  catalogue: Catalogue,
): CheckedValue<never> | null {
  switch (definition.name) {
    case 'CALL_TOOL': {
      const tool = catalogue.tool(textOf(args['tool']));
      if (tool === undefined || isSchemaInstance(tool.input, args['input'])) return null;
      return rejectWith('INVALID_ARGS', 'args.tool_input');
    }
    case 'WRITE_RECORD': {
      const target = catalogue.target(textOf(args['target']));
      if (target === undefined || isSchemaInstance(target.record, args['record'])) return null;
      return rejectWith('INVALID_ARGS', 'args.record');
    }
    case 'READ_RECORDS': {
      const target = catalogue.target(textOf(args['target']));
      if (target === undefined) return null;
      if (!hasValidColumns(target, args['where'])) return rejectWith('INVALID_ARGS', 'args.where');
      return isWholeKey(target, args['after']) ? null : rejectWith('INVALID_ARGS', 'args.after');
    }
    default:
      return null;
  }
}

/** Whether the effect runs inside the ledger's transaction: before its commit, so that both commit together. */
export function isInCommit(definition: ActionDefinition, args: JsonObject, catalogue: Catalogue): boolean {
  if (definition.run_kind === 'tool_gateway') return definition.risk === 'read' && definition.paths.length > 0;
  return RECORD_ACTION_NAMES.includes(definition.name) && catalogue.target(textOf(args['target']))?.place === 'ledger';
}

/** Whether a second execution with the same key has no further effect. Record stores deduplicate by key. */
export function isIdempotent(definition: ActionDefinition, args: JsonObject, catalogue: Catalogue): boolean {
  if (definition.name === 'CALL_TOOL') return catalogue.tool(textOf(args['tool']))?.idempotent === true;
  return definition.idempotent || RECORD_ACTION_NAMES.includes(definition.name);
}

/**
 * The time within which the caller of an agent must report the outcome of an action that it executes itself, in
 * milliseconds; null for an action that the platform executes (U-08).
 */
export function reportTimeout(
  { action, args }: Pick<AuthorizationSubject, 'action' | 'args'>,
  catalogue: Catalogue,
): number | null {
  if (action !== 'CALL_TOOL') return null;
  const tool = catalogue.tool(textOf(args?.['tool']));
  return tool?.external === true ? tool.timeout_ms : null;
}

/** The label that the result of the action adds to the run (information flow); null if the result adds none. */
export function resultLabel(
  definition: ActionDefinition,
  args: JsonObject,
  { target_case_id }: PrivilegedRequest,
  catalogue: Catalogue,
): Label | null {
  const { name, risk, run_kind } = definition;
  if (name === 'CALL_TOOL') {
    return createLabel(target_case_id, catalogue.tool(textOf(args['tool']))?.confidentiality ?? CONFIDENTIALITY_FLAGS);
  }
  if (name === 'READ_RECORDS') {
    return createLabel(
      target_case_id,
      catalogue.target(textOf(args['target']))?.confidentiality ?? CONFIDENTIALITY_FLAGS,
    );
  }
  const own = catalogue.registrations.actions.find((action) => action.name === name);
  if (own !== undefined) return createLabel(target_case_id, own.confidentiality);
  return risk === 'read' && run_kind !== null ? createLabel(target_case_id, []) : null;
}

const RECORD_ACTION_NAMES = ['WRITE_RECORD', 'READ_RECORDS'];

/** Lists every member instead of spreading, because every step builds this object. */
const ownRequest = (
  { tool, write, read, outside }: ActionDefinition,
  run: RunContext,
  label: Label,
): PrivilegedRequest => ({
  tool,
  write,
  read,
  target_case_id: run.case_id,
  destination: outside ? 'outside' : 'platform',
  plane: 'case',
  artifact_flags: NO_ARTIFACT_FLAGS,
  unregistered: null,
  promotes: false,
  label,
});

const NO_ARTIFACT_FLAGS: readonly string[] = [];

function writeRequest(args: JsonObject, own: PrivilegedRequest, catalogue: Catalogue): PrivilegedRequest {
  const table = textOf(args['target']);
  const mode: WriteMode = args['mode'] === 'upsert' ? 'upsert' : 'append';
  const target = catalogue.target(table);
  const unregistered =
    target === undefined ? 'target.not_registered' : target.modes.includes(mode) ? null : 'target.mode_not_registered';
  return { ...withTargetPlane(own, target), write: { table, mode }, unregistered };
}

function readRequest(args: JsonObject, own: PrivilegedRequest, catalogue: Catalogue): PrivilegedRequest {
  const read = textOf(args['target']);
  const target = catalogue.target(read);
  const requestedCase = args['case_id'];
  const onTargetPlane = withTargetPlane(own, target);
  return {
    ...onTargetPlane,
    read,
    target_case_id:
      typeof requestedCase === 'string' && onTargetPlane.plane === 'case'
        ? requestedCase
        : onTargetPlane.target_case_id,
    unregistered: target === undefined ? 'target.not_registered' : null,
  };
}

/** A row of a shared target belongs to no case. */
const withTargetPlane = (own: PrivilegedRequest, target: TargetDefinition | undefined): PrivilegedRequest =>
  target?.plane === 'shared' ? { ...own, plane: 'shared', target_case_id: null } : own;

function hasValidColumns(target: TargetDefinition, where: Json | undefined): boolean {
  if (where === undefined) return true;
  if (!isJsonObject(where)) return false;
  const columns = columnsOf(target);
  return Object.entries(where).every(([name, value]) => {
    const schema = Object.hasOwn(columns, name) ? columns[name] : undefined;
    return schema !== undefined && isSchemaInstance(schema, value);
  });
}

/** Whether `after`, the position behind which a read continues, has exactly the key columns of the target. */
const isWholeKey = (target: TargetDefinition, after: Json | undefined): boolean =>
  after === undefined ||
  (hasValidColumns(target, after) &&
    isJsonObject(after) &&
    Object.keys(after).length === target.key.length &&
    target.key.every((name) => Object.hasOwn(after, name)));

const textOf = (value: Json | undefined): string => (typeof value === 'string' ? value : '');
