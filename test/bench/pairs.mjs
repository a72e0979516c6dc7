// Compares two builds in interleaved pairs, in processor time: any drift of the machine affects both.
// `npm run bench -- pairs --before DIR [--after DIR] [--pairs 20] [--script step-cost|recovery-cost|http-step-cost]`
// `--steps`, `--warm` and `--only` go to step-cost and http-step-cost. `--switch telemetry=0.1` runs the
// second build with that switch of the script: with the same build twice, it measures the switch.
// `--slices 10` keeps both processes of a pair alive, and lets them run 10 short slices of each figure in turn: the
// median of the slices is what a pair has. This is the way on a machine that does other work. Only for step-cost.
//
// DIR is a checkout that has been built. Prints, for each figure, the median of the ratios after / before, and the
// interval that contains the true median with 95 % (order statistics of the pairs, no assumption about their
// distribution).

import { fork, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { KINDS } from './payloads.mjs';
import { ascending, compare, median } from './statistics.mjs';

const { values } = parseArgs({
  options: {
    before: { type: 'string' },
    after: { type: 'string', default: fileURLToPath(new URL('../..', import.meta.url)) },
    pairs: { type: 'string', default: '20' },
    script: { type: 'string', default: 'step-cost' },
    json: { type: 'boolean', default: false },
    steps: { type: 'string' },
    warm: { type: 'string' },
    only: { type: 'string' },
    switch: { type: 'string' },
    slices: { type: 'string' },
  },
});
if (values.before === undefined) throw new Error('name the other build: --before DIR');
const pairs = Number(values.pairs);
const script = fileURLToPath(new URL(`./${values.script}.mjs`, import.meta.url));

/** Further arguments of the script. */
const more = ['steps', 'warm', 'only'].flatMap((name) =>
  values[name] === undefined ? [] : [`--${name}`, values[name]],
);

/** The switch of the second build. */
const switched = values.switch === undefined ? [] : [`--${values.switch}`];

function run(which) {
  const checkout = values[which];
  const own = which === 'after' ? switched : [];
  const { stdout, stderr, status } = spawnSync(process.execPath, [script, '--package', checkout, ...more, ...own], {
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`${values.script} of ${checkout} failed: ${stderr}`);
  return JSON.parse(stdout.trim().split('\n').at(-1));
}

/** The figures of both builds from one process of each. */
function measureOnce(order) {
  return Object.fromEntries(order.map((which) => [which, run(which)]));
}

/** The same from slices: [one process, the other] take turns. */
async function measureInSlices(order) {
  const children = order.map((which) =>
    fork(script, ['--slices', '--package', values[which], ...(which === 'after' ? switched : [])], {
      stdio: 'inherit',
    }),
  );
  const ends = new Map(children.map((child) => [child, once(child, 'exit').then(() => null)]));
  const measure = async (child, message) => {
    child.send(message);
    // A child that fails sends nothing.
    const answer = await Promise.race([once(child, 'message'), ends.get(child)]);
    if (answer === null) throw new Error(`${values.script} has ended before its answer`);
    return answer[0];
  };
  const found = { before: {}, after: {} };
  for (const kind of Object.keys(KINDS)) {
    for (const trees of [1, 64]) {
      const figure = `${kind}, ${trees} tree${trees === 1 ? '' : 's'}`;
      if (values.only !== undefined && values.only !== figure) continue;
      const steps = Number(values.steps ?? 1600) / (trees === 1 ? 16 : 4);
      for (const child of children) await measure(child, { kind, trees, steps: steps * 4 });
      const costs = [[], []];
      for (let slice = 0; slice < Number(values.slices); slice += 1)
        for (const at of slice % 2 === 0 ? [0, 1] : [1, 0])
          costs[at].push(await measure(children[at], { kind, trees, steps }));
      for (const [at, which] of order.entries()) found[which][figure] = median(ascending(costs[at]));
    }
  }
  for (const child of children) child.disconnect();
  await Promise.all(ends.values());
  return found;
}

const rows = new Map();
for (let pair = 0; pair < pairs; pair += 1) {
  // Every second pair in reverse order: neither build always runs on a warm machine.
  const order = pair % 2 === 0 ? ['before', 'after'] : ['after', 'before'];
  const found = values.slices === undefined ? measureOnce(order) : await measureInSlices(order);
  for (const [name, before] of Object.entries(found.before)) {
    const row = rows.get(name) ?? { before: [], after: [] };
    rows.set(name, row);
    row.before.push(before);
    row.after.push(found.after[name]);
  }
}

const table = [...rows].map(([figure, { before, after }]) => compare(figure, before, after));
if (values.json) console.log(JSON.stringify({ pairs, rows: table }));
else {
  console.log(`${pairs} interleaved pairs; after / before: median, and its 95 % interval`);
  console.table(table);
}
