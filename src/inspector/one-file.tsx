// The page as a single file: its ledger is written into it, and it proves that in the page itself, in small parts.

import { InlineFeed, type InlineData } from './data/inline-feed.js';
import { openPage, type MakeProver } from './boot.js';
import { reading } from './views/context.js';
import { PartProver } from './worker/prover.js';

const data = JSON.parse(document.getElementById('turnpike-data')?.textContent ?? '') as InlineData;
const feed = new InlineFeed(data);
// To read what is in one's own file is recorded nowhere.
reading.value = true;
const inPage: MakeProver = (tell) => new PartProver((from, to) => feed.entries(from, to), tell);
openPage(feed, inPage);
