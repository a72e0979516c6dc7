// The cost of telemetry: processor time (user and system) of a step with it, as a ratio to that without it, from 64
// callers, in interleaved pairs of processes.
// `npm run bench:telemetry -- [--pairs 20] [--shares 0.1] [--steps N] [--warm N] [--kinds think,read]`
//
// `--shares 0,0.1,1` measures more than one share of traced trees; 0 is metrics alone. The steps before the measurement
// (`--warm`) are as many as the compiler needs: a service runs for longer than that.

import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { compare } from './statistics.mjs';

const { values } = parseArgs({
  options: {
    package: { type: 'string', default: fileURLToPath(new URL('../..', import.meta.url)) },
    pairs: { type: 'string', default: '20' },
    shares: { type: 'string', default: '0.1' },
    kinds: { type: 'string', default: 'think,read' },
    steps: { type: 'string', default: '12800' },
    warm: { type: 'string', default: '25600' },
    json: { type: 'boolean', default: false },
  },
});
const script = fileURLToPath(new URL('./step-cost.mjs', import.meta.url));
const shares = values.shares.split(',');
const kinds = values.kinds.split(',');

/** @returns microseconds per step in a process of its own; `share` null: without telemetry */
function run(kind, share) {
  const only = `${kind}, 64 trees`;
  const options = { package: values.package, steps: values.steps, warm: values.warm, only };
  const all = share === null ? options : { ...options, telemetry: share };
  const args = Object.entries(all).flatMap(([name, value]) => [`--${name}`, value]);
  const { stdout, stderr, status } = spawnSync(process.execPath, [script, ...args], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`step-cost failed: ${stderr}`);
  return JSON.parse(stdout.trim().split('\n').at(-1))[only];
}

const found = new Map(kinds.map((kind) => [kind, new Map([null, ...shares].map((share) => [share, []]))]));
for (let pair = 0; pair < Number(values.pairs); pair += 1) {
  for (const kind of kinds) {
    // Each variant comes first, and last, equally often.
    const variants = [null, ...shares];
    const order = variants.map((_, place) => variants[(place + (pair >> 1)) % variants.length]);
    if (pair % 2 === 1) order.reverse();
    for (const share of order) found.get(kind).get(share).push(run(kind, share));
  }
}
const rows = kinds.flatMap((kind) => {
  const costs = found.get(kind);
  return shares.map((share) => compare(`${kind}, share ${share}`, costs.get(null), costs.get(share)));
});
if (values.json) console.log(JSON.stringify({ pairs: Number(values.pairs), rows }));
else {
  console.log(`${values.pairs} interleaved pairs; with / without telemetry: median, and its 95 % interval`);
  console.table(rows);
}
