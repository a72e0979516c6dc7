// Runs WRITE_RECORD and READ_RECORDS in the database of the target's records.

import {
  type TargetDefinition,
  RECORDS_PER_READ_DEFAULT,
  RECORDS_PER_READ_MAX,
} from '../../core/contract/policy/catalogue.js';
import type { Effect, EffectResult } from '../../core/contract/run/effect.js';
import { isJsonObject, type Json } from '../../core/contract/json.js';
import { usageError } from '../../core/errors.js';
import type { LedgerRecords, RecordDatabase, RecordRead, RecordWrite } from '../../engine/ports/effects/records.js';
import type { Target } from './define-effects.js';

type EffectReturn = EffectResult | Promise<EffectResult>;

export class RecordEffects {
  readonly #ledgerRecords: LedgerRecords | null;
  readonly #targets: ReadonlyMap<string, Target>;

  constructor(own: LedgerRecords | null, targets: readonly Target[]) {
    this.#ledgerRecords = own;
    this.#targets = new Map(targets.map((target) => [target.definition.name, target]));
  }

  /**
   * Prepares the tables.
   * @throws RecordsError; UsageError for a target in a ledger that has no tables of its own
   */
  async open(): Promise<void> {
    const own: TargetDefinition[] = [];
    const byDatabase = new Map<RecordDatabase, TargetDefinition[]>();
    for (const { definition, database } of this.#targets.values()) {
      if (database === null) own.push(definition);
      else byDatabase.set(database, [...(byDatabase.get(database) ?? []), definition]);
    }
    if (own.length > 0) this.#requireLedgerRecords(own).open(own);
    for (const [database, targets] of byDatabase) await database.open(targets);
  }

  async close(): Promise<void> {
    const databases = new Set([...this.#targets.values()].map(({ database }) => database));
    for (const database of databases) await database?.close();
  }

  has({ action }: Effect): boolean {
    return action === 'WRITE_RECORD' || action === 'READ_RECORDS';
  }

  canRun(effect: Effect): boolean {
    return this.#findTarget(effect) !== null;
  }

  run(effect: Effect, inCommit: boolean): EffectReturn {
    const target = this.#findTarget(effect);
    // The target may have moved between the ledger's own database and another one since the tree was opened. A row in
    // the ledger's database that is written outside a commit would be committed with the next batch.
    if (target === null || inCommit !== (target.database === null)) return NO_TARGET;
    const records = target.database ?? this.#ledgerRecords;
    if (records === null) return NO_TARGET;
    return effect.action === 'WRITE_RECORD'
      ? records.write(writeOf(effect, target.definition))
      : records.read(readOf(effect, target.definition));
  }

  /**
   * A row in the ledger's own database exists exactly if its outcome does, so only other databases are queried. If the
   * target has moved since then, there is no database to query.
   */
  settle(effect: Effect): EffectReturn {
    const target = this.#findTarget(effect);
    if (target === null) return { status: 'unknown' };
    if (effect.action !== 'WRITE_RECORD') return this.run(effect, target.database === null);
    return target.database?.settle(writeOf(effect, target.definition)) ?? { status: 'unknown' };
  }

  #findTarget({ args: { target } }: Effect): Target | null {
    return typeof target === 'string' ? (this.#targets.get(target) ?? null) : null;
  }

  #requireLedgerRecords([first]: readonly TargetDefinition[]): LedgerRecords {
    if (this.#ledgerRecords !== null) return this.#ledgerRecords;
    const message = `${first?.name ?? ''}: this ledger has no tables of its own, give the target a database`;
    throw usageError(message);
  }
}

/** The service that opened the tree had the target and this one has not, so nothing was executed. */
const NO_TARGET: EffectResult = { status: 'failed', cause: 'NOT_EXECUTED' };

/** A row of a shared target belongs to no case. */
const caseOf = ({ plane }: TargetDefinition, case_id: string | null): string | null =>
  plane === 'shared' ? null : case_id;

const writeOf = (effect: Effect, target: TargetDefinition): RecordWrite => ({
  target,
  mode: effect.args['mode'] === 'upsert' ? 'upsert' : 'append',
  record: objectOf(effect.args['record']),
  case_id: caseOf(target, effect.case_id),
  idempotency_key: effect.idempotency_key,
  request_hash: effect.request_hash,
});

function readOf({ args, case_id }: Effect, target: TargetDefinition): RecordRead {
  const requestedCase = args['case_id'];
  const limit = args['limit'];
  return {
    target,
    where: objectOf(args['where']),
    after: args['after'] === undefined ? null : objectOf(args['after']),
    limit: typeof limit === 'number' ? Math.min(limit, RECORDS_PER_READ_MAX) : RECORDS_PER_READ_DEFAULT,
    case_id: caseOf(target, typeof requestedCase === 'string' ? requestedCase : case_id),
  };
}

const objectOf = (value: Json | undefined) => (isJsonObject(value) ? value : {});
