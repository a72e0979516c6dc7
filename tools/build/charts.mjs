// The charts of the machines of this version, laid out as a step of the build: an inspector then has them at once.

import { readFileSync, writeFileSync } from 'node:fs';
import { FLAGS, flagsOf } from '../../build/compiled/machines/flags.js';
import { LayoutWorker } from '../../build/compiled/src/interfaces/inspector/layout-worker.js';
import { declareFeatures } from '../../build/compiled/src/features/declare-features.js';
import { SESSIONS } from '../../build/compiled/src/features/sessions/tree/session-tree.js';
import { definitionsOf, loadPinnedFeatures, policyOf } from '../../build/compiled/src/kernel/pinned-policy.js';
import { chartsOf } from '../../build/compiled/src/kernel/replay/machine-chart.js';

const file = (path) => new URL(`../../${path}`, import.meta.url);
const artifact = (name) => ({
  kind: 'policy',
  case_id: null,
  bytes: readFileSync(file(`policies/contract/v1/policy/${name}.yaml`)),
});

declareFeatures();
const pinned = ['lanes', 'roles', 'actions'].map(artifact);
await loadPinnedFeatures(pinned);
// Some states exist only under their flag.
const policy = { ...policyOf(pinned), flags: flagsOf(FLAGS) };
const definitions = JSON.parse(definitionsOf(policy, SESSIONS.root));
const worker = new LayoutWorker();
const charts = [];
for (const chart of chartsOf(definitions)) {
  const layouts = await worker.layOut(chart);
  if (layouts === null) throw new Error(`the ${chart.machine} machine cannot be laid out`);
  charts.push({ ...chart, layouts });
}
await worker.close();
writeFileSync(file('dist/charts.json'), `${JSON.stringify(charts)}\n`);
