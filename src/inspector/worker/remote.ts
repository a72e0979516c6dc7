// The proof in a worker, as the page has it: what is said to it are messages, and what it was asked for comes as one.

import type { LedgerInfo, RowPage } from '../../contract/inspection.js';
import type { Prover } from '../store/proof-keeper.js';
import type { ProofState } from './check.js';

export type ToProof =
  | { readonly begin: LedgerInfo; readonly base: string; readonly token: string | null }
  | { readonly shown: RowPage }
  | { readonly grown: Pick<LedgerInfo, 'size' | 'checkpoint' | 'key'> }
  | { readonly leafOf: number; readonly id: number };

/** What it tells: how far it has come, null where it cannot go on, and what it was asked for. */
export type FromProof = ProofState | null | { readonly leaf: string | null; readonly id: number };

/** Of a worker as much as is used of one. */
export interface WorkerLike {
  postMessage(message: ToProof): void;
  addEventListener(type: 'message', listener: (event: { readonly data: FromProof }) => void): void;
  addEventListener(type: 'error', listener: () => void): void;
}

interface Where {
  readonly base: string;
  readonly token: string | null;
}

export function proverIn(worker: WorkerLike, where: Where, tell: (state: ProofState | null) => void): Prover {
  const asked = new Map<number, (leaf: string | null) => void>();
  let [id, dead] = [0, false];
  worker.addEventListener('message', ({ data }) => {
    if (data === null || !('id' in data)) {
      tell(data);
      return;
    }
    asked.get(data.id)?.(data.leaf);
    asked.delete(data.id);
  });
  worker.addEventListener('error', () => {
    dead = true;
    for (const answer of asked.values()) answer(null);
    asked.clear();
    tell(null);
  });
  return {
    begin: (info) => worker.postMessage({ begin: info, ...where }),
    shown: (page) => worker.postMessage({ shown: page }),
    grown: ({ size, checkpoint, key }) => worker.postMessage({ grown: { size, checkpoint, key } }),
    leafOf: (at) =>
      new Promise((resolve) => {
        if (dead) {
          resolve(null);
          return;
        }
        id += 1;
        asked.set(id, resolve);
        worker.postMessage({ leafOf: at, id });
      }),
  };
}
