// Acts of operators on the ledger (C101): policy decides each before it happens, and the ledger records it. The caller
// executes an allowed act and reports its outcome.

import Type, { type Static, type TObject } from 'typebox';
import { artifactRef, type Artifact } from '../core/contract/artifact-ref.js';
import { sha256 } from '../core/contract/hash.js';
import { isJsonObject, type JsonObject, parseOwnJson, canonicalJson } from '../core/contract/json.js';
import type { AuditEvent } from '../core/contract/run/audit-event.js';
import { OPERATOR_ACTS, type ConcernedCase, type OperatorAction } from '../core/contract/run/operator-act.js';
import { CaseId, Identifier, RunId } from '../core/contract/shapes.js';
import type { NewInput, TreeEngine } from '../engine/tree-engine.js';
import { LedgerError, RunError, usageError } from '../core/errors.js';
import { EMPTY_LABEL } from '../core/policy/authorize-run.js';
import type { Ids } from '../engine/ports/ids.js';
import type { LedgerStore } from '../engine/ports/ledger/ledger-store.js';
import { asPerson, validateActor, validateField } from './agents/caller-input.js';
import { rootRunIdOf } from '../core/contract/run/run-context.js';
import type { PinnedPolicy, PolicyCache } from './policy-cache.js';

const Text = Type.String({ maxLength: 400 });
/** The person who requests an act. */
export const OPERATOR_FIELDS = {
  /** 3 to 120 characters, without control characters. */
  actor: Text,
  /** Default: `operator`. */
  role: Type.Optional(Text),
  /** Where policy limits the act. Default: `LEDGER_OPERATIONS`. */
  lane: Type.Optional(Text),
  /** The run of an earlier request that people have approved since. Absent: this is a new request. */
  approved: Type.Optional(RunId),
};

export type Operator = Readonly<Static<TObject<typeof OPERATOR_FIELDS>>>;

export interface OperatorRequest {
  readonly action: OperatorAction;
  /** The cases that the act concerns; empty for an act on the ledger as a whole. */
  readonly cases: readonly string[];
  /** What else the act depends on, such as a boundary: approvers approve exactly this. */
  readonly details: JsonObject;
}

/** An allowed act, which the caller executes now. */
export interface OperatorGrant {
  readonly run_id: string;
}

interface OperatorParts {
  readonly engine: Pick<TreeEngine, 'submit' | 'peek'>;
  readonly store: Pick<LedgerStore, 'treesOf' | 'tree' | 'artifact'>;
  readonly policyCache: Pick<PolicyCache, 'current'>;
  readonly ids: Ids;
}

export const OPERATOR_DEFAULTS = { role: 'operator', lane: 'LEDGER_OPERATIONS' } as const;
/** An act on more cases than this is refused: conditions are decided for each of them. */
export const OPERATOR_CASES_MAX = 1_000;
/** Of one case. */
const SCOPES_MAX = 256;

/**
 * Executes an act if policy allows it, and records request, decision and outcome.
 * @throws RunError ACT_DENIED, or APPROVAL_PENDING if people have to approve it first; then nothing was executed
 * @throws what `execute` throws, which is recorded as a failed act
 */
export async function executeGoverned<T>(
  parts: OperatorParts,
  operator: Operator,
  request: OperatorRequest,
  execute: () => Promise<T>,
): Promise<T> {
  const grant = await requestGrant(parts, operator, request);
  let result: T;
  try {
    result = await execute();
  } catch (error) {
    await reportAct(parts, grant, 'failed');
    throw error;
  }
  await reportAct(parts, grant, 'done');
  return result;
}

/**
 * Asks policy for an act, or resumes a request that was approved, which is granted once.
 * @throws RunError ACT_DENIED, APPROVAL_PENDING, INVALID_STATE_TRANSITION if the request was resumed before
 */
export async function requestGrant(
  parts: OperatorParts,
  operator: Operator,
  request: OperatorRequest,
): Promise<OperatorGrant> {
  const { cases } = request;
  if (cases.length > OPERATOR_CASES_MAX) throw usageError(`an act on more than ${OPERATOR_CASES_MAX} cases: divide it`);
  const concerned: ConcernedCase[] = [];
  for (const case_id of cases) concerned.push(await concernedCase(parts.store, validateField('case', CaseId, case_id)));
  const args: JsonObject = { ...request.details, cases: concerned.map((one) => ({ ...one })) };
  const actor = validateActor(operator.actor);
  if (/\p{Cc}/u.test(actor)) throw usageError('actor: no control characters');
  if (operator.approved !== undefined)
    return resume(parts, { ...operator, actor }, operator.approved, { action: request.action, args });
  const run_id = await start(parts, { ...operator, actor }, { action: request.action, args });
  return requireRunning(parts, run_id, request.action);
}

/** Records the outcome. The caller has executed the act, or failed to. */
export async function reportAct(
  { engine }: Pick<OperatorParts, 'engine'>,
  { run_id }: OperatorGrant,
  status: 'done' | 'failed',
): Promise<void> {
  const run = (await engine.peek(rootRunIdOf(run_id)))?.pendingHighRiskRuns.find((one) => one.run_id === run_id);
  if (run === undefined) return;
  const { actor } = run;
  const report = { kind: 'report', run_id, status, result: null, match: 'exact', actor } as const;
  const input = { ...report, input_id: `${run_id}/report` };
  await engine.submit(rootRunIdOf(run_id), { input, materials: [], rememberInputId: true });
}

interface Act {
  readonly action: OperatorAction;
  readonly args: JsonObject;
}

/** Submits the request, which opens a run tree of its own. @returns its run */
async function start({ engine, policyCache, ids }: OperatorParts, operator: Operator, act: Act): Promise<string> {
  const pinned = await policyCache.current();
  const root = ids.draw('run_');
  const { pins: policies, machines, materials } = pinned;
  const open = { kind: 'open', run_id: root, input_id: `${root}/open`, correlation_id: ids.draw('cor_') } as const;
  const given = { case_id: null, taxonomy_versions: null, scope: {}, policies, machines };
  await engine.submit(root, { input: { ...open, ...given }, materials, rememberInputId: false });
  const material: Artifact = { kind: 'request', case_id: null, bytes: Buffer.from(canonicalJson({ ...act })) };
  const role_id = validateField('role', Identifier, operator.role ?? OPERATOR_DEFAULTS.role);
  const input: NewInput = {
    kind: 'start_run',
    run_id: root,
    input_id: `${root}/start_run`,
    run_kind: 'tool_gateway',
    actor: { actor_type: classOf(role_id, pinned), actor_id: operator.actor },
    person: asPerson(operator.actor),
    role_id,
    lane_id: validateField('lane', Identifier, operator.lane ?? OPERATOR_DEFAULTS.lane),
    request: artifactRef(material),
    inputs: [],
    facts: { artifact_flags: [], label: EMPTY_LABEL },
  };
  const { refused } = await engine.submit(root, { input, materials: [material], rememberInputId: false });
  // The pins of the tree are not known: the policy files must be pinned first.
  if (refused) throw deniedError(act.action, 'pin.missing', root);
  return `${root}.1`;
}

/** @throws RunError if the run has been denied, or waits for approval */
async function requireRunning(
  { engine, store }: OperatorParts,
  run_id: string,
  action: OperatorAction,
): Promise<OperatorGrant> {
  const tree = await engine.peek(rootRunIdOf(run_id));
  const [entry] = tree?.approvals(run_id)?.entries ?? [];
  if (tree === null || !tree.isLive(run_id)) throw deniedError(action, await denialRule(store, run_id), run_id);
  if (entry === undefined || entry.state === 'consumed') return { run_id };
  const what = OPERATOR_ACTS[action].subject;
  throw new RunError({
    code: 'APPROVAL_PENDING',
    message:
      `the ${what} waits for approval until ${entry.expires_at}: people approve it with ` +
      `\`turnpike approve ${run_id} ${entry.digest}\`; then repeat the command with --approved ${run_id}`,
  });
}

/**
 * Grants an approved request once: the ledger records who resumes it, under an id that only one process can use. What
 * was granted and not reported may have happened, so it is not granted again.
 * @throws UsageError for a run of another act; RunError ACT_DENIED, APPROVAL_PENDING, INVALID_STATE_TRANSITION
 */
async function resume(parts: OperatorParts, operator: Operator, run_id: string, act: Act): Promise<OperatorGrant> {
  const { engine, store } = parts;
  const tree = await engine.peek(rootRunIdOf(run_id));
  const isPending = tree?.pendingHighRiskRuns.some((run) => run.run_id === run_id) === true;
  const started = await startedRequest(store, run_id);
  if (started === null) throw usageError(`approved: ${run_id} is not the run of an operator's act`);
  if (started.hash_sha256 !== sha256(canonicalJson({ ...act }))) {
    throw usageError(`approved: ${run_id} is a request for something else, or the cases have changed since`);
  }
  if (!isPending) throw deniedError(act.action, (await denialRule(store, run_id)) ?? 'ended', run_id);
  const grant = await requireRunning(parts, run_id, act.action);
  // Without an approval, the process that requested it executes it.
  if ((tree.approvals(run_id)?.entries ?? []).length === 0) throw resumedError(act.action, run_id);
  const role_id = validateField('role', Identifier, operator.role ?? OPERATOR_DEFAULTS.role);
  const input: NewInput = {
    kind: 'access',
    run_id,
    input_id: `${run_id}/resumed`,
    entry: started.seq,
    artifact_kind: 'request',
    hash_sha256: started.hash_sha256,
    actor: { actor_type: 'human', actor_id: operator.actor },
    role_id,
  };
  const { refused, repeat_of } = await engine.submit(rootRunIdOf(run_id), {
    input,
    materials: [],
    rememberInputId: true,
  });
  if (refused || repeat_of !== null) throw resumedError(act.action, run_id);
  return grant;
}

interface StartedRequest {
  /** The entry that started the run. */
  readonly seq: number;
  readonly hash_sha256: string;
}

/** What the run was started with; null if no person has started it as an operator's act. */
async function startedRequest(store: OperatorParts['store'], run_id: string): Promise<StartedRequest | null> {
  for await (const { seq, text } of store.tree(rootRunIdOf(run_id), 0)) {
    const { body } = parseOwnJson(text) as { readonly body: Readonly<Record<string, unknown>> };
    if (body['kind'] !== 'start_run' || body['run_kind'] !== 'tool_gateway') continue;
    const { request } = body;
    return typeof request === 'object' && request !== null && 'hash_sha256' in request
      ? { seq, hash_sha256: String(request.hash_sha256) }
      : null;
  }
  return null;
}

/** The rule that denied the run. */
async function denialRule(store: OperatorParts['store'], run_id: string): Promise<string | null> {
  let rule: string | null = null;
  for await (const { type, text } of store.tree(rootRunIdOf(run_id), 0)) {
    if (type !== 'audit_event') continue;
    const { body } = parseOwnJson(text) as { readonly body: AuditEvent };
    if (body.run_id === run_id && body.authz?.decision === 'deny') rule = body.authz.rule_id;
  }
  return rule;
}

/** The scopes are those of the run trees of the case, so that a hold on a matter holds its cases. */
async function concernedCase(store: OperatorParts['store'], case_id: string): Promise<ConcernedCase> {
  const scopes = new Map<string, Readonly<Record<string, string>>>();
  for (const { tree_id } of await store.treesOf(case_id)) {
    const scope = await scopeOf(store, tree_id);
    if (Object.keys(scope).length > 0) scopes.set(canonicalJson(scope), scope);
    if (scopes.size > SCOPES_MAX) throw usageError(`case ${case_id} has more than ${SCOPES_MAX} different scopes`);
  }
  return { case_id, scopes: [...scopes.keys()].toSorted().map((key) => scopes.get(key) ?? {}) };
}

async function scopeOf(store: OperatorParts['store'], tree_id: string): Promise<Readonly<Record<string, string>>> {
  try {
    for await (const { text } of store.tree(tree_id, 0)) {
      const { body } = parseOwnJson(text) as { readonly body: { readonly scope?: unknown } };
      return isJsonObject(body.scope) ? (body.scope as Readonly<Record<string, string>>) : {};
    }
  } catch (error) {
    // Archived entries are in files outside of the ledger, and so is their content.
    if (!(error instanceof LedgerError && error.code === 'LEDGER_ARCHIVED')) throw error;
  }
  return {};
}

const deniedError = (action: OperatorAction, rule: string | null, run_id: string): RunError =>
  new RunError({
    code: 'ACT_DENIED',
    message: `policy denies the ${OPERATOR_ACTS[action].subject}: ${rule ?? 'no rule allows it'} (run ${run_id})`,
  });

const resumedError = (action: OperatorAction, run_id: string): RunError =>
  new RunError({
    code: 'INVALID_STATE_TRANSITION',
    message:
      `the ${OPERATOR_ACTS[action].subject} of run ${run_id} was begun and its outcome is not recorded: find out whether ` +
      'it has happened, and request it anew',
  });

const classOf = (role: string, { policy }: PinnedPolicy) => policy.roles.get(role)?.class ?? 'human';
