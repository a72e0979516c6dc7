// The worker that proves the ledger while the page is looked at. What it is sent is one of four messages.

import { HttpFeed } from '../data/http-feed.js';
import { PartProver } from './prover.js';
import type { FromProof, ToProof } from './remote.js';

const say = (told: FromProof): void => self.postMessage(told);

let prover: PartProver | null = null;

self.addEventListener('message', ({ data }: MessageEvent<ToProof>) => {
  if ('begin' in data) {
    const feed = new HttpFeed(data.base, data.token);
    prover = new PartProver((from, to) => feed.entries(from, to), say);
    prover.begin(data.begin);
  } else if ('shown' in data) prover?.shown(data.shown);
  else if ('grown' in data) prover?.grown(data.grown);
  else void leafOf(data.leafOf).then((leaf) => say({ leaf, id: data.id }));
});

const leafOf = async (at: number): Promise<string | null> => (await prover?.leafOf(at)) ?? null;
