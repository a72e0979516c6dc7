// Promotions, exports, people's answers to both, and what they have found out of unknown outcomes (S4 §10, D7, D8).

import { resolve } from 'node:path';
import { artifactRef, type Artifact, type ArtifactRef } from '../../contract/artifact-ref.js';
import { canonicalJson } from '../../contract/canonical-json.js';
import type { JsonObject } from '../../contract/json.js';
import { columnsOf, type Catalogue } from '../../contract/catalogue.js';
import type { AuditEvent } from '../../contract/audit-event.js';
import type { HighRiskKind, StartRunInput } from '../../contract/entry.js';
import { satisfies } from '../../contract/registered-schema.js';
import { Identifier } from '../../contract/shapes.js';
import type { EmbeddedEngine } from '../../engine/embedded-engine.js';
import type { NewInput } from '../../engine/tree-engine.js';
import { InvariantError, RunError, UsageError } from '../../errors.js';
import type { Ending } from '../../kernel/input.js';
import { policyVersions } from '../../policy/pins.js';
import type { Clock } from '../../ports/clock.js';
import type { Ids } from '../../ports/ids.js';
import type { LedgerStore } from '../../ports/ledger-store.js';
import type { RunEnding } from '../agent-run.js';
import { defer, quietly, type Deferred } from '../deferred.js';
import { rootOf } from '../ledger-reader.js';
import { actorOf, checked, openRequest } from '../open-request.js';
import type { PinnedPolicy, PolicyShelf } from '../pinned-policy.js';
import { embeddedText, labelOfCase } from './carried-over.js';
import type {
  Ballot,
  BallotResult,
  ExportOptions,
  HighRiskRun,
  PromoteOptions,
  Resolution,
  Starter,
} from './options.js';

interface Parts {
  readonly shelf: PolicyShelf;
  readonly store: LedgerStore;
  readonly ids: Ids;
  readonly clock: Clock;
  readonly catalogue: Catalogue;
}

interface Start {
  readonly run_kind: HighRiskKind;
  readonly act: { readonly action: string; readonly args: JsonObject };
  readonly inputs: readonly ArtifactRef[];
  readonly facts: StartRunInput['facts'];
  readonly lane: string;
  readonly scope: Readonly<Record<string, string>>;
}

/** What the shipped policy has for the two. */
const LANES = { promotion: 'PROMOTE_SHARED_KNOWLEDGE', export: 'EXPORT_CASE_DATA' } as const;

export class HighRiskRuns {
  readonly #parts: Parts;
  readonly #live = new Map<string, Deferred<RunEnding>>();
  #engine: EmbeddedEngine | null = null;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  attach(engine: EmbeddedEngine): void {
    this.#engine = engine;
  }

  async promote(options: PromoteOptions): Promise<HighRiskRun> {
    const { store, catalogue } = this.#parts;
    const { target, mode = 'append', record, confidentiality = [] } = options;
    const definition = catalogue.target(target);
    if (definition !== undefined && !satisfies(definition.record, record)) {
      const columns = Object.keys(columnsOf(definition)).join(', ');
      throw usage(`record: it does not conform to ${target} (${columns})`);
    }
    const sources = await Promise.all((options.sources ?? []).map((hash) => this.#source(options.case, hash)));
    const found = await embeddedText(store, options.case, record);
    const flags = new Set(['sanitized_insight', ...confidentiality, ...(definition?.confidentiality ?? []), ...found]);
    return this.#start(options, {
      run_kind: 'promotion',
      act: { action: 'WRITE_RECORD', args: { target, mode, record } },
      inputs: sources,
      facts: { artifact_flags: [...flags], label: await labelOfCase(store, options.case) },
      lane: options.lane ?? LANES.promotion,
      scope: { ...options.scope, promotion_ticket_id: options.ticket },
    });
  }

  async export(options: ExportOptions): Promise<HighRiskRun> {
    const { store, ids, clock, shelf } = this.#parts;
    const { kind = 'internal_review', format = 'folder', reason } = options;
    const lane = options.lane ?? LANES.export;
    const { pins, machines } = await shelf.current();
    const args: JsonObject = {
      bundle_id: ids.draw('bundle_'),
      bundle_kind: kind,
      export_reason: reason,
      created_at_utc: new Date(clock.now()).toISOString(),
      created_by: { actor_type: 'human', actor_id: actorOf(options.actor), role_id: options.role, lane_id: lane },
      policy_versions: policyVersions(pins, machines.hash_sha256),
      format,
      destination: resolve(options.destination),
    };
    return this.#start(options, {
      run_kind: 'export',
      act: { action: 'EXPORT_BUNDLE', args },
      inputs: [],
      facts: { artifact_flags: ['export_bundle'], label: await labelOfCase(store, options.case) },
      lane,
      scope: { ...options.scope, export_reason: reason },
    });
  }

  /** @throws RunError RUN_UNKNOWN, INVALID_STATE_TRANSITION for a run that takes no answers now */
  async vote({ run, digests, decision, actor, role }: Ballot): Promise<readonly BallotResult[]> {
    const approver = { actor: { actor_type: 'human', actor_id: actorOf(actor) }, role_id: roleOf(role) } as const;
    const input_id = this.#parts.ids.draw('inp_');
    const events = await this.#ask(run, {
      kind: 'vote',
      run_id: run,
      input_id,
      digests: [...digests],
      decision,
      approver,
    });
    return events.flatMap(({ authz, target, request_hash_sha256 }) =>
      target?.name === 'approval' && authz !== undefined
        ? [{ digest: request_hash_sha256 ?? '', counted: COUNTED.has(authz.rule_id), rule_id: authz.rule_id }]
        : [],
    );
  }

  /** @throws RunError INVALID_STATE_TRANSITION for a run whose outcome is known */
  async resolve({ run, outcome, actor, role, note = '' }: Resolution): Promise<void> {
    const by = { actor_type: 'human', actor_id: actorOf(actor) } as const;
    const input_id = this.#parts.ids.draw('inp_');
    await this.#ask(run, { kind: 'resolve', run_id: run, input_id, outcome, actor: by, role_id: roleOf(role), note });
  }

  /** A promotion or export that has not ended, taken up again. */
  async find(run_id: string): Promise<HighRiskRun | null> {
    const tree = await this.#running.peek(rootOf(run_id));
    const run = tree?.awaiting.find((context) => context.run_id === run_id);
    if (tree === null || run === undefined) return null;
    return this.#hold(run_id, run.correlation_id, this.#live.get(run_id) ?? quietly(defer<RunEnding>()));
  }

  ended({ run_id, state, reason }: Ending): void {
    this.#live.get(run_id)?.resolve({ run_id, state, reason });
    this.#live.delete(run_id);
  }

  failed(): void {
    // In the ledger it ends, or goes on, when that is opened again.
    for (const [run_id, finished] of this.#live) finished.resolve({ run_id, state: 'failed', reason: 'AUDIT_FAILURE' });
    this.#live.clear();
  }

  close(): void {
    const closed = new RunError({ code: 'CLOSED', message: 'this process has let go of the run' });
    for (const finished of this.#live.values()) finished.reject(closed);
    this.#live.clear();
  }

  get #running(): EmbeddedEngine {
    if (this.#engine === null) throw new InvariantError('the runs have no engine yet');
    return this.#engine;
  }

  async #start(options: Starter, start: Start): Promise<HighRiskRun> {
    const { shelf, ids } = this.#parts;
    const pinned = await shelf.current();
    const root = ids.draw('run_');
    const open = openRequest(root, { ...options, scope: start.scope }, pinned, ids);
    const material: Artifact = {
      kind: 'request',
      case_id: open.case_id,
      bytes: Buffer.from(canonicalJson(start.act)),
    };
    const run_id = `${root}.1`;
    const finished = quietly(defer<RunEnding>());
    this.#live.set(run_id, finished);
    const input = startInput(root, options, start, artifactRef(material), pinned);
    const opened = this.#submit(root, open, pinned.materials);
    const [first, second] = await Promise.allSettled([opened, this.#submit(root, input, [material])]);
    if (first.status === 'rejected' || second.status === 'rejected') {
      this.#live.delete(run_id);
      // A root without a run is cancelled, at the latest when the home is opened again.
      throw first.status === 'rejected' ? first.reason : (second as PromiseRejectedResult).reason;
    }
    const { refused } = second.value;
    // A tree that was denied itself has no run: its own end is the answer.
    if (refused) await this.#endWith(root, run_id);
    return this.#hold(run_id, open.correlation_id, finished);
  }

  async #endWith(root: string, run_id: string): Promise<void> {
    const tree = await this.#running.peek(root);
    if (tree?.ended === true) this.#live.get(run_id)?.resolve({ run_id: root, ...tree.ending });
    this.#live.delete(run_id);
  }

  async #hold(run_id: string, correlation_id: string, finished: Deferred<RunEnding>): Promise<HighRiskRun> {
    const root_run_id = rootOf(run_id);
    const tree = await this.#running.peek(root_run_id);
    if (tree?.isLive(run_id) === true) this.#live.set(run_id, finished);
    const digest = tree?.approvals(run_id)?.entries[0]?.digest ?? null;
    return { run_id, root_run_id, correlation_id, digest, finished: finished.promise };
  }

  async #source(case_id: string, sha256: string): Promise<ArtifactRef> {
    const bytes = /^[0-9a-f]{64}$/.test(sha256) ? await this.#parts.store.artifact(case_id, sha256) : null;
    if (bytes === null) throw usage(`sources: case ${case_id} has no artifact ${JSON.stringify(sha256.slice(0, 80))}`);
    return {
      artifact_id: `sha256:${sha256}`,
      artifact_kind: 'source',
      hash_sha256: sha256,
      byte_size: bytes.byteLength,
      scope: 'case',
      case_id,
    };
  }

  /** Hands in something that people say of a run, and reads what the audit says to it. */
  async #ask(run_id: string, input: NewInput) {
    const tree_id = rootOf(run_id);
    const tree = await this.#running.peek(tree_id);
    if (tree === null) throw new RunError({ code: 'RUN_UNKNOWN', message: `there is no run ${run_id} in this ledger` });
    const from = tree.head.seq;
    const { refused } = await this.#submit(tree_id, input, []);
    const events: AuditEvent[] = [];
    let mine = false;
    for await (const { type, text } of this.#parts.store.tree(tree_id, from)) {
      const { body } = JSON.parse(text) as { readonly body: never };
      if (type === 'input') mine = (body as { readonly input_id: string }).input_id === input.input_id;
      else if (mine && type === 'audit_event') events.push(body);
    }
    if (!refused) return events;
    throw new RunError({
      code: 'INVALID_STATE_TRANSITION',
      message: `run ${run_id} does not take this now: \`turnpike runs ${run_id}\` shows where it stands`,
    });
  }

  #submit(tree_id: string, input: NewInput, materials: readonly Artifact[]) {
    return this.#running.submit(tree_id, { input, materials, external: false });
  }
}

/** Rules of a ballot that has changed something. */
const COUNTED = new Set(['approval.accepted', 'approval.granted', 'approval.rejected']);

function startInput(
  root: string,
  { actor, role }: Starter,
  { run_kind, inputs, facts, lane }: Start,
  request: ArtifactRef,
  pinned: PinnedPolicy,
): NewInput {
  // Who stands behind a role is the policy's to say; a role that it does not have is denied anyway.
  const actor_type = pinned.policy.roles.get(role)?.class ?? 'human';
  return {
    kind: 'start_run',
    run_id: root,
    input_id: `${root}/start_run`,
    run_kind,
    actor: { actor_type, actor_id: actorOf(actor) },
    role_id: roleOf(role),
    lane_id: checked('lane', Identifier, lane),
    request,
    inputs: [...inputs],
    facts,
  };
}

const roleOf = (role: string): string => checked('role', Identifier, role);

const usage = (message: string): UsageError => new UsageError({ code: 'USAGE', message });
