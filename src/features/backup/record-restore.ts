// Brings a restored ledger into a defined state, and records what was lost. The engine executes nothing here.

import { scheduleNextTurn } from '../../system/system-pace.js';
import { ephemeralKey } from '../../stores/keys/session-key.js';
import { systemClock } from '../../system/system-clock.js';
import { createCatalogue, type Registrations } from '../../core/contract/policy/catalogue.js';
import { embeddedEngine } from '../../engine/embedded.js';
import { isShared, sharedEngine } from '../../engine/shared.js';
import { ACKNOWLEDGED, readRestoreHistory, RESTORED, restoreTreeId } from '../../engine/restore-history.js';
import type { Effects, Recovery, TreeEngine } from '../../engine/tree-engine.js';
import { InvariantError, LedgerError } from '../../core/errors.js';
import type { ExternalHeadStore, LedgerStore, LogHead } from '../../engine/ports/ledger/ledger-store.js';
import type { Log } from '../../engine/ports/log.js';
import type { PolicySource } from '../../engine/ports/policy-sources.js';
import { registrationsInLedger } from '../../runtime/effects/ledger-registrations.js';
import { readRestoreRecord, type RestoreRecord } from '../../runtime/ledger/recorded-restores.js';
import { finishRotations } from '../../home/keys/rotate-ledger-key.js';
import type { KeyFolder } from '../../home/home-paths.js';
import { PolicyCache } from '../../runtime/policy-cache.js';
import { checkConfirmed, readRestoredGrants, type ConfirmedGrants, type RestoredGrants } from './restored-grants.js';

type Head = Pick<LogHead, 'size' | 'root'>;

export interface RestoredLedger {
  /** Closed by the caller. */
  readonly store: LedgerStore;
  readonly externalHeadStore: ExternalHeadStore;
  readonly policies: PolicySource;
  /** Default: what the ledger has registered. */
  readonly registrations?: Registrations | undefined;
  readonly log: Log;
  /** Of the restored ledger. Its key may have been rotated after the backup. */
  readonly keys: KeyFolder;
  /** Records the restore, or refuses to. @default records it */
  readonly decide?: (record: () => Promise<string>, parts: DecisionParts) => Promise<string>;
}

/** With what policy is asked whether a restore is recorded. */
export interface DecisionParts {
  readonly engine: TreeEngine;
  readonly store: LedgerStore;
  readonly policyCache: PolicyCache;
}

/** What the record names. */
interface RestoreFacts {
  readonly kept: Head;
  readonly lost: Head | null;
  readonly backup_sha256: string | null;
  readonly actor: string;
  /** Cases whose trees must end, because their content is erased next. */
  readonly erased: readonly string[];
}

export interface RecordedRestore {
  /** The tree that records the restore. */
  readonly tree_id: string;
  /** The number of restores in the history of the log. */
  readonly lineage: number;
  readonly recovery: Recovery;
  /** Trees of erased cases that stay live: their key is destroyed already, so nothing can end them. */
  readonly unended: readonly string[];
}

const OPERATOR_ROLE = 'operator';

/** Settles open effects as unknown, ends trees that lose their content, and records the restore. @throws LedgerError */
export async function recordRestore(ledger: RestoredLedger, facts: RestoreFacts): Promise<RecordedRestore> {
  const { store, externalHeadStore, policies, log, keys } = ledger;
  const { erased, actor, ...restored } = facts;
  const engine = openEngine(store, externalHeadStore, log);
  try {
    const recovery = await engine.start();
    const unended: string[] = [];
    for (const case_id of erased) unended.push(...(await endTrees(engine, await store.treesOf(case_id))));
    const lineage = (await readRestoreHistory(store)).restores + 1;
    const clock = systemClock();
    const registrations = ledger.registrations ?? (await registrationsInLedger(store));
    const policyCache = new PolicyCache(policies, clock, createCatalogue(registrations));
    const record = (): Promise<string> => submitTree(engine, policyCache, { actor, lineage, ...restored });
    const tree_id = await (ledger.decide?.(record, { engine, store, policyCache }) ?? record());
    await finishRotations({ engine, store, externalHeadStore, keys, policyCache, clock });
    return { tree_id, lineage, recovery, unended };
  } finally {
    await engine.stop();
  }
}

/** Opens the tree of a restore, which is ended at once: an acknowledgement is accepted all the same. @returns its id */
async function submitTree(
  engine: TreeEngine,
  policyCache: PolicyCache,
  { actor, lineage, ...restored }: Omit<RestoreFacts, 'erased'> & { readonly lineage: number },
): Promise<string> {
  const tree_id = restoreTreeId(lineage);
  const { pins: policies, machines, materials } = await policyCache.current();
  const open = { kind: 'open', run_id: tree_id, input_id: `${tree_id}/open` } as const;
  const given = { correlation_id: `restore-${lineage}`, case_id: null, taxonomy_versions: null, scope: {} };
  await engine.submit(tree_id, { input: { ...open, ...given, policies, machines }, materials, rememberInputId: false });
  await submitRestore(engine, { ...recordOf(tree_id, RESTORED, actor), lineage, ...restored });
  const end = { kind: 'cancel', run_id: tree_id, input_id: `${tree_id}/end`, reason: 'no_longer_needed' } as const;
  await engine.submit(tree_id, { input: end, materials: [], rememberInputId: false });
  return tree_id;
}

const recordOf = (tree_id: string, event: RestoreRecord['event'], actor: string) =>
  ({
    kind: 'restore',
    run_id: tree_id,
    input_id: event,
    event,
    actor: { actor_type: 'human', actor_id: actor },
    role_id: OPERATOR_ROLE,
  }) as const;

async function submitRestore(engine: Pick<TreeEngine, 'submit'>, input: RestoreRecord): Promise<void> {
  const { refused } = await engine.submit(input.run_id, { input, materials: [], rememberInputId: true });
  if (refused) throw new InvariantError('the tree of a restore has refused its record');
}

/**
 * A tree without its content cannot be folded, so it could never end later. Sessions are left as they are.
 * @returns the trees whose content is gone already
 */
async function endTrees(
  engine: TreeEngine,
  trees: readonly { readonly tree_id: string; readonly ended: boolean }[],
): Promise<readonly string[]> {
  const unended: string[] = [];
  for (const { tree_id, ended } of trees) {
    if (ended) continue;
    const input = { kind: 'cancel', run_id: tree_id, input_id: `${tree_id}/erased`, reason: 'operator' } as const;
    try {
      await engine.submit(tree_id, { input, materials: [], rememberInputId: false });
    } catch (error) {
      if (!(error instanceof LedgerError && error.code === 'LEDGER_ERASED')) throw error;
      unended.push(tree_id);
    }
  }
  return unended;
}

/**
 * Records that an operator has checked what a restored ledger may have lost. From then on effects run again.
 * @param confirmed the restored approvals and counters that may be used again: all of them
 * @returns the trees of the restores that were not acknowledged before
 * @throws UsageError if one is not confirmed; LedgerError
 */
export async function acknowledgeRestores(
  engine: Pick<TreeEngine, 'submit'>,
  store: LedgerStore,
  actor: string,
  confirmed: ConfirmedGrants = NOTHING_CONFIRMED,
): Promise<readonly string[]> {
  const acknowledged: string[] = [];
  const grants = await unconfirmedGrants(store);
  if (grants !== null) checkConfirmed(grants, confirmed);
  for (;;) {
    const { unacknowledged } = await readRestoreHistory(store);
    if (unacknowledged === null) return acknowledged;
    const tree_id = restoreTreeId(unacknowledged);
    const restored = await readRestoreRecord(store, tree_id);
    await submitRestore(engine, { ...restored, ...recordOf(tree_id, ACKNOWLEDGED, actor), confirmed });
    acknowledged.push(tree_id);
  }
}

const NOTHING_CONFIRMED: ConfirmedGrants = { approvals: [], counters: [] };

/** What an acknowledgement must confirm; null if none is awaited. @throws LedgerError */
export async function unconfirmedGrants(store: LedgerStore): Promise<RestoredGrants | null> {
  const { restores, unacknowledged } = await readRestoreHistory(store);
  return unacknowledged === null ? null : readRestoredGrants(store, restoreTreeId(restores));
}

/** The record of entries that a failover has lost. */
export interface RecordedFailover {
  readonly tree_id: string;
  readonly lineage: number;
  readonly kept: Head;
  readonly lost: Head;
}

/** The newest failover that explains why the ledger does not contain this head; null if none does. */
export async function findFailover(
  store: Pick<LedgerStore, 'marks' | 'tree'>,
  head: Head,
): Promise<RecordedFailover | null> {
  const { restores } = await readRestoreHistory(store);
  for (let lineage = restores; lineage > 0; lineage -= 1) {
    const tree_id = restoreTreeId(lineage);
    const { kept, lost, backup_sha256 } = await readRestoreRecord(store, tree_id);
    if (backup_sha256 === null && lost !== null && head.size <= lost.size) return { tree_id, lineage, kept, lost };
  }
  return null;
}

/** Opens the engine without executors. The caller stops it. */
export function openEngine(store: LedgerStore, externalHeadStore: ExternalHeadStore, log: Log): TreeEngine {
  return (isShared(store) ? sharedEngine : embeddedEngine)({
    store,
    externalHeadStore,
    clock: systemClock(),
    log,
    effects: NO_EFFECTS,
    secrets: ephemeralKey(),
    defer: scheduleNextTurn,
  });
}

const refuse = (): never => {
  throw new InvariantError('nothing is executed in a restore');
};

/** X3 of restore-home.ts: the engine takes a throw for an unknown outcome. */
const NO_EFFECTS: Effects = {
  gather: refuse,
  ask: refuse,
  run: refuse,
  settle: refuse,
  canRun: () => true,
  isElsewhere: true,
  forgetUsage: () => undefined,
};
