// The worker that proves the ledger while the page is in use. It receives four kinds of messages.

import { HttpFeed } from '../data/http-feed.js';
import { PartProver } from './part-prover.js';
import type { ProofMessage, ProofRequest } from './worker-prover.js';

const post = (message: ProofMessage): void => self.postMessage(message);

let prover: PartProver | null = null;

self.addEventListener('message', ({ data }: MessageEvent<ProofRequest>) => {
  if ('begin' in data) {
    const feed = new HttpFeed(data.base, data.token);
    const recorded = async (at: number): Promise<string | null> => (await feed.event(at))?.leaf_hash ?? null;
    prover = new PartProver((from, to) => feed.entries(from, to), post, recorded);
    prover.begin(data.begin);
  } else if ('shown' in data) prover?.addRows(data.shown);
  else if ('grown' in data) prover?.onGrowth(data.grown);
  else void leafOf(data.leafOf).then((leaf) => post({ leaf, id: data.id }));
});

const leafOf = async (at: number): Promise<string | null> => (await prover?.leafOf(at)) ?? null;
