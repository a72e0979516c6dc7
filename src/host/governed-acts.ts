// The acts of operators that an open Turnpike executes itself, each after policy has allowed it.

import type { StorageEnvironment } from './turnpike-options.js';
import type { TurnpikeComponents } from './wire.js';
import { eraseCase, type EraseOptions, type ErasureReport } from '../runtime/ledger/erase-case.js';
import type { KeyFolder } from '../home/home.js';
import type { KeyRotation } from '../core/ledger/proof/key-history.js';
import {
  finishRotations,
  rotateLedgerKey,
  unsignedError,
  type RotateKeyOptions,
} from '../home/keys/rotate-ledger-key.js';
import { rotateCaseKeys, type CaseKeyRotations, type RotateCaseKeysOptions } from '../home/keys/rotate-case-keys.js';
import {
  executeGoverned,
  reportAct,
  requestGrant,
  type Operator,
  type OperatorGrant,
  type OperatorRequest,
} from '../runtime/operator-acts.js';

/** What operators do to the ledger as a whole (C101). Each throws RunError ACT_DENIED or APPROVAL_PENDING. */
export interface GovernedActs {
  /**
   * Replaces the key that signs the ledger. No other process may use its key folder, and no export may be running.
   * @throws PolicyError without a key; UsageError; LedgerError
   */
  rotateLedgerKey(by: RotateKeyOptions): Promise<KeyRotation>;
  /**
   * Permanently destroys the content of a case (D14). Its entries remain in the ledger.
   * @throws RunError CASE_IN_USE while a run tree of the case is live
   */
  erase(erasure: EraseOptions): Promise<ErasureReport>;
  /**
   * Replaces the key that encrypts the contents of one case, or of each, and encrypts all of them again. Run trees of
   * the case may be live.
   * @throws UsageError for a case without a key; LedgerError: then repeat it, which finishes what has begun
   */
  rotateCaseKeys(options: RotateCaseKeysOptions): Promise<CaseKeyRotations>;
  /** Asks policy for an act that the caller executes itself, such as an archive. `reportAct` takes its outcome. */
  requestAct(operator: Operator, request: OperatorRequest): Promise<OperatorGrant>;
  /** Records the outcome of an act that the caller has executed. */
  reportAct(grant: OperatorGrant, status: 'done' | 'failed'): Promise<void>;
}

/** Also finishes a rotation that an earlier process has left unfinished. */
export async function openGovernedActs(
  { store, externalHeadStore }: StorageEnvironment,
  keys: KeyFolder | null,
  components: TurnpikeComponents,
): Promise<GovernedActs> {
  const { engine, ids, policyCache, history, replayPoints } = components;
  const parts = { engine, store, ids, policyCache };
  const erasing = { engine, archives: store.archives, history, replayPoints };
  const rotating = keys === null ? null : { ...components, store, externalHeadStore, keys };
  if (rotating !== null) await finishRotations(rotating);
  // One act at a time: two rotations at once would each continue the key history that both have read, and two calls
  // would use one approval.
  let last: Promise<unknown> = Promise.resolve();
  const execute = <T>(operator: Operator, request: OperatorRequest, act: () => Promise<T>): Promise<T> => {
    const executed = last.then(() => executeGoverned(parts, operator, request, act));
    last = executed.catch(() => undefined);
    return executed;
  };
  return {
    erase: (erasure) => {
      const request = { action: 'ERASE_CASE', cases: [erasure.case], details: {} } as const;
      return execute(erasure, request, () => eraseCase(erasing, erasure));
    },
    rotateLedgerKey: (options) => {
      const request = { action: 'ROTATE_KEYS', cases: [], details: { purpose: 'ledger' } } as const;
      return execute(options, request, async () => {
        if (rotating === null) throw unsignedError('the option `keys`');
        return rotateLedgerKey(rotating, options);
      });
    },
    rotateCaseKeys: (options) => {
      const cases = options.case === null ? (store.caseKeys?.cases() ?? []) : [options.case];
      const request = { action: 'ROTATE_KEYS', cases, details: { purpose: 'case' } } as const;
      return execute(options, request, () => rotateCaseKeys({ ...components, store }, options));
    },
    requestAct: (operator, request) => requestGrant(parts, operator, request),
    reportAct: (grant, status) => reportAct(parts, grant, status),
  };
}
