// Runs as root in the container of unit.nightly.test.ts, next to the service of the unit, and reports what it finds as
// JSON.

import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

const COMMAND = '/opt/turnpike/node_modules/.bin/turnpike';
const MS_MAX = 60_000;
const report = {};

/** The values of properties of the unit. */
function properties(...names) {
  const text = execFileSync('systemctl', ['show', 'turnpike', ...names.map((name) => `--property=${name}`)], {
    encoding: 'utf8',
  });
  return Object.fromEntries(
    text
      .trim()
      .split('\n')
      .map((line) => line.split(/=(.*)/)),
  );
}

const asUser = (...args) =>
  execFileSync('setpriv', ['--reuid=turnpike', '--regid=turnpike', '--init-groups', COMMAND, ...args], {
    cwd: '/var/lib/turnpike',
    encoding: 'utf8',
    env: { ...process.env, HOME: '/var/lib/turnpike' },
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim();

async function until(what, isTrue) {
  const end = Date.now() + MS_MAX;
  while (!(await isTrue())) {
    if (Date.now() > end) throw new Error(`not within ${MS_MAX} ms: ${what}`);
    await setTimeout(100);
  }
}

const isReady = () =>
  fetch('http://127.0.0.1:9090/readyz').then(
    ({ ok }) => ok,
    () => false,
  );

async function callApi(path, token, body) {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const url = `http://127.0.0.1:7391/api/v1${path}`;
  return (await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })).json();
}

async function probe() {
  // Without a home directory, the service ended as wrong usage.
  await until('the end of the first start', () => properties('ActiveState').ActiveState === 'failed');
  report.withoutHome = properties('ExecMainStatus', 'NRestarts', 'Result');

  asUser('init', '--template', 'reference');
  const token = asUser('token', '--actor', 'reporter', '--role', 'SANDBOX_AGENT', '--right', 'act');
  execFileSync('systemctl', ['start', 'turnpike']);
  await until('ready', isReady);
  const { run_id } = await callApi('/agents', token, { case: 'case-0001' });
  const head = { schema_version: '1.0.0', id: crypto.randomUUID(), reasoning: 'A note.', action: 'WRITE_FILE' };
  const proposal = { ...head, args: { path: '/sandbox/note.md', content: 'Hello.' } };
  report.outcome = (await callApi(`/agents/${run_id}/steps`, token, proposal)).outcome;

  const { MainPID } = properties('MainPID');
  const status = readFileSync(`/proc/${MainPID}/status`, 'utf8');
  const field = (name) => new RegExp(`^${name}:\\s*(\\S+)`, 'm').exec(status)?.[1];
  report.process = {
    isRoot: field('Uid') === '0',
    capabilities: field('CapBnd'),
    noNewPrivileges: field('NoNewPrivs'),
    seccomp: field('Seccomp'),
    // Its own view: where it could write.
    writable: spawnSync('nsenter', ['--target', MainPID, '--mount', 'sh', '-c', WRITABLE], { encoding: 'utf8' })
      .stdout.trim()
      .split('\n'),
  };
  report.modes = readdirSync('/var/lib/turnpike').toSorted();

  execFileSync('systemctl', ['kill', '--signal=SIGKILL', 'turnpike']);
  await until('restarted', () => properties('NRestarts').NRestarts === '1');
  await until('ready again', isReady);
  execFileSync('systemctl', ['stop', 'turnpike']);
  report.stopped = properties('ExecMainStatus', 'ExecMainCode', 'Result', 'ActiveState');
  report.verified = asUser('ledger', 'verify').replace(/:.*/, '');
}

/** The file systems that are not mounted read-only in the namespace of the service. */
const WRITABLE = `while read -r _ _ _ _ to how _; do case "$how" in rw,*|rw) echo "$to";; esac; done < /proc/self/mountinfo`;

try {
  await probe();
} catch (error) {
  report.error = String(error.stack);
  report.journal = execFileSync('journalctl', ['--unit=turnpike', '--no-pager', '--lines=40'], { encoding: 'utf8' });
}
writeFileSync('/report/report.json', JSON.stringify(report));
execFileSync('systemctl', ['exit', report.error === undefined ? '0' : '1']);
