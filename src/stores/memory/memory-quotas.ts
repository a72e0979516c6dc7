import type { SandboxAmount } from '../../core/contract/run/effect.js';
import type {
  AppendStatus,
  CaseQuota,
  CaseReservation,
  QuotaChange,
  SharedBatch,
} from '../../engine/ports/ledger/shared-store.js';

interface StoredReservation extends CaseReservation {
  readonly tree_id: string;
}

interface StoredQuota {
  version: string;
  total: SandboxAmount;
  reservations: readonly StoredReservation[];
}

/** The reservations of cases in memory (`SharedLedgerStore.caseQuotas`), and the versions of their labels. */
export class MemoryQuotas {
  readonly #cases = new Map<string, StoredQuota>();
  readonly #labels = new Map<string, number>();

  labelVersion(case_id: string): number {
    return this.#labels.get(case_id) ?? 0;
  }

  get(case_id: string): CaseQuota {
    return { ...this.#case(case_id) };
  }

  /** The statuses of the appends, with those in conflict whose decisions depend on other reservations. */
  compare(batch: SharedBatch, fits: readonly AppendStatus[]): readonly AppendStatus[] {
    const { trees } = batch;
    const statuses = this.#compareLabels(batch, fits);
    const conflicting = new Set<string>();
    for (const [index, { quotas }] of trees.entries()) {
      for (const change of quotas) {
        const { case_id, isChecked } = change;
        const isOther = isChecked && statuses[index] === 'committed' && !this.#holds(change);
        if (statuses[index] === 'conflict' || isOther) conflicting.add(case_id);
      }
    }
    return statuses.map((status, index) => {
      const depends = trees[index]?.quotas.some(({ case_id, isChecked }) => isChecked && conflicting.has(case_id));
      return status === 'committed' && depends === true ? 'conflict' : status;
    });
  }

  /** Applies what the committed appends change. */
  apply({ trees, quota_version }: SharedBatch, statuses: readonly AppendStatus[]): void {
    const committed = trees.filter((_, index) => statuses[index] === 'committed');
    const refused = trees.filter((_, index) => statuses[index] === 'conflict').flatMap(({ quotas }) => quotas);
    const partly = new Set(refused.map(({ case_id }) => case_id));
    const next = new Map<string, string>();
    for (const { tree_id, quotas } of committed) {
      for (const change of quotas) {
        const { case_id, version, reserved, released } = change;
        if (reserved.length === 0 && released.length === 0) continue;
        const isWhole = this.#case(case_id).version === version && !partly.has(case_id);
        next.set(case_id, isWhole ? quota_version : `${quota_version}+`);
        this.#change(tree_id, change);
      }
    }
    for (const [case_id, version] of next) this.#case(case_id).version = version;
    for (const { tree_id, ended } of committed) if (ended) this.#endTree(tree_id);
    const raised = committed.flatMap(({ label }) => (label?.isRaised === true ? [label.case_id] : []));
    for (const case_id of new Set(raised)) this.#labels.set(case_id, this.labelVersion(case_id) + 1);
  }

  /** An append that contains the label of its case must be the only one of the batch that changes it. */
  #compareLabels({ trees }: SharedBatch, statuses: readonly AppendStatus[]): readonly AppendStatus[] {
    return statuses.map((status, index) => {
      const label = trees[index]?.label ?? null;
      if (status !== 'committed' || label?.version == null) return status;
      const isRaised = trees.some(
        (other, at) =>
          at !== index &&
          statuses[at] === 'committed' &&
          other.label?.isRaised === true &&
          other.label.case_id === label.case_id,
      );
      return isRaised || this.labelVersion(label.case_id) !== label.version ? 'conflict' : status;
    });
  }

  /** Whether what was decided with these reservations holds with those of now. */
  #holds({ case_id, version, total, room }: QuotaChange): boolean {
    const stored = this.#case(case_id);
    if (stored.version === version) return true;
    if (room === null) return false;
    return stored.total.bytes - total.bytes <= room.bytes && stored.total.files - total.files <= room.files;
  }

  #change(tree_id: string, { case_id, reserved, released }: QuotaChange): void {
    const stored = this.#case(case_id);
    const kept = stored.reservations.filter((one) => one.tree_id !== tree_id || !released.includes(one.run_id));
    const meets = (one: CaseReservation, others: readonly CaseReservation[]): boolean =>
      others.some(({ key, paths }) => key !== one.key && paths.some((path) => one.paths.includes(path)));
    stored.reservations = [
      ...kept.map((one) => (meets(one, reserved) ? { ...one, ...one.whole } : one)),
      ...reserved.map((one) => ({ ...one, ...(meets(one, [...kept, ...reserved]) ? one.whole : {}), tree_id })),
    ];
    for (const { whole } of reserved) stored.total = sumOf(stored.total, whole);
  }

  #endTree(tree_id: string): void {
    for (const stored of this.#cases.values()) {
      const kept = stored.reservations.filter((one) => one.tree_id !== tree_id);
      if (kept.length < stored.reservations.length) stored.version += '+';
      stored.reservations = kept;
    }
  }

  #case(case_id: string): StoredQuota {
    const known = this.#cases.get(case_id);
    if (known !== undefined) return known;
    const added = { version: '', reservations: [], total: { bytes: 0, files: 0 } };
    this.#cases.set(case_id, added);
    return added;
  }
}

const sumOf = (one: SandboxAmount, other: SandboxAmount): SandboxAmount => ({
  bytes: one.bytes + other.bytes,
  files: one.files + other.files,
});
