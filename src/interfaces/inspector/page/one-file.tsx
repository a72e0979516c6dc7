// The page as a single file: it contains its ledger and proves it in the page itself, in small parts.

import { InlineFeed } from './data/inline-feed.js';
import type { InlineData } from '../render-one-file.js';
import { openPage, type ProverFactory } from './boot.js';
import { isReadingAllowed } from './views/common/context.js';
import { PartProver } from './worker/part-prover.js';

const data = JSON.parse(document.getElementById('turnpike-data')?.textContent ?? '') as InlineData;
const feed = new InlineFeed(data);
// A file on the reader's own disk records no readings.
isReadingAllowed.value = true;
const recorded = async (at: number): Promise<string | null> => (await feed.event(at))?.leaf_hash ?? null;
const createProver: ProverFactory = (onState) =>
  new PartProver((from, to) => feed.entries(from, to), onState, recorded);
openPage(feed, createProver);
