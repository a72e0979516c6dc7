// The page as a single file: its ledger is written into it, and it proves that in the page itself, in small parts.

import { InlineFeed, type InlineData } from './data/inline-feed.js';
import { openPage, type ProverFactory } from './boot.js';
import { isReadingAllowed } from './views/common/context.js';
import { PartProver } from './worker/part-prover.js';

const data = JSON.parse(document.getElementById('turnpike-data')?.textContent ?? '') as InlineData;
const feed = new InlineFeed(data);
// To read what is in one's own file is recorded nowhere.
isReadingAllowed.value = true;
const createProver: ProverFactory = (onState) => new PartProver((from, to) => feed.entries(from, to), onState);
openPage(feed, createProver);
