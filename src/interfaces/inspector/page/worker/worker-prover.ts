// The page's side of the proof in a worker: requests and results are messages.

import type { LedgerInfo, RowPage } from '../../../../core/contract/inspection/inspection.js';
import type { LogGrowth, Prover } from '../store/proof-tracker.js';
import type { ProofState } from './ledger-proof.js';

export type ProofRequest =
  | { readonly begin: LedgerInfo; readonly base: string; readonly token: string | null }
  | { readonly shown: RowPage }
  | { readonly grown: LogGrowth }
  | { readonly leafOf: number; readonly id: number };

/** A result: the progress, null if the proof cannot continue, or a requested hash. */
export type ProofMessage = ProofState | null | { readonly leaf: string | null; readonly id: number };

/** The part of a Worker that is used. */
export interface WorkerLike {
  postMessage(message: ProofRequest): void;
  addEventListener(type: 'message', listener: (event: { readonly data: ProofMessage }) => void): void;
  addEventListener(type: 'error', listener: () => void): void;
}

interface ServiceAddress {
  readonly base: string;
  readonly token: string | null;
}

export function createWorkerProver(
  worker: WorkerLike,
  address: ServiceAddress,
  onState: (state: ProofState | null) => void,
): Prover {
  const pendingLeaves = new Map<number, (leaf: string | null) => void>();
  let [id, isDead] = [0, false];
  worker.addEventListener('message', ({ data }) => {
    if (data === null || !('id' in data)) {
      onState(data);
      return;
    }
    pendingLeaves.get(data.id)?.(data.leaf);
    pendingLeaves.delete(data.id);
  });
  worker.addEventListener('error', () => {
    isDead = true;
    for (const answer of pendingLeaves.values()) answer(null);
    pendingLeaves.clear();
    onState(null);
  });
  return {
    begin: (info) => worker.postMessage({ begin: info, ...address }),
    addRows: (page) => worker.postMessage({ shown: page }),
    onGrowth: (growth) => worker.postMessage({ grown: growth }),
    leafOf: (at) =>
      new Promise((resolve) => {
        if (isDead) {
          resolve(null);
          return;
        }
        id += 1;
        pendingLeaves.set(id, resolve);
        worker.postMessage({ leafOf: at, id });
      }),
  };
}
