// npm run campaign -- redteam evidence [--cases 200000] [--seed N] [--workers 2] [--largest 2000]
// or alone: node build/test/redteam/evidence/main.js
//
// Mutated bundles, bags and archives in a pool of workers; then the largest of them, each in its own process. Ends with
// 1 after a wrong acceptance, or if a verification took more than 10 s or 300 MB.

import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { tableOf, Tally } from '../../crash/tally.js';
import { CASE_MS_MAX } from './campaign.js';
import { drawCase, type Case } from './cases.js';
import { makeMaterial, type Material } from './material.js';

const MIB_MAX = 300;
const run = promisify(execFile);

interface Posted {
  readonly tallies: readonly (Pick<Tally, 'part' | 'cases' | 'checks' | 'violations'> & {
    readonly notes: readonly (readonly [string, number])[];
  })[];
  readonly sizes: readonly (readonly [number, number])[];
}

const { values } = parseArgs({
  options: {
    cases: { type: 'string', default: '200000' },
    seed: { type: 'string', default: '1' },
    workers: { type: 'string', default: '2' },
    largest: { type: 'string', default: '2000' },
  },
});
const [cases, seed, workers, largest] = [values.cases, values.seed, values.workers, values.largest].map(Number) as [
  number,
  number,
  number,
  number,
];

const posted = await Promise.all(
  Array.from({ length: workers }, (_, from) => pooled({ seed, from, step: workers, cases })),
);
const tallies = merged(posted);
const sizes = posted.flatMap((one) => one.sizes).sort(([one], [other]) => other - one);
tallies.push(await alone(sizes.slice(0, largest).map(([, index]) => index)));
process.stdout.write(`seed ${seed}\n${tableOf(tallies)}\n`);
process.exitCode = tallies.some(({ violations }) => violations.length > 0) ? 1 : 0;

function pooled(workerData: object): Promise<Posted> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./worker.js', import.meta.url), { workerData });
    worker.once('message', resolve);
    worker.once('error', reject);
  });
}

function merged(all: readonly Posted[]): Tally[] {
  const tallies = new Map<string, Tally>();
  for (const { part, cases: some, checks, violations, notes } of all.flatMap((one) => one.tallies)) {
    const tally = tallies.get(part) ?? new Tally(part);
    tallies.set(part, tally);
    tally.cases += some;
    tally.checks += checks;
    tally.violations.push(...violations);
    for (const [name, value] of notes) {
      if (name.endsWith('at most')) tally.most(name, value);
      else tally.note(name, value);
    }
  }
  return [...tallies.values()];
}

/** The cases of these numbers, each verified by its own process. */
async function alone(indexes: readonly number[]): Promise<Tally> {
  const material = await makeMaterial();
  const tally = new Tally('processes');
  const folder = mkdtempSync(join(tmpdir(), 'turnpike-redteam-'));
  const rest = [...indexes];
  const turn = async (name: string): Promise<void> => {
    for (let index = rest.shift(); index !== undefined; index = rest.shift()) {
      await judgedAlone(tally, { index, path: join(folder, name) }, material);
    }
  };
  await Promise.all(Array.from({ length: workers }, (_, n) => turn(`case-${n}`)));
  rmSync(folder, { recursive: true, force: true });
  return tally;
}

async function judgedAlone(tally: Tally, at: { readonly index: number; readonly path: string }, material: Material) {
  const { index, path } = at;
  const one = drawCase(material, seed, index);
  if (one === null) return;
  lay(one, path);
  const script = fileURLToPath(new URL('./one.js', import.meta.url));
  try {
    const { stdout } = await run(process.execPath, [script, one.kind, path, material.signer.vkey], { timeout: 60_000 });
    const { verdict, ms, kib } = JSON.parse(stdout) as { verdict: string; ms: number; kib: number };
    tally.note(verdict);
    tally.most('ms at most', ms);
    tally.most('MiB at most', Math.round(kib / 1_024));
    tally.that(ms <= CASE_MS_MAX, () => `case ${index} ${one.kind} ${one.name}: ${ms} ms`);
    tally.that(kib <= MIB_MAX * 1_024, () => `case ${index} ${one.kind} ${one.name}: ${Math.round(kib / 1_024)} MiB`);
  } catch (error) {
    tally.that(false, () => `case ${index} ${one.kind} ${one.name}: ${String(error).slice(0, 300)}`);
  }
  tally.cases += 1;
  rmSync(path, { recursive: true, force: true });
}

/** Writes a case to the place where it is read; omits what a folder cannot contain. */
function lay(one: Case, path: string): void {
  if (one.kind !== 'bag') {
    writeFileSync(path, one.bytes);
    return;
  }
  mkdirSync(path);
  for (const [name, bytes] of Object.entries(one.files)) {
    if (name.includes('..')) continue;
    try {
      mkdirSync(dirname(join(path, name)), { recursive: true });
      writeFileSync(join(path, name), bytes);
    } catch {
      // A file below a file.
    }
  }
}
