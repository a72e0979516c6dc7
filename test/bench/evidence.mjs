// The cost of proofs on a long ledger, each measured in a separate process.
// `npm run bench -- verify [--entries 1000000] [--home DIR]`: the speed of verification, compared with SHA-256 of
// the bytes.
// `npm run bench -- replay [...]`: a whole replay, and 20 random positions of the past, the first time and again.
// With `--home` the existing ledger, otherwise a new one.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { declareFeatures } from '../../build/compiled/src/features/declare-features.js';
import { sqliteHistoryCache } from '../../build/compiled/src/stores/sqlite/sqlite-history-cache.js';
import { homePaths, openHome } from '../../build/compiled/src/home/home.js';
import { LedgerReader } from '../../build/compiled/src/runtime/ledger/ledger-reader.js';
import { longLedger } from './long-ledger.mjs';

declareFeatures();
const { values, positionals } = parseArgs({
  options: {
    entries: { type: 'string', default: '1000000' },
    home: { type: 'string' },
    child: { type: 'boolean', default: false },
  },
  allowPositionals: true,
});
const POINTS = 20;
const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`;
const peak = () => `${Math.round((process.resourceUsage().maxRSS * 1024) / 1e6)} MB at the most`;
const timed = async (work) => {
  const begin = performance.now();
  const result = await work();
  return { result, ms: performance.now() - begin };
};

async function verify({ reader, store }) {
  const { result, ms } = await timed(() => reader.verify());
  if (!result.ok) throw new Error(JSON.stringify(result.problems[0]));
  const memory = peak();
  const { bytes, ms: plain } = await hashed(store);
  console.log(
    `verified ${result.entries} entries, ${Math.round(bytes / 1e6)} MB, in ${seconds(ms)}: ` +
      `${Math.round(result.entries / (ms / 1000))} a second, ${memory}; ` +
      `SHA-256 of the same bytes takes ${seconds(plain)}: ${(ms / plain).toFixed(1)} x`,
  );
}

/** The time of hashing alone. */
async function hashed(store) {
  const hash = createHash('sha256');
  let [bytes, ms, texts] = [0, 0, []];
  const flush = () => {
    const chunk = Buffer.from(texts.join(''));
    const begin = performance.now();
    hash.update(chunk);
    ms += performance.now() - begin;
    bytes += chunk.length;
    texts = [];
  };
  for await (const { text } of store.log()) if (texts.push(text) === 1_000) flush();
  flush();
  return { bytes, ms };
}

async function replay({ reader }) {
  const { result, ms } = await timed(() => reader.replay());
  if (!result.ok) throw new Error(JSON.stringify(result.difference));
  console.log(`replayed ${result.entries} entries of ${result.trees} trees in ${seconds(ms)}, ${peak()}`);
}

async function points({ reader, store }) {
  const { size } = await store.head();
  // The same positions every time.
  const places = Array.from({ length: POINTS }, (_, n) => Math.floor(size * ((n * 0.618034 + 0.17) % 1)));
  const first = await timed(() => reader.stateAt({ until: size - 1 }));
  console.log(`the end, reached for the first time: ${seconds(first.ms)}, ${peak()}`);
  const times = [];
  for (const until of places) times.push((await timed(() => reader.stateAt({ until }))).ms);
  times.sort((one, other) => one - other);
  console.log(
    `${POINTS} random points of ${size}, each with every run before it (${first.result.runs.length} at the end): ` +
      `median ${Math.round(times[POINTS / 2])} ms, worst ${Math.round(times.at(-1))} ms, ${peak()}`,
  );
}

const WORK = { verify: [verify], replay: [replay, points] };
const [name] = positionals;

if (values.child) {
  const home = homePaths(values.home);
  const history = sqliteHistoryCache(home.history);
  const { store, externalHeadStore } = openHome(home, { readOnly: true });
  const work = { verify, replay, points }[name];
  await work({ reader: new LedgerReader(store, externalHeadStore, history), store });
  await history.close();
  await store.close();
} else {
  const folder = values.home === undefined ? mkdtempSync(join(tmpdir(), 'turnpike-evidence-')) : null;
  try {
    const home = values.home ?? (await longLedger(folder, Number(values.entries)));
    for (const end of ['', '-wal', '-shm']) rmSync(`${homePaths(home).history}${end}`, { force: true });
    if (!existsSync(homePaths(home).ledger)) throw new Error(`${home} is no home`);
    for (const work of WORK[name]) {
      const args = [fileURLToPath(import.meta.url), work.name, '--child', '--home', home];
      if (spawnSync(process.execPath, args, { stdio: 'inherit' }).status !== 0) process.exitCode = 1;
    }
  } finally {
    if (folder !== null) rmSync(folder, { recursive: true, force: true });
  }
}
