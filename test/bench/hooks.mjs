// How long a hook of a coding agent takes, with a warm service and one busy core: each decision is durable.
// `npm run bench -- hooks [--calls 2000] [--commands 300] [--busy 1]`
//
// HTTP: the time from the request to the answer. Command: its processor time above that of `node -e 0`, and its time
// compared with that of a hook that reads its event and does nothing.

import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { ascending, median } from './statistics.mjs';

const { values } = parseArgs({
  options: {
    calls: { type: 'string', default: '2000' },
    commands: { type: 'string', default: '300' },
    busy: { type: 'string', default: '1' },
  },
});
const main = fileURLToPath(new URL('../../dist/src/interfaces/cli/main.js', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'turnpike-hooks-'));
const [home, project, contract] = [join(folder, 'home'), join(folder, 'project'), join(folder, 'contract')];
mkdirSync(project);
const caller = { actor: 'claude-one', role: 'CODING_AGENT', lane: 'CODING', case: 'project-1', project };

function turnpike(...argv) {
  const { stdout, stderr, status } = spawnSync(process.execPath, [main, ...argv], { encoding: 'utf8', cwd: folder });
  if (status !== 0) throw new Error(`turnpike ${argv.join(' ')}: ${stderr}`);
  return stdout;
}

/** The service, as a process of its own. */
async function serve() {
  turnpike('init', '--home', home, '--contract', contract, '--template', 'coding');
  const token = turnpike(
    'token',
    '--home',
    home,
    '--actor',
    caller.actor,
    '--role',
    caller.role,
    '--right',
    'act',
  ).match(/tp_[A-Za-z0-9_-]+|[A-Za-z0-9_-]{40,}/)[0];
  const argv = [main, 'serve', '--hooks', '--home', home, '--contract', contract, '--port', '0'];
  const child = spawn(process.execPath, argv, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
  for await (const line of createInterface({ input: child.stderr })) {
    const url = line.match(/http:\/\/[^\s/]+/)?.[0];
    if (url !== undefined) return { child, url, token };
  }
  throw new Error('the service has not started');
}

let calls = 0;
const callEvent = (session) => ({
  session_id: session,
  cwd: project,
  hook_event_name: 'PreToolUse',
  tool_name: 'Bash',
  tool_input: { command: 'git status' },
  tool_use_id: `toolu_${(calls += 1)}`,
});

/** Opens a session whose client was checked. */
function openSession(session, as) {
  return new Promise((done, refuse) => {
    const socket = createConnection(join(home, 'control.sock'));
    socket.on('error', refuse);
    socket.on('data', () => {
      socket.destroy();
      done();
    });
    const event = JSON.stringify({ session_id: session, cwd: project, hook_event_name: 'SessionStart' });
    const check = { version: '2.1.330', findings: [] };
    socket.write(`${JSON.stringify({ id: 1, op: 'hook', client: 'claude-code', event, caller: as, check })}\n`);
  });
}

const agent = new Agent({ keepAlive: true, maxSockets: 1 });
function post(url, token, body) {
  const query = new URLSearchParams({ project, case: caller.case });
  const begin = performance.now();
  return new Promise((done, refuse) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const sent = request(`${url}/api/v1/hooks/claude-code?${query}`, { method: 'POST', agent, headers }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part) => (text += part));
      response.on('end', () => done({ ms: performance.now() - begin, text, status: response.statusCode }));
    });
    sent.on('error', refuse);
    sent.end(body);
  });
}

function requireAllow(text) {
  if (!text.includes('"permissionDecision":"allow"')) throw new Error(`not allowed: ${text}`);
}

/** Milliseconds of one process from its start to its end, and of its processor time. */
function costOf(argv, input) {
  const program = ['-c', 'TIMEFORMAT="%R %U %S"; time "$@" 2>/dev/null', 'bash', process.execPath, ...argv];
  const { stdout, stderr, status } = spawnSync('bash', program, { encoding: 'utf8', input });
  if (status !== 0) throw new Error(`${argv.join(' ')} failed: ${stderr}`);
  const [real, user, system] = stderr.trim().split(' ').map(Number);
  return { ms: real * 1000, cpu: (user + system) * 1000, stdout };
}

const quantile = (numbers, share) => {
  const sorted = ascending(numbers);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
};
const row = (what, numbers) => ({
  what,
  p50: Number(median(ascending(numbers)).toFixed(2)),
  p99: Number(quantile(numbers, 0.99).toFixed(2)),
  max: Number(Math.max(...numbers).toFixed(2)),
});

const busy = Array.from({ length: Number(values.busy) }, () => spawn(process.execPath, ['-e', 'for (;;);']));
const { child, url, token } = await serve();
try {
  await openSession('over-http', caller);
  // The service is warm before it is measured.
  for (let call = 0; call < 500; call += 1) await post(url, token, JSON.stringify(callEvent('over-http')));
  const http = [];
  for (let call = 0; call < Number(values.calls); call += 1) {
    const { ms, text, status } = await post(url, token, JSON.stringify(callEvent('over-http')));
    if (status !== 200) throw new Error(`status ${status}: ${text}`);
    requireAllow(text);
    http.push(ms);
  }
  const person = 'a-person';
  await openSession('by-command', { ...caller, actor: 'claude-code', person });
  const idle = join(folder, 'idle.mjs');
  writeFileSync(idle, 'for await (const part of process.stdin) part;\nprocess.stdout.write("{}");\n');
  const hook = [
    main,
    'hook',
    'claude-code',
    '--home',
    home,
    '--project',
    project,
    '--case',
    caller.case,
    '--person',
    person,
  ];
  const [nothing, empty, command] = [[], [], []];
  for (let call = 0; call < Number(values.commands); call += 1) {
    const event = JSON.stringify(callEvent('by-command'));
    nothing.push(costOf(['-e', '0'], ''));
    empty.push(costOf([idle], event));
    const cost = costOf(hook, event);
    requireAllow(cost.stdout);
    command.push(cost);
  }
  const real = (costs) => costs.map(({ ms }) => ms);
  const cpu = (costs) => costs.map((cost) => cost.cpu);
  console.table([
    row('HTTP, ms', http),
    row('node -e 0, ms', real(nothing)),
    row('a hook that does nothing, ms', real(empty)),
    row('turnpike hook, ms', real(command)),
  ]);
  const mean = (numbers) => numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
  const above = mean(cpu(command)) - mean(cpu(nothing));
  const p99 = quantile(real(command), 0.99) / quantile(real(empty), 0.99);
  console.log(`processor time of turnpike hook above node -e 0: ${above.toFixed(1)} ms`);
  console.log(`p99 of turnpike hook: ${p99.toFixed(2)} times that of a hook that does nothing`);
} finally {
  child.kill('SIGTERM');
  for (const loop of busy) loop.kill('SIGKILL');
  await new Promise((done) => child.once('exit', done));
  rmSync(folder, { recursive: true, force: true });
}
