// `node docs/examples/cluster/start.mjs`: three workers write one ledger in PostgreSQL. Agents work, one worker is
// killed, and the agents go on. Then the ledger is verified, and compared with what the agents were answered. Exits
// with 0 only if all agrees.
//
//   node docs/examples/cluster/start.mjs [SECONDS]      the time of each half of the load; default: 5

import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { buildIfNeeded } from '../demo/build.mjs';
import { paint, say } from '../demo/print.mjs';
import { Clients } from './clients.mjs';
import { startPostgres } from './postgres.mjs';

const AGENTS = 16;
const MS = 1_000 * Number(process.argv[2] ?? 5);
const WORKER = fileURLToPath(new URL('worker.mjs', import.meta.url));
/** How long the workers may take to settle what the killed one has left, in ms. */
const SETTLE_MS = 15_000;

const folder = mkdtempSync(join(tmpdir(), 'turnpike-cluster-'));
const children = [];

async function main() {
  const built = buildIfNeeded(say);
  if (built !== null) say(`built in ${(built / 1000).toFixed(1)} s`);
  title('1  A PostgreSQL server and a new ledger');
  const server = await startPostgres(folder);
  try {
    const token = await createLedger(server.url);
    say('  The database has the ledger. A folder next to it has the keys, which all workers need.');
    title('2  Three workers');
    const workers = [];
    for (const name of ['w1', 'w2', 'w3']) workers.push(await startWorker(server.url, name));
    for (const { name, pid, url } of workers) say(`  ${name}  process ${pid}  ${url}`);
    const clients = await load(workers, token);
    title('5  Verification');
    return await verify(server.url, clients);
  } finally {
    for (const child of children) child.kill('SIGKILL');
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

const title = (text) => say(`\n${paint(text, 'bold')}`);

/** Creates the ledger, its keys and a token, before the workers start. */
async function createLedger(url) {
  const { createPostgresStore } = await import('turnpike/postgres');
  const { TokenFile } = await import('turnpike/http');
  await (await createPostgresStore({ url, caseKeysDir: join(folder, 'keys/case-keys') })).close();
  const turnpike = await open(url, 'setup');
  const tokens = new TokenFile(turnpike.keys.tokens);
  const { token } = tokens.mint({ actor: 'reporter', role: 'SANDBOX_AGENT', rights: ['act'], days: 1 });
  await turnpike.close();
  return token;
}

/** Opens the ledger in this process. */
async function open(url, name) {
  const { openTurnpike, winstonLog } = await import('turnpike');
  const { openPostgresStore } = await import('turnpike/postgres');
  const keys = join(folder, 'keys');
  const store = await openPostgresStore({ url, caseKeysDir: join(keys, 'case-keys') });
  const folders = { keys, state: join(folder, `state-${name}`), sandbox: join(folder, 'sandbox') };
  return openTurnpike({ store, ...folders, control: false, log: winstonLog('silent') });
}

function startWorker(url, name) {
  const child = spawn(process.execPath, [WORKER, url, name, folder], { stdio: ['ignore', 'pipe', 'ignore'] });
  children.push(child);
  return new Promise((resolve, reject) => {
    const worker = { name, pid: child.pid, url: null, kill: () => child.kill('SIGKILL') };
    child.stdout.once('data', (line) => {
      worker.url = line.toString('utf8').trim();
      resolve(worker);
    });
    child.once('exit', (code) => {
      worker.url = null;
      reject(new Error(`worker ${name} ended with ${code}`));
    });
  });
}

async function load(workers, token) {
  const clients = new Clients(workers, token);
  title(`3  ${AGENTS} agents write files, each in a case of its own`);
  say('  A hash of the run chooses the worker. That only saves work: any worker may take any request.');
  clients.start(AGENTS);
  await pause(MS);
  const before = clients.answered.length;
  say(`  ${before} steps were answered in ${MS / 1_000} s.`);
  title('4  One worker is killed (SIGKILL)');
  clients.slowestMs = 0;
  workers[1].kill();
  await pause(MS);
  await clients.end();
  say(`  w2 is gone. Its requests went to w1 and w3: ${clients.repeated} were sent again, under the same key.`);
  say(`  ${clients.answered.length - before} more steps were answered; the slowest took ${ms(clients.slowestMs)}.`);
  return clients;
}

const ms = (value) => `${Math.round(value)} ms`;

/** @returns whether everything is as expected */
async function verify(url, { answered }) {
  const turnpike = await open(url, 'verifier');
  try {
    const recorded = await settled(turnpike);
    const { ok } = await turnpike.ledger.verify();
    const replayed = await turnpike.replay();
    const lost = answered.filter(({ id }) => recorded.get(id) === undefined);
    const doubled = answered.filter(({ id }) => (recorded.get(id) ?? 0) > 1);
    const wrong = answered.filter((step) => (step.outcome === 'SUCCESS') !== isWritten(step));
    const rows = [
      ['the log is whole: each entry, each tree, and the signed head', ok],
      ['replay: the machines decide the same again', replayed.ok],
      [`answered steps: ${answered.length}, not in the ledger: ${lost.length}`, lost.length === 0],
      [`recorded twice: ${doubled.length}`, doubled.length === 0],
      [`files that contradict their answer: ${wrong.length}`, wrong.length === 0],
    ];
    for (const [text, holds] of rows) say(`  ${holds ? 'ok    ' : 'WRONG '} ${text}`);
    return rows.every(([, holds]) => holds);
  } finally {
    await turnpike.close();
  }
}

function isWritten({ case_id, file, content }) {
  const path = join(folder, 'sandbox', case_id, file);
  return existsSync(path) && readFileSync(path, 'utf8') === content;
}

/** Waits until the workers have settled everything. @returns how often each proposal was recorded */
async function settled(turnpike) {
  for (const end = Date.now() + SETTLE_MS; ; await pause(250)) {
    const recorded = new Map();
    let unsettled = 0;
    for await (const { text } of turnpike.ledger.log()) {
      const { type, body } = JSON.parse(text);
      if (type === 'step_trace') recorded.set(body.proposal_id, (recorded.get(body.proposal_id) ?? 0) + 1);
      if (type === 'input' && body.kind === 'proposal') unsettled += 1;
      if (type === 'step_trace') unsettled -= 1;
    }
    if (unsettled <= 0 || Date.now() > end) return recorded;
  }
}

process.exitCode = (await main()) ? 0 : 1;
