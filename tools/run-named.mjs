// `npm run bench -- NAME [ARGUMENTS]` and `npm run campaign -- NAME [ARGUMENTS]`: builds what the program of this name
// needs and runs it. The arguments and the exit code are the program's. Without a known name, prints the names.

import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** What a program needs first: the package in `dist`, or sources and campaigns in `build`. */
const PACKAGE = ['npm', ['run', 'build', '--silent']];
const CAMPAIGNS = [process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'test/tsconfig.campaigns.json']];

const measure = (does, ...args) => ({ does, args, build: PACKAGE });
const attempt = (does, file) => ({ does, args: [file], build: CAMPAIGNS });

export const TABLES = {
  bench: {
    steps: measure('steps per second, compared with a floor', 'test/bench/run.mjs'),
    pairs: measure('two builds in interleaved pairs, in processor time', 'test/bench/pairs.mjs'),
    growth: measure('what must not grow with runs, ledgers and trees', '--expose-gc', 'test/bench/growth.mjs'),
    cluster: measure('several workers on one PostgreSQL', 'test/bench/cluster.mjs'),
    export: measure('time and memory of an export', 'test/bench/export.mjs'),
    hooks: measure('calls of hooks', 'test/bench/hooks.mjs'),
    http: measure('steps over HTTP', 'test/bench/http.mjs'),
    inspector: measure('the page of the inspector in Chromium', 'test/bench/inspector.mjs'),
    session: measure('a session with many tasks', 'test/bench/session.mjs'),
    simulate: measure('decisions of a policy simulation', 'test/bench/simulate.mjs'),
    startup: measure('the start of the program', 'test/bench/startup.mjs'),
    store: measure('commits of the store alone', 'test/bench/store.mjs'),
    telemetry: measure('steps with telemetry and without it', 'test/bench/telemetry.mjs'),
    verify: measure('verification of evidence', 'test/bench/evidence.mjs', 'verify'),
    replay: measure('replay of evidence', 'test/bench/evidence.mjs', 'replay'),
  },
  campaign: {
    fuzz: attempt('payloads of any bytes', 'build/test/fuzz/main.js'),
    attack: attempt('a process that renames files while actions run', 'build/test/attack/main.js'),
    crash: attempt('a process that is killed at every commit', 'build/test/crash/main.js'),
    simulate: attempt('histories of one engine with faults', 'build/test/simulation/main.js'),
    trees: attempt('random run trees', 'build/test/trees/main.js'),
    'restate-chaos': attempt('a Restate server that is killed', 'build/test/interfaces/restate/main.js'),
    policies: attempt('simulations of random policies', 'build/test/features/simulation/main.js'),
    'one-path': attempt('one request, decided in four ways', 'build/test/features/simulation/one-path-main.js'),
    conditions: attempt('conditions, compared with a second evaluator', 'build/test/features/conditions/main.js'),
    counters: attempt('counters that several workers change', 'build/test/features/conditions/counters/main.js'),
    tamper: attempt('changed, removed and forged entries', 'build/test/tamper/main.js'),
    redteam: attempt('attacks from inside a running service', 'test/redteam/run.mjs'),
    agents: { does: 'the real coding agents', args: ['test/agents/run.mjs'], build: PACKAGE },
    backups: attempt('backups that are killed', 'build/test/backup/main.js'),
    'cluster-chaos': attempt('workers that are killed, stopped and cut off', 'build/test/cluster/main.js'),
    'cluster-histories': attempt('histories of several workers', 'build/test/engine/cluster/main.js'),
    sessions: attempt('random sessions', 'build/test/sessions/main.js'),
    installs: { does: 'the packed package on several Nodes', args: ['test/node/installs.mjs'], build: PACKAGE },
    stable: { does: 'chosen suites many times, under load', args: ['test/stable.mjs'], build: null },
  },
};

/** Runs a program to its end. Returns its exit code, which is 1 after a signal. */
function run([program, args]) {
  const { status, error } = spawnSync(program, args, { cwd: ROOT, stdio: 'inherit' });
  if (error !== undefined) throw error;
  return status ?? 1;
}

function main([kind, name, ...rest]) {
  const table = TABLES[kind];
  if (name === undefined || !Object.hasOwn(table, name)) {
    const lines = Object.entries(table).map(([known, { does }]) => `  ${known.padEnd(18)} ${does}`);
    if (name !== undefined) console.error(`unknown ${kind} "${name}"`);
    console.error(`usage: npm run ${kind} -- NAME [ARGUMENTS]\n${lines.join('\n')}`);
    return 2;
  }
  const { args, build } = table[name];
  const built = build === null ? 0 : run(build);
  return built === 0 ? run([process.execPath, [...args, ...rest]]) : built;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = main(process.argv.slice(2));
