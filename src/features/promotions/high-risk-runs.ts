// Promotions and exports (S4 §10), from the request to their end. Votes of people on them are in `ballots.ts`.

import { artifactRef, type Artifact, type ArtifactRef } from '../../core/contract/artifact-ref.js';
import { type JsonObject, canonicalJson } from '../../core/contract/json.js';
import { columnsOf, type Catalogue } from '../../core/contract/policy/catalogue.js';
import type { HighRiskKind, StartRunInput } from '../../core/contract/run/entry.js';
import type { Label } from '../../core/contract/policy/labels.js';
import type { Lane } from '../../core/contract/policy/lanes.js';
import { isSchemaInstance } from '../../core/contract/policy/registered-schema.js';
import { CaseId, Identifier } from '../../core/contract/shapes.js';
import type { CaseLabelVersion, NewInput, Submission, SubmissionResult, TreeEngine } from '../../engine/tree-engine.js';
import { RunError, usageError } from '../../core/errors.js';
import type { RunTermination } from '../../kernel/decision.js';
import { policyVersions } from '../../core/policy/files/policy-versions.js';
import { isCaseRequired, EMPTY_LABEL, withheldFlags } from '../../core/policy/authorize-run.js';
import type { Clock } from '../../engine/ports/clock.js';
import type { Ids } from '../../engine/ports/ids.js';
import type { LedgerStore } from '../../engine/ports/ledger/ledger-store.js';
import type { Pace } from '../../engine/ports/pace.js';
import type { RunEnding } from '../../runtime/agents/agent-run.js';
import { createDeferred, ignoreRejection, type DeferredPromise } from '../../runtime/deferred.js';
import { findWithheldLanes } from '../../runtime/content/withheld-lanes.js';
import { requireMembers } from '../../runtime/required-members.js';
import { rootRunIdOf, type RunContext } from '../../core/contract/run/run-context.js';
import { CaseHistory } from '../../runtime/case/case-history.js';
import {
  validateActor,
  validateField,
  validateRole,
  asNamedPerson,
  createCancelInput,
  createOpenInput,
} from '../../runtime/agents/caller-input.js';
import { runNotCancellableError } from '../../runtime/agents/run-errors.js';
import type { PinnedPolicy, PolicyCache } from '../../runtime/policy-cache.js';
import type { RunTracing } from '../../runtime/agents/agents.js';
import type { PromotedRecord } from './content-search.js';
import { locatorOf } from '../../runtime/effects/export-root.js';
import { computeCaseLabel } from '../../runtime/case/case-label.js';
import type { CancellableRun, ExportOptions, PromoteOptions, RunStarter } from '../../runtime/high-risk-options.js';

interface HighRiskParts {
  readonly engine: TreeEngine;
  readonly policyCache: PolicyCache;
  readonly store: LedgerStore;
  readonly ids: Ids;
  readonly clock: Clock;
  readonly catalogue: Catalogue;
  readonly pace: Pace;
  /** The folder of exports, or null. */
  readonly exports: string | null;
  readonly telemetry: Pick<RunTracing, 'openTree'>;
}

interface RunStart {
  readonly run_kind: HighRiskKind;
  readonly request: { readonly action: string; readonly args: JsonObject };
  readonly inputs: readonly ArtifactRef[];
  readonly facts: StartRunInput['facts'];
  readonly lane: string;
  readonly scope: Readonly<Record<string, string>>;
}

/** How often a run is prepared, if its case changes meanwhile. */
const ATTEMPTS_MAX = 5;

const isCaseChanged = (error: unknown): boolean => error instanceof RunError && error.code === 'CASE_CHANGED';

/** The lanes of the shipped policy for the two kinds. */
const LANES = { promotion: 'PROMOTE_SHARED_KNOWLEDGE', export: 'EXPORT_CASE_DATA' } as const;

export class HighRiskRuns {
  readonly #parts: HighRiskParts;
  readonly #live = new Map<string, DeferredPromise<RunEnding>>();
  #isClosed = false;

  constructor(parts: HighRiskParts) {
    this.#parts = parts;
  }

  async promote(options: PromoteOptions): Promise<CancellableRun> {
    requireMembers(options, { actor: 'text', role: 'text', target: 'text', record: 'object' });
    const { catalogue } = this.#parts;
    const { target, record } = options;
    const definition = catalogue.target(target);
    if (definition !== undefined && !isSchemaInstance(definition.record, record)) {
      const columns = Object.keys(columnsOf(definition)).join(', ');
      throw usageError(`record: it does not conform to ${target} (${columns})`);
    }
    const sources = await Promise.all((options.sources ?? []).map((hash) => this.#findSource(options.case, hash)));
    const lane = options.lane ?? LANES.promotion;
    return this.#startCurrent(options, lane, async (history) => this.#promotionOf(options, lane, history, sources));
  }

  async #promotionOf(
    options: PromoteOptions,
    lane: string,
    history: CaseHistory | null,
    sources: readonly ArtifactRef[],
  ): Promise<RunStart> {
    const { catalogue, store, policyCache } = this.#parts;
    const { target, mode = 'append', record, confidentiality = [] } = options;
    const definition = catalogue.target(target);
    const checks = (await policyCache.current()).policy.lanes.get(lane)?.content_checks ?? {};
    const ids = caseIds(options);
    const carried = { record, target: definition, checks, catalogue, ids };
    const findings = history === null ? [] : await this.#findCarriedOver(history, carried);
    const flags = new Set([
      'sanitized_insight',
      ...confidentiality,
      ...(definition?.confidentiality ?? []),
      ...findings,
    ]);
    return {
      run_kind: 'promotion',
      request: { action: 'WRITE_RECORD', args: { target, mode, record } },
      inputs: sources,
      facts: { artifact_flags: [...flags], label: await caseLabelOf(store, history) },
      lane,
      scope: { ...options.scope, ...ticketOf(options) },
    };
  }

  /** Loads the search and its packages only here, because exports need none of them. */
  async #findCarriedOver(history: CaseHistory, carried: PromotedRecord): Promise<readonly string[]> {
    const { findCarriedOver } = await import('./content-search.js');
    return findCarriedOver(this.#parts, history, carried);
  }

  async export(options: ExportOptions): Promise<CancellableRun> {
    requireMembers(options, { actor: 'text', role: 'text', reason: 'text', destination: 'text' });
    const lane = options.lane ?? LANES.export;
    return this.#startCurrent(options, lane, (history) => this.#exportOf(options, lane, history));
  }

  async #exportOf(options: ExportOptions, lane: string, history: CaseHistory | null): Promise<RunStart> {
    const { ids, clock, policyCache, store } = this.#parts;
    const { kind = 'internal_review', format = 'folder', reason } = options;
    const pinned = await policyCache.current();
    const label = await caseLabelOf(store, history);
    const lanes = history === null ? new Map<string, boolean>() : await findWithheldLanes(store, history);
    const withheld = addOwnLane(lanes, pinned.policy.lanes.get(lane));
    const args: JsonObject = {
      bundle_id: ids.draw('bundle_'),
      bundle_kind: kind,
      export_reason: reason,
      created_at_utc: new Date(clock.now()).toISOString(),
      created_by: {
        actor_type: classOf(options.role, pinned),
        actor_id: validateActor(options.actor),
        role_id: options.role,
        lane_id: lane,
      },
      policy_versions: policyVersions(pinned.pins, pinned.machines.hash_sha256),
      format,
      locator: locatorOf(this.#parts.exports, options.destination),
      label,
      // Approvers see whose withheld content would be exported.
      ...(withheld.size === 0 ? {} : { withheld_lanes: [...withheld.keys()].sort() }),
    };
    return {
      run_kind: 'export',
      request: { action: 'EXPORT_BUNDLE', args },
      inputs: [],
      facts: { artifact_flags: ['export_bundle', ...withheldFlags(withheld)], label },
      lane,
      scope: { ...options.scope, export_reason: reason },
    };
  }

  /** A handle on a promotion or export that has not ended. */
  async find(run_id: string): Promise<CancellableRun | null> {
    const tree = await this.#parts.engine.peek(rootRunIdOf(run_id));
    const run = tree?.pendingHighRiskRuns.find((context) => context.run_id === run_id);
    if (tree === null || run === undefined) return null;
    return this.#track(
      run_id,
      run.correlation_id,
      this.#live.get(run_id) ?? ignoreRejection(createDeferred<RunEnding>()),
    );
  }

  onRunEnded({ run_id, state, reason }: RunTermination): void {
    this.#live.get(run_id)?.resolve({ run_id, state, reason });
    this.#live.delete(run_id);
  }

  onEngineFailed(): void {
    // The ledger ends or continues the run when it is opened again.
    for (const [run_id, finished] of this.#live) finished.resolve({ run_id, state: 'failed', reason: 'AUDIT_FAILURE' });
    this.#live.clear();
  }

  /** Releases the runs, also those that start after it, while the engine still accepts them. */
  close(): void {
    this.#isClosed = true;
    for (const finished of this.#live.values()) finished.reject(releasedError());
    this.#live.clear();
  }

  /** Computes what a run states about its case, again if another worker has changed that before it was recorded. */
  async #startCurrent(
    options: RunStarter,
    lane: string,
    compute: (history: CaseHistory | null) => Promise<RunStart>,
  ): Promise<CancellableRun> {
    const case_id = await this.#caseOf(options, lane);
    if (case_id === null) return this.#start(options, await compute(null), null);
    for (let attempts = 1; ; attempts += 1) {
      // The version first: what changes after it is noticed at the commit.
      const version = await this.#parts.engine.labelVersion(case_id);
      const start = await compute(await this.#historyOf(case_id));
      try {
        return await this.#start(options, start, version === null ? null : { case_id, version });
      } catch (error) {
        if (attempts === ATTEMPTS_MAX || !isCaseChanged(error)) throw error;
      }
    }
  }

  /**
   * Null without a case that the lane requires: policy denies that run (S4-34).
   * @throws UsageError for an invalid case, and without a case where policy would not deny that
   */
  async #caseOf(options: RunStarter, lane: string): Promise<string | null> {
    if (options.case !== undefined) return validateField('case', CaseId, options.case);
    const { policy } = await this.#parts.policyCache.current();
    if (isCaseRequired(policy.lanes.get(lane))) return null;
    throw usageError('case: a promotion and an export are made of one case, and none is given');
  }

  async #start(options: RunStarter, start: RunStart, caseLabel: CaseLabelVersion | null): Promise<CancellableRun> {
    const { policyCache, ids } = this.#parts;
    const pinned = await policyCache.current();
    const root = ids.draw('run_');
    this.#parts.telemetry.openTree(root, options.trace);
    const opening = { ...options, case_id: options.case ?? null, scope: start.scope };
    const { open, notes } = createOpenInput(root, opening, pinned, ids);
    const material: Artifact = {
      kind: 'request',
      case_id: open.case_id,
      bytes: Buffer.from(canonicalJson(start.request)),
    };
    const run_id = `${root}.1`;
    const finished = ignoreRejection(createDeferred<RunEnding>());
    this.#live.set(run_id, finished);
    const input = createStartInput(root, options, start, artifactRef(material), pinned);
    const opened = this.#submit(root, open, [...pinned.materials, ...notes]);
    const [first, second] = await Promise.allSettled([opened, this.#submit(root, input, [material], caseLabel)]);
    if (first.status === 'rejected' || second.status === 'rejected') {
      this.#live.delete(run_id);
      // A root without a run would never end. If this fails too, the next opening cancels it.
      if (first.status === 'fulfilled') await this.#abandon(root).catch(() => undefined);
      throw first.status === 'rejected' ? first.reason : (second as PromiseRejectedResult).reason;
    }
    const { refused } = second.value;
    // A tree that was denied has no run: the caller gets the root's own end.
    if (refused) await this.#resolveWithRootEnding(root, run_id);
    return this.#track(run_id, open.correlation_id, finished);
  }

  /** Cancels a root without a run. */
  async #abandon(root: string): Promise<void> {
    const input_id = `${root}/abandoned`;
    await this.#submit(root, { kind: 'cancel', run_id: root, input_id, reason: 'interrupted' }, []);
  }

  async #resolveWithRootEnding(root: string, run_id: string): Promise<void> {
    const tree = await this.#parts.engine.peek(root);
    if (tree?.hasEnded === true) this.#live.get(run_id)?.resolve({ run_id: root, ...tree.ending });
    this.#live.delete(run_id);
  }

  async #track(run_id: string, correlation_id: string, finished: DeferredPromise<RunEnding>): Promise<CancellableRun> {
    const root_run_id = rootRunIdOf(run_id);
    const tree = await this.#parts.engine.peek(root_run_id);
    if (tree?.isLive(run_id) === true) this.#live.set(run_id, finished);
    if (this.#isClosed) finished.reject(releasedError());
    const digest = tree?.approvals(run_id)?.entries[0]?.digest ?? null;
    const cancel = async (reason: string): Promise<RunEnding> => {
      await this.#cancel({ run_id, root_run_id }, reason);
      return finished.promise;
    };
    return { run_id, root_run_id, correlation_id, digest, finished: finished.promise, cancel };
  }

  /**
   * Cancels the tree of a run: at once while it waits for approval, else when its effect has ended.
   * @throws RunError INVALID_STATE_TRANSITION if it has ended
   */
  async #cancel(run: Pick<RunContext, 'run_id' | 'root_run_id'>, reason: string): Promise<void> {
    const { engine } = this.#parts;
    const { input, materials } = createCancelInput(run, await engine.peek(run.root_run_id), reason);
    const { refused } = await this.#submit(run.root_run_id, input, materials);
    if (refused) throw runNotCancellableError(run.run_id);
  }

  /** The history of the case up to the last commit. The engine knows where its trees end. */
  async #historyOf(case_id: string): Promise<CaseHistory> {
    const { store } = this.#parts;
    const engine = this.#parts.engine;
    return new CaseHistory(store, { case_id, head: await engine.head() }, async (tree_id) => {
      const tree = await engine.peek(tree_id);
      return tree === null ? null : { ...tree.head, ended: tree.hasEnded };
    });
  }

  async #findSource(case_id: string | undefined, sha256: string): Promise<ArtifactRef> {
    const isHash = case_id !== undefined && /^[0-9a-f]{64}$/.test(sha256);
    const bytes = isHash ? await this.#parts.store.artifact(case_id, sha256) : null;
    if (case_id === undefined || bytes === null)
      throw usageError(`sources: case ${case_id ?? '(none)'} has no artifact ${JSON.stringify(sha256.slice(0, 80))}`);
    return {
      artifact_id: `sha256:${sha256}`,
      artifact_kind: 'source',
      hash_sha256: sha256,
      byte_size: bytes.byteLength,
      scope: 'case',
      case_id,
    };
  }

  #submit(
    tree_id: string,
    input: NewInput,
    materials: readonly Artifact[],
    caseLabel: CaseLabelVersion | null = null,
  ): Promise<SubmissionResult> {
    const submission: Submission = { input, materials, rememberInputId: false };
    return this.#parts.engine.submit(tree_id, caseLabel === null ? submission : { ...submission, caseLabel });
  }
}

const releasedError = (): RunError => new RunError({ code: 'CLOSED', message: 'this process has released the run' });

function createStartInput(
  root: string,
  { actor, role, person = actor }: RunStarter,
  { run_kind, inputs, facts, lane }: RunStart,
  request: ArtifactRef,
  pinned: PinnedPolicy,
): NewInput {
  return {
    kind: 'start_run',
    run_id: root,
    input_id: `${root}/start_run`,
    run_kind,
    actor: { actor_type: classOf(role, pinned), actor_id: validateActor(actor) },
    person: asNamedPerson({ actor, person }, pinned.policy),
    role_id: validateRole(role),
    lane_id: validateField('lane', Identifier, lane),
    request,
    inputs: [...inputs],
    facts,
  };
}

const caseLabelOf = (store: LedgerStore, history: CaseHistory | null): Promise<Label> =>
  history === null ? Promise.resolve(EMPTY_LABEL) : computeCaseLabel(store, history);

/** Without a ticket, policy denies the promotion, and an audit event says so (S4-71). */
function ticketOf({ ticket }: { readonly ticket?: string }): Readonly<Record<string, string>> {
  if (ticket === undefined) return {};
  requireMembers({ ticket }, { ticket: 'text' });
  return { promotion_ticket_id: ticket };
}

/** The request of an export is content of its case too, in the lane of the export. */
function addOwnLane(lanes: ReadonlyMap<string, boolean>, own: Lane | undefined): ReadonlyMap<string, boolean> {
  if (own?.withholds_content !== true) return lanes;
  const exports = own.exports_content === true && lanes.get(own.lane_id) !== false;
  return new Map([...lanes, [own.lane_id, exports]]);
}
/** The ids that name the case elsewhere: its own, and those of its matter and client sessions. */
const caseIds = ({ case: case_id, scope = {} }: PromoteOptions): readonly string[] => [
  ...(case_id === undefined ? [] : [case_id]),
  ...Object.entries(scope).flatMap(([field, value]) => (/matter|client|session/.test(field) ? [value] : [])),
];

/** The policy defines the class of a role; an unknown role is denied anyway. */
const classOf = (role: string, { policy }: PinnedPolicy): ActorType => policy.roles.get(role)?.class ?? 'human';

type ActorType = StartRunInput['actor']['actor_type'];
