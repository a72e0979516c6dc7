// One worker of the pool.

import { parentPort, workerData } from 'node:worker_threads';
import { attackEvidence, type Share } from './campaign.js';

const outcome = await attackEvidence(workerData as Share);
const tallies = outcome.tallies.map(({ part, cases, checks, violations, notes }) => ({
  ...{ part, cases, checks, violations },
  notes: [...notes],
}));
parentPort?.postMessage({ tallies, sizes: outcome.sizes });
