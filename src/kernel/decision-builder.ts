// Builds the decision for one input: turns what the machines emit into ledger entries (with sequence number and
// timestamp) and into commands, replies and timers. The context of the
// root run, from which every other context comes, is made here too.

import type { Command, Emission, RunTermination, Reply } from '../../machines/emission.js';
import type { Artifact } from '../core/contract/artifact-ref.js';
import type { Effect } from '../core/contract/run/effect.js';
import type { AuditEvent } from '../core/contract/run/audit-event.js';
import {
  NO_PREV,
  type Entry,
  type EntryBody,
  type EntryType,
  type ProposalMark,
  type RecordedInput,
  type RunCreated,
  type SealedEntry,
  type OpenInput,
  type OpeningInput,
  type AccessInput,
  type RestoreInput,
  type RotateKeyInput,
} from '../core/contract/run/entry.js';
import { sealEntry } from '../core/ledger/entry-text.js';
import {
  type AuditDraft,
  accessEvent,
  illegalTransitionEvent,
  restoreEvent,
  rotationEvent,
} from '../core/run/audit-events.js';
import type { Decision, Timer } from './decision.js';
import type { RunContext } from '../core/contract/run/run-context.js';
import type { KnownRun, TreeSnapshot, UnsettledRun } from './tree-snapshot.js';
import { TAXONOMY_FIELDS, type TaxonomyVersions } from '../core/contract/shapes.js';
import { mapOptional } from '../core/contract/policy/pins.js';
import { policyVersions } from '../core/policy/files/policy-versions.js';
import { InvariantError } from '../core/errors.js';

type PerformCommand = Extract<Command, { readonly kind: 'perform' }>;

/** What emissions lack if no feature has entries. */
interface NoFeatureEntry {
  readonly type: 'feature_entry';
  readonly entry_type: never;
  readonly body: never;
}

/** A decision under construction: everything that the machines have emitted for one input. */
interface DecisionDraft extends Decision {
  readonly entries: SealedEntry[];
  readonly commands: Command[];
  readonly replies: Reply[];
  readonly timers: Timer[];
  readonly marks: ProposalMark[];
  readonly ended: RunTermination[];
  refused: boolean;
}

const emptyDraft = (artifacts: readonly Artifact[]): DecisionDraft => ({
  entries: [],
  artifacts,
  commands: [],
  replies: [],
  timers: [],
  marks: [],
  ended: [],
  refused: false,
});

/** The head of one tree's ledger and its unfinished work: runs, pending commands, timers. */
export class DecisionBuilder {
  readonly #tree_id: string;
  #seq = 0;
  #prev = NO_PREV;
  #now = '';
  /** Sequence number of the current input. */
  #inputSeq = 0;
  #draft: DecisionDraft = emptyDraft([]);
  /**
   * Orchestrator and agent runs, including ended ones. Mediated runs are absent: their only input is their one result.
   */
  #runs = new Map<string, KnownRun>();
  #pending = new Map<string, Command>();
  #timers = new Map<string, Timer>();
  /** Contexts of the mediated runs that have not ended. */
  #mediated = new Map<string, RunContext>();
  #unsettled = new Map<string, UnsettledRun>();

  constructor(tree_id: string) {
    this.#tree_id = tree_id;
  }

  get head(): { readonly seq: number; readonly prev: string } {
    return { seq: this.#seq, prev: this.#prev };
  }

  get runs(): readonly KnownRun[] {
    return [...this.#runs.values()];
  }

  get pending(): readonly Command[] {
    return [...this.#pending.values()];
  }

  get mediated(): readonly RunContext[] {
    return [...this.#mediated.values()];
  }

  get timers(): readonly Timer[] {
    return [...this.#timers.values()];
  }

  /** Runs whose effect may have happened and whose outcome is still unknown. */
  get unsettled(): readonly UnsettledRun[] {
    return [...this.#unsettled.values()];
  }

  /** Records that the executor could not determine the outcome of this run's effect. */
  noteUnknown({ run_id, effect }: PerformCommand): void {
    this.#noteUnsettled(run_id, effect);
  }

  #noteUnsettled(run_id: string, request: Pick<UnsettledRun, 'request_hash' | 'idempotency_key'>): void {
    const context = this.#mediated.get(run_id) ?? null;
    const { request_hash, idempotency_key } = request;
    if (context !== null) this.#unsettled.set(run_id, { context, request_hash, idempotency_key });
  }

  /** Records that an attempt succeeded. This settles every unknown attempt with the same idempotency key. */
  noteDone(effect: Effect): void {
    for (const [run_id, { idempotency_key }] of this.#unsettled) {
      if (idempotency_key === effect.idempotency_key) this.#unsettled.delete(run_id);
    }
  }

  /** Removes a run from the unknown outcomes. @returns the run, or null if its outcome was not unknown */
  settle(run_id: string): UnsettledRun | null {
    const found = this.#unsettled.get(run_id) ?? null;
    this.#unsettled.delete(run_id);
    return found;
  }

  run(run_id: string): KnownRun | null {
    return this.#runs.get(run_id) ?? null;
  }

  /** The context of this run, or of its nearest known ancestor; null if neither is known. */
  findNearest(run_id: string): RunContext | null {
    for (let id = run_id; id !== ''; id = id.slice(0, Math.max(0, id.lastIndexOf('.')))) {
      const known = this.#runs.get(id);
      if (known !== undefined) return known.context;
    }
    return null;
  }

  /**
   * Starts the decision for one input: until the next call, every entry is caused by this input and has its timestamp.
   */
  begin(recorded: RecordedInput, materials: readonly Artifact[]): void {
    this.#draft = emptyDraft(materials);
    this.#now = recorded.time;
    this.#inputSeq = this.#seq;
    this.#append('input', recorded);
  }

  /** Closes the decision. @returns what the input caused */
  finish(refused: boolean): Decision {
    this.#draft.refused = refused;
    return this.#draft;
  }

  /** The command of this run that has no result yet. */
  pendingCommand(run_id: string): Command | null {
    return this.#pending.get(run_id) ?? null;
  }

  /** Removes a command that has its result. The same run may already have another one pending. */
  removePending(command: Command): void {
    if (this.#pending.get(command.run_id) === command) this.#pending.delete(command.run_id);
  }

  restore({ seq, prev, runs, pending, timers, unsettled, mediated }: TreeSnapshot): void {
    this.#seq = seq;
    this.#prev = prev;
    this.#runs = new Map(runs.map((known) => [known.context.run_id, known]));
    this.#pending = new Map(pending.map((command) => [command.run_id, command]));
    this.#timers = new Map(timers.map((timer) => [timer.run_id, timer]));
    this.#unsettled = new Map(unsettled.map((run) => [run.context.run_id, run]));
    this.#mediated = new Map(mediated.map((run) => [run.run_id, run]));
  }

  /**
   * Stamps and seals the emitted body in place. This is safe because a machine emits each body once and keeps no
   * reference.
   */
  record(emission: Emission | NoFeatureEntry): void {
    switch (emission.type) {
      case 'run_created':
        emission.body.created_at_utc = this.#now;
        this.#registerRun(emission.body);
        this.#append('run_created', emission.body);
        break;
      case 'audit_event':
        this.#append('audit_event', this.#stampEvent(emission.body));
        break;
      case 'step_trace':
        // A step that was cancelled while it waited for facts no longer needs them.
        this.#pending.delete(emission.body.run_id);
        emission.body.completed_at = this.#now;
        this.#append('step_trace', emission.body);
        break;
      case 'feature_entry': {
        const stamped: { timestamp_utc: string } = emission.body;
        stamped.timestamp_utc = this.#now;
        this.#append(emission.entry_type, emission.body);
        break;
      }
      case 'command':
        this.#pending.set(emission.command.run_id, emission.command);
        this.#draft.commands.push(emission.command);
        break;
      case 'reply':
        this.#draft.replies.push(emission.reply);
        break;
      case 'mark':
        emission.mark.seq = this.#inputSeq;
        this.#draft.marks.push(emission.mark);
        break;
      case 'timer':
        this.#timers.set(emission.run_id, emission);
        this.#draft.timers.push({ run_id: emission.run_id, at: emission.at });
        break;
      case 'unknown':
        this.#noteUnsettled(emission.run_id, emission);
        break;
      case 'ended':
        this.#timers.delete(emission.run_id);
        this.#mediated.delete(emission.run_id);
        this.#draft.ended.push({ run_id: emission.run_id, state: emission.state, reason: emission.reason });
        break;
    }
  }

  /** Sets the event's id, sequence number and timestamp. */
  #stampEvent(event: AuditDraft): AuditEvent {
    event.event_id = `${this.#tree_id}:${this.#seq}`;
    event.sequence = this.#seq;
    event.timestamp_utc = this.#now;
    // A member that is undefined counts as omitted.
    return event as AuditEvent;
  }

  #registerRun(created: RunCreated): void {
    if (created.run_kind !== 'orchestrator' && created.run_kind !== 'agent') {
      this.#mediated.set(created.run_id, contextOf(created));
      return;
    }
    const { exposure, link } = created;
    this.#runs.set(created.run_id, { context: contextOf(created), exposure, link });
  }

  #append<T extends EntryType>(type: T, body: EntryBody<T>): void {
    const sealed = sealEntry({ type, tree_id: this.#tree_id, seq: this.#seq, prev: this.#prev, body } as Entry);
    this.#seq += 1;
    this.#prev = sealed.leaf_hash;
    this.#draft.entries.push(sealed);
  }
}

/** The orchestrator acts as the platform: it governs no lane and has the role without lanes. */
const PLATFORM_ACTOR = { actor_type: 'system', actor_id: 'turnpike' } as const;
const PLATFORM_ROLE = 'SYSTEM';

/** The context of a tree's root run; every run below inherits from it. */
export const rootContext = (open: OpeningInput): RunContext => ({
  run_id: open.run_id,
  run_kind: 'orchestrator',
  root_run_id: open.run_id,
  parent_run_id: null,
  correlation_id: open.correlation_id,
  contract_version: 'v1',
  policy_versions: policyVersions(verifiedPins(open.policies), open.machines.hash_sha256),
  taxonomy_versions: taxonomyOf(open),
  case_id: open.case_id,
  actor: PLATFORM_ACTOR,
  role_id: PLATFORM_ROLE,
  lane_id: null,
  scope: open.scope,
});

/** S4-30: a scope that names a taxonomy version pins the tree to that version. */
function taxonomyOf({ taxonomy_versions, scope }: OpeningInput): TaxonomyVersions | null {
  const scopeVersions = Object.entries(TAXONOMY_FIELDS).flatMap(([field, taxonomy]) => {
    const version = Object.hasOwn(scope, field) ? scope[field] : undefined;
    return version === undefined || version.length > VERSION_CHARS_MAX ? [] : [[taxonomy, version] as const];
  });
  return scopeVersions.length === 0
    ? taxonomy_versions
    : { ...Object.fromEntries(scopeVersions), ...taxonomy_versions };
}
const VERSION_CHARS_MAX = 120;

/** The run context from a run's `run_created` entry. */
export const contextOf = (created: Omit<RunCreated, 'created_at_utc'>): RunContext => ({
  run_id: created.run_id,
  run_kind: created.run_kind,
  root_run_id: created.root_run_id,
  parent_run_id: created.parent_run_id,
  correlation_id: created.correlation_id,
  contract_version: created.contract_version,
  policy_versions: created.policy_versions,
  taxonomy_versions: created.taxonomy_versions,
  case_id: created.case_id,
  actor: created.actor,
  role_id: created.role_id,
  lane_id: created.lane_id,
  scope: created.scope,
});

type PinnedFile = OpenInput['policies']['lanes'];

/** Removes a pin that does not match the bytes of the tree's policy (C46). */
const verifiedPins = ({ lanes, roles, actions, ...optional }: OpenInput['policies']): OpenInput['policies'] => ({
  lanes: verifyPin(lanes),
  roles: verifyPin(roles),
  actions: verifyPin(actions),
  ...mapOptional(optional, verifyPin),
});

const verifyPin = (pin: PinnedFile): PinnedFile =>
  'problem' in pin || pin.sha256 === pin.artifact.hash_sha256 ? pin : { problem: 'stale', artifact: pin.artifact };

// Audit events that change no run: an input was refused, content was read, the ledger was restored, or a key replaced.

/** The context of a tree whose root is no run, if the tree knows no run to attribute to; null for a run tree. */
type OwnContext = RunContext | null;

/** C50: attributes the refusal to the addressed run, or else to the tree's own context. */
export function recordRefusal(
  builder: DecisionBuilder,
  tree_id: string,
  { run_id, kind }: RecordedInput,
  ownContext: OwnContext,
): void {
  const run = (builder.run(run_id) ?? builder.run(tree_id))?.context ?? ownContext;
  if (run === null) throw new InvariantError('the first input of a tree must be `open`');
  builder.record({ type: 'audit_event', body: illegalTransitionEvent(run, run_id, kind) });
}

/**
 * Attributes the access to the run that owns the content, or to its nearest known ancestor.
 * @returns false if the run belongs to another tree
 */
export function recordAccess(
  builder: DecisionBuilder,
  tree_id: string,
  access: AccessInput,
  ownContext: OwnContext,
): boolean {
  const { run_id } = access;
  const run =
    run_id === tree_id || run_id.startsWith(`${tree_id}.`) ? (builder.findNearest(run_id) ?? ownContext) : null;
  if (run === null) return false;
  builder.record({ type: 'audit_event', body: accessEvent(run, access) });
  return true;
}

/**
 * Attributes an event of the whole ledger to the root of the tree that was opened for it.
 * @returns false in any other tree
 */
export function recordLedgerEvent(
  builder: DecisionBuilder,
  tree_id: string,
  input: RestoreInput | RotateKeyInput,
): boolean {
  const run = input.run_id === tree_id ? builder.run(tree_id) : null;
  if (run === null) return false;
  const { context } = run;
  const body = input.kind === 'restore' ? restoreEvent(context, input) : rotationEvent(context, input);
  builder.record({ type: 'audit_event', body });
  return true;
}
