// The worker that proves the ledger while the page is looked at. What it is sent is one of three messages.

import type { LedgerInfo, RowPage } from '../../contract/inspection.js';
import { HttpFeed } from '../data/http-feed.js';
import { PartProver } from './prover.js';

export type ToProof =
  | { readonly begin: LedgerInfo; readonly base: string; readonly token: string | null }
  | { readonly shown: RowPage }
  | { readonly grown: Pick<LedgerInfo, 'size' | 'checkpoint' | 'key'> };

let prover: PartProver | null = null;

self.addEventListener('message', ({ data }: MessageEvent<ToProof>) => {
  if ('begin' in data) {
    const feed = new HttpFeed(data.base, data.token);
    prover = new PartProver(
      (from, to) => feed.entries(from, to),
      (state) => self.postMessage(state),
    );
    prover.begin(data.begin);
  } else if ('shown' in data) prover?.shown(data.shown);
  else prover?.grown(data.grown);
});
