// The cost of a step in the store, in microseconds of CPU, user and system, without waiting for the flush.
// `npm run build && node test/bench/store.mjs [-- --dist DIR] [--entries 1000000] [--seed TEXT]`
//
// Steps have the shape of governed steps: the same number of entries of 800 bytes, artifacts, and the mark of a random
// proposal id. Interleaved trees commit together, one step each, like the callers of one tick.

import { hash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    dist: { type: 'string', default: new URL('../../build/compiled', import.meta.url).pathname },
    entries: { type: 'string', default: '1000000' },
    steps: { type: 'string', default: '6400' },
    rounds: { type: 'string', default: '5' },
    seed: { type: 'string', default: 'store' },
    lookups: { type: 'boolean', default: false },
  },
});
const { createSqliteStore } = await import(join(resolve(values.dist), 'src/stores/sqlite/sqlite-ledger-store.js'));

/** Entries and artifacts of one commit each. A write is two commits: the decision and its outcome. */
const SHAPES = {
  denied: [[5, 1]],
  read: [[9, 2]],
  write: [
    [7, 1],
    [6, 1],
  ],
};
const TREES_ALIVE = 64;

const h = hash('sha256', 'a', 'hex');
const body = `{"body":"${'x'.repeat(740)}`;
let counter = 0;
const randomHash = () => hash('sha256', `${values.seed}${counter++}`, 'hex');
const uuid = () => {
  const x = randomHash();
  return `${x.slice(0, 8)}-${x.slice(8, 12)}-4${x.slice(13, 16)}-8${x.slice(17, 20)}-${x.slice(20, 32)}`;
};

const folder = mkdtempSync(join(tmpdir(), 'turnpike-store-'));
const store = createSqliteStore({ file: join(folder, 'ledger.db'), artifactsDir: join(folder, 'artifacts') });
const epoch = await store.acquire();
let size = 0;
let trees = [];
const seqs = new Map();

/** Trees live for 32 steps, then others replace them. */
function treesOf(count, turn) {
  if (turn % 32 === 0 || trees.length !== count) {
    trees = Array.from({ length: count }, () => `run_${randomHash().slice(0, 21)}`);
    seqs.clear();
  }
  return trees;
}

function batchOf(ids, [entryCount, artifactCount], marked) {
  const batch = { epoch, from: size, entries: [], artifacts: [], proposals: [], inputs: [], trees: [] };
  for (const id of ids) {
    let seq = seqs.get(id) ?? 0;
    if (marked) {
      const place = { run_id: `${id}.1`, step_index: 1, seq };
      batch.proposals.push({ root_run_id: id, proposal_id: uuid(), payload_sha256: h, ...place });
    }
    for (let i = 0; i < entryCount; i += 1) {
      if (i < artifactCount) {
        const sha256 = randomHash();
        const artifact = { kind: 'raw_payload', case_id: 'case', bytes: Buffer.from(sha256.padEnd(300, 'y')) };
        batch.artifacts.push({ entry: batch.entries.length, artifact, sha256 });
      }
      const text = `${body}${size}${i}","seq":${seq},"tree_id":"${id}"}`;
      batch.entries.push({
        entry: { tree_id: id, seq, type: 'audit_event' },
        text,
        leaf_hash: hash('sha256', text, 'hex'),
      });
      seq += 1;
    }
    seqs.set(id, seq);
  }
  size += batch.entries.length;
  batch.head = { size, root: h, frontier: Array.from({ length: 20 }, () => h) };
  return batch;
}

/** CPU microseconds per step, and the longest commit in milliseconds. Creating the batches is not included. */
async function measure(shape, treeCount, steps) {
  const cost = { user: 0, system: 0, longest: 0 };
  const turns = Math.ceil(steps / treeCount);
  for (let turn = 0; turn < turns; turn += 1) {
    const ids = treesOf(treeCount, turn);
    for (const [part, counts] of SHAPES[shape].entries()) {
      const batch = batchOf(ids, counts, part === 0);
      const before = process.cpuUsage();
      const since = performance.now();
      if (values.lookups) for (const m of batch.proposals) await store.proposal(m.root_run_id, m.proposal_id);
      await store.commit(batch);
      cost.longest = Math.max(cost.longest, performance.now() - since);
      const { user, system } = process.cpuUsage(before);
      cost.user += user / turns / treeCount;
      cost.system += system / turns / treeCount;
    }
  }
  return cost;
}

/** The cheapest round: other load on the machine only ever adds to the cost. */
async function best(shape, treeCount) {
  const rounds = [];
  for (let round = 0; round < Number(values.rounds); round += 1) {
    rounds.push(await measure(shape, treeCount, treeCount === 1 ? 400 : Number(values.steps)));
  }
  return rounds.sort((a, b) => a.user + a.system - b.user - b.system)[0];
}

async function table(title) {
  process.stdout.write(`${title}\n`);
  for (const treeCount of [1, TREES_ALIVE]) {
    const cells = [];
    for (const shape of Object.keys(SHAPES)) {
      const { user, system, longest } = await best(shape, treeCount);
      const [sum, u, k] = [user + system, user, system].map((us) => us.toFixed(1));
      cells.push(`${shape} ${sum} us (${u} + ${k}, longest commit ${longest.toFixed(1)} ms)`);
    }
    process.stdout.write(`  ${String(treeCount).padStart(2)} trees: ${cells.join('   ')}\n`);
  }
}

await measure('read', TREES_ALIVE, 2_000);
await table(`after ${size} entries`);
const since = performance.now();
while (size < Number(values.entries)) await measure('read', TREES_ALIVE, TREES_ALIVE * 32);
process.stdout.write(
  `filled in ${((performance.now() - since) / 1000).toFixed(0)} s, resident ${Math.round(process.memoryUsage().rss / 1e6)} MB\n`,
);
await table(`after ${size} entries`);
await store.close();
rmSync(folder, { recursive: true, force: true });
