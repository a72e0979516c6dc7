// 5 seeds, and 60 short histories; `npm run campaign -- cluster-histories` runs more.
// V5 is an invariant of shared-counters.ts.

import { expect, test } from '@jest/globals';
import { simulateCluster } from './cluster-simulation.js';
import './cluster-simulation.test.js';

test('V5: a decision whose version cannot be read yet waits, and is not refused again and again', async () => {
  const { violations, differences } = await simulateCluster({ seed: 45, inputs: 400, hasCounters: true });
  expect([violations, differences]).toEqual([[], []]);
});
