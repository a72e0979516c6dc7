// The reservations of cases in which several workers decide. The store has them, with a version for each case; this is
// a copy.
//
//   Q1. A decision that depends on the quota is made with the copy. Its commit is a conflict if the store has another
//       version, except for Q5: the recorded facts are those that hold at the commit.
//   Q2. The usage on disk is measured after the copy was read. A change of another worker is either in the usage, or
//       still reserved: it is released only after it was made.
//   Q3. Changes of several workers at one path run in any order. So a change then counts with its whole content,
//       whatever it replaces.
//   Q4. When a batch is sent, the copy has its changes and its version, and the next tick decides with them. If the
//       batch is not written as it is, the store never gets that version alone. What it releases counts until then.
//   Q5. A decision that was allowed leaves room for others: its commit is no conflict while no more was reserved since
//       the copy was read than the rest of the quota. Every change counts whole in it, whatever it replaces. So the
//       paths of unknown changes do not matter. The recorded facts are then those of the copy. What was denied needs
//       the same version.
//   Q6. A reservation that the copy loses may be of a change that another worker has made since the usage was measured:
//       the usage is measured again.

import { changedPaths, findAction, withoutTrailingSlash } from '../../core/contract/policy/catalogue.js';
import type { Effect, SandboxRequest, SandboxAmount, SandboxFacts } from '../../core/contract/run/effect.js';
import type { Decision } from '../../kernel/decision.js';
import { type Tree, findPendingGather } from '../../kernel/tree.js';
import type {
  AppendStatus,
  CaseReservation,
  QuotaChange,
  SharedBatch,
  SharedLedgerStore,
} from '../ports/ledger/shared-store.js';
import type { EffectOutcome } from '../effect-runner.js';
import { isFactId } from '../ledger-facts.js';
import { withReserved } from '../tick/tick-inputs.js';
import type { Effects, Submission } from '../tree-engine.js';
import { type Reservations, amountAt, amountOf } from './quota-reservations.js';

/** A version that no store has: the copy of a case may differ from the store. */
const UNKNOWN_VERSION = '?';
/** The copies of at most this many cases, and the cases of this many trees, are kept. */
const CASES_MAX = 4_096;

interface CaseCopy {
  version: string;
  /** As `CaseQuota.total`, with the changes of this worker since it was read. */
  total: SandboxAmount;
  readonly reservations: Map<string, CaseReservation>;
}

/** A change that is released in a batch in flight, and not made: it counts until the batch is written. */
interface Leaving extends Pick<CaseReservation, 'key' | 'whole'> {
  readonly case_id: string;
}

/** What the decisions of a tick change for one tree. */
interface Draft {
  readonly case_id: string;
  /** The version of the copy at the first decision. */
  readonly version: string;
  readonly total: SandboxAmount;
  isChecked: boolean;
  /** What is left of the quota for the change that is being decided. Null: none is. */
  left: SandboxAmount | null;
  /** What the changes so far leave for others. */
  room: SandboxAmount;
  /** Whether the decisions hold only with the same reservations. */
  isExact: boolean;
  /** Whether the copy was read again after a decision: it may lack what the decision has reserved. */
  isStale: boolean;
  reserved: CaseReservation[];
  released: Set<string>;
  readonly leaving: Leaving[];
  /** The part that is in the batch, whatever happens to the next input of the tree. */
  joined: JoinedDraft;
}

type JoinedDraft = Readonly<Pick<QuotaChange, 'reserved' | 'released'>>;

const NOTHING: JoinedDraft = { reserved: [], released: [] };

const joinedOf = ({ reserved, released }: Draft): JoinedDraft => ({
  reserved: [...reserved],
  released: [...released],
});

export class SharedReservations implements Reservations {
  readonly #store: Pick<SharedLedgerStore, 'caseQuotas'>;
  readonly #effects: Pick<Effects, 'forgetUsage'>;
  readonly #cases = new Map<string, CaseCopy>();
  /** The cases of trees whose decisions have depended on a quota. */
  readonly #caseOf = new Map<string, string>();
  /** Changes that this worker has made: the usage includes them. Their steps are not recorded yet. */
  readonly #made = new Set<string>();
  /** What batches in flight release, by their version. */
  readonly #leaving = new Map<string, readonly Leaving[]>();
  /** By tree. */
  readonly #drafts = new Map<string, readonly Draft[]>();

  constructor(store: Pick<SharedLedgerStore, 'caseQuotas'>, effects: Pick<Effects, 'forgetUsage'>) {
    this.#store = store;
    this.#effects = effects;
  }

  get size(): number {
    return [...this.#cases.values()].reduce((sum, { reservations }) => sum + reservations.size, 0);
  }

  startTick(): void {
    this.#drafts.clear();
  }

  addReserved(tree: Tree, submission: Submission): Submission {
    const { input } = submission;
    if (input.kind !== 'facts') return submission;
    const request = findPendingGather(tree, input.run_id);
    if (request === null || !request.usage) return submission;
    this.#beginCheck(tree, request, input.facts);
    return withReserved(submission, this.#computeReserved(request, input.facts));
  }

  applyDecision(tree: Tree, { commands, entries }: Decision): void {
    for (const command of commands) {
      if (command.kind === 'perform' && !command.in_commit) this.#reserve(tree.tree_id, command.effect);
    }
    for (const { entry } of entries) {
      if (entry.type !== 'step_trace' || entry.body.decision !== 'ALLOW') continue;
      if (findAction(entry.body.action ?? '')?.write != null) this.#releaseStep(tree, entry.body.run_id);
    }
  }

  /** The usage includes a completed change. A failed one stays reserved, because its step may retry it. */
  onEffectRun({ case_id, idempotency_key }: Effect, { status }: EffectOutcome): void {
    if (status !== 'done' || case_id === null) return;
    if (this.#cases.get(case_id)?.reservations.has(idempotency_key) === true) this.#made.add(idempotency_key);
  }

  join(tree_id: string): void {
    for (const draft of this.#draftsOf(tree_id)) draft.joined = joinedOf(draft);
  }

  /** What the tree has in the batch is still committed. The copy may differ from the store. */
  undo(tree_id: string): void {
    for (const draft of this.#draftsOf(tree_id)) {
      this.#copy(draft.case_id).version = UNKNOWN_VERSION;
      const { reserved, released } = draft.joined;
      draft.reserved = [...reserved];
      draft.released = new Set(released);
    }
  }

  forget(): void {
    // The writer reads the reservations of an overtaken tree again.
  }

  restore(): void {
    // The store has the reservations of all trees.
  }

  clear(): void {
    for (const known of [this.#cases, this.#caseOf, this.#made, this.#drafts, this.#leaving]) known.clear();
  }

  /** What the decisions of this tick change for the tree, or depend on. */
  changesOf(tree_id: string): readonly QuotaChange[] {
    return this.#draftsOf(tree_id).map(({ case_id, version, total, isChecked, left, room, isExact, ...changes }) => {
      const isSame = !changes.isStale && this.#copy(case_id).version === version;
      const hasRoom = isSame && !isExact && left === null && Number.isFinite(room.bytes);
      return {
        ...{ case_id, isChecked, total },
        version: isSame ? version : UNKNOWN_VERSION,
        room: hasRoom ? room : null,
        reserved: changes.reserved,
        released: [...changes.released],
      };
    });
  }

  /** Q4. If the store has another version than the changes, it gets yet another one, and the next check conflicts. */
  onSent(batch: SharedBatch): void {
    for (const { quotas } of batch.trees) {
      for (const { case_id, reserved } of changing(quotas)) {
        const copy = this.#copy(case_id);
        copy.version = batch.quota_version;
        for (const { whole } of reserved) copy.total = combine(copy.total, whole, (one, other) => one + other);
      }
    }
    const leaving = [...this.#drafts.values()].flat().flatMap((draft) => draft.leaving);
    if (leaving.length > 0) this.#leaving.set(batch.quota_version, leaving);
  }

  /** Reads the reservations of the cases again whose appends were refused. @throws LedgerError */
  async onCommitted(batch: SharedBatch, statuses: readonly AppendStatus[]): Promise<void> {
    const refused = batch.trees
      .filter((_, index) => statuses[index] === 'conflict')
      .flatMap(({ quotas }) => ofCases(quotas));
    await this.#read([...new Set(refused.map(({ case_id }) => case_id))]);
    this.#leaving.delete(batch.quota_version);
    const released = new Set(
      batch.trees.flatMap(({ quotas }, index) =>
        statuses[index] === 'conflict' ? [] : quotas.flatMap((change) => change.released),
      ),
    );
    for (const key of released.size > 0 ? this.#made : []) if (released.has(stepRunOf(key))) this.#made.delete(key);
  }

  /** Reads the reservations of the cases of these trees again, if they have any. @throws LedgerError */
  async refresh(tree_ids: readonly string[]): Promise<void> {
    await this.#read([...new Set(tree_ids.flatMap((tree_id) => this.#caseOf.get(tree_id) ?? []))]);
  }

  async #read(case_ids: readonly string[]): Promise<void> {
    if (case_ids.length === 0) return;
    for (const [index, { version, total, reservations }] of (await this.#store.caseQuotas(case_ids)).entries()) {
      const case_id = case_ids[index] ?? '';
      // Q2.
      if (this.#cases.get(case_id)?.version !== version) this.#effects.forgetUsage(case_id);
      // Also with the same version: the copy may contain what was not committed.
      this.#setCase(case_id, { version, total, reservations: new Map(reservations.map((one) => [one.key, one])) });
      for (const draft of [...this.#drafts.values()].flat()) draft.isStale ||= draft.case_id === case_id;
    }
  }

  #reserve(tree_id: string, change: Effect): void {
    const { case_id, idempotency_key: key } = change;
    const paths = changedPaths(change);
    if (case_id === null || paths.length === 0) return;
    const { reservations } = this.#copy(case_id);
    if (reservations.has(key)) return;
    const others = [...reservations.values()].filter((other) => other.paths.some((path) => paths.includes(path)));
    const whole = amountOf(change, true);
    const amount = others.length > 0 ? whole : amountOf(change, false);
    for (const other of others) reservations.set(other.key, { ...other, ...other.whole });
    const reservation = { key, run_id: stepRunOf(key), paths, ...amount, whole };
    reservations.set(key, reservation);
    const draft = this.#draft(tree_id, case_id);
    draft.reserved.push(reservation);
    if (draft.left === null) return;
    draft.room = combine(
      draft.room,
      combine(draft.left, whole, (one, other) => one - other),
      Math.min,
    );
    draft.left = null;
  }

  /** Q5. */
  #beginCheck(tree: Tree, { case_id }: SandboxRequest, { usage }: SandboxFacts): void {
    const draft = this.#draft(tree.tree_id, case_id);
    draft.isChecked = true;
    // The decision of an earlier check has reserved nothing.
    draft.isExact ||= draft.left !== null;
    const { bytes_max = 0, files_max = 0 } = tree.policy?.sandbox ?? {};
    draft.left = { bytes: bytes_max - (usage?.bytes ?? bytes_max), files: files_max - (usage?.files ?? files_max) };
    const leaving = [...this.#leaving.values()].flat().filter((one) => one.case_id === case_id);
    for (const { key, whole } of [...this.#copy(case_id).reservations.values(), ...leaving])
      if (!this.#made.has(key)) draft.left = combine(draft.left, whole, (one, other) => one - other);
  }

  #releaseStep(tree: Tree, run_id: string): void {
    const case_id = tree.run(run_id)?.context.case_id ?? null;
    if (case_id === null) return;
    const { reservations } = this.#copy(case_id);
    const draft = this.#draft(tree.tree_id, case_id);
    for (const { key, run_id: owner, whole } of reservations.values()) {
      if (owner !== run_id) continue;
      reservations.delete(key);
      if (this.#made.has(key)) continue;
      draft.leaving.push({ case_id, key, whole });
      // Q6.
      if (whole.bytes > 0 || whole.files > 0) this.#effects.forgetUsage(case_id);
    }
    draft.reserved = draft.reserved.filter((reservation) => reservation.run_id !== run_id);
    draft.released.add(run_id);
  }

  #computeReserved({ case_id, paths }: SandboxRequest, facts: SandboxFacts): SandboxAmount {
    let [bytes, files] = [0, 0];
    const affected = new Set<string>();
    for (const reservation of this.#copy(case_id).reservations.values()) {
      if (this.#made.has(reservation.key)) continue;
      bytes += reservation.bytes;
      files += reservation.files;
      for (const path of reservation.paths) affected.add(path);
    }
    for (const [index, path] of paths.entries()) {
      if (!affected.has(withoutTrailingSlash(path))) continue;
      const there = amountAt(facts.paths[index]);
      bytes += there.bytes;
      files += there.files;
    }
    return { bytes, files };
  }

  #draftsOf(tree_id: string): readonly Draft[] {
    return this.#drafts.get(tree_id) ?? [];
  }

  #draft(tree_id: string, case_id: string): Draft {
    const drafts = this.#draftsOf(tree_id);
    const known = drafts.find((draft) => draft.case_id === case_id);
    if (known !== undefined) return known;
    const { version, total } = this.#copy(case_id);
    const draft: Draft = {
      ...{ case_id, version, total, isChecked: false, left: null, room: UNLIMITED, isExact: false },
      isStale: false,
      ...{ reserved: [], released: new Set(), leaving: [], joined: NOTHING },
    };
    this.#drafts.set(tree_id, [...drafts, draft]);
    if (this.#caseOf.size >= CASES_MAX) this.#caseOf.clear();
    this.#caseOf.set(tree_id, case_id);
    return draft;
  }

  #copy(case_id: string): CaseCopy {
    return this.#cases.get(case_id) ?? this.#setCase(case_id, { version: '', total: NONE, reservations: new Map() });
  }

  #setCase(case_id: string, copy: CaseCopy): CaseCopy {
    this.#cases.set(case_id, copy);
    return copy;
  }
}

const NONE: SandboxAmount = { bytes: 0, files: 0 };
const UNLIMITED: SandboxAmount = { bytes: Infinity, files: Infinity };

const combine = (
  one: SandboxAmount,
  other: SandboxAmount,
  operation: (one: number, other: number) => number,
): SandboxAmount => ({ bytes: operation(one.bytes, other.bytes), files: operation(one.files, other.files) });

const changing = (quotas: readonly QuotaChange[]): readonly QuotaChange[] =>
  ofCases(quotas).filter(({ reserved, released }) => reserved.length > 0 || released.length > 0);

/** Versions of facts of the ledger have the form of reservations. */
const ofCases = (quotas: readonly QuotaChange[]): readonly QuotaChange[] =>
  quotas.filter(({ case_id }) => !isFactId(case_id));

/** The key is the id of a mediated run's child: the step's run is two levels above. */
const stepRunOf = (key: string): string => key.split('.').slice(0, -2).join('.');
