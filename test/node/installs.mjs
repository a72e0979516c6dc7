// Installs the packed package as its users do, on several versions of Node, each with the npm that comes with it:
// `npm run campaign -- installs [VERSION...]`, by default on 20, 22 and 24. From 22 on there is no compiler, no make
// and no Python. Each installation initialises a home directory, runs, verifies and replays it, and then opens, uses
// and collects 10,000 databases (databases.mjs). Ends with exit code 1 after a failure.

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { BINDING, FOLDER, makePackage, npmOf, packagedNode, ROOT } from './checkouts.mjs';

const WORK = join(FOLDER, 'installs');
const DATABASES = fileURLToPath(new URL('databases.mjs', import.meta.url));
const COUNT = 10_000;
/** What npm needs of a system; a compiler needs far more. */
const PLAIN_PROGRAMS = ['sh', 'env', 'uname'];
/** The version of Node on which line 13 of the binding can be loaded. */
const NODE_OF_13 = 22;
const STEPS = [
  ['init', '--template', 'documents'],
  ['run', 'proposals.jsonl'],
  ['ledger', 'verify'],
  ['replay'],
  // A ledger that was never backed up, or a root user, is worth a note, and no problem.
  ['doctor'],
];

const versions = process.argv.slice(2);
rmSync(WORK, { recursive: true, force: true });
mkdirSync(WORK, { recursive: true });
const archive = pack();
let failures = 0;
for (const version of versions.length > 0 ? versions : ['20', '22', '24']) {
  try {
    campaign(version);
  } catch (error) {
    failures += 1;
    console.log(`node ${version}: FAILED: ${error.message}`);
  }
}
console.log(`${failures} failures`);
process.exitCode = failures > 0 ? 1 : 0;

function campaign(version) {
  const isNew = Number(version.split('.')[0]) >= NODE_OF_13;
  const machine = makeMachine(version, !isNew);
  const folder = join(WORK, version);
  makePackage(folder);
  const started = performance.now();
  npm(machine, folder, ['install', archive]);
  const seconds = ((performance.now() - started) / 1_000).toFixed(1);
  const binding = bindingIn(folder);
  if (binding.startsWith('13.') !== isNew) throw new Error(`npm installed ${BINDING} ${binding}`);
  const compiler = isNew ? 'without a compiler' : 'with a compiler';
  console.log(`node ${machine.exact}, npm ${machine.npm}: ${BINDING} ${binding}, ${seconds} s ${compiler}`);
  const work = join(folder, 'work');
  mkdirSync(work);
  for (const args of STEPS) {
    const { status, stdout, stderr } = turnpike(machine, folder, work, args);
    if (status !== 0) throw new Error(`turnpike ${args.join(' ')} ended with ${status}: ${stdout}${stderr}`);
  }
  console.log(`  init, run, ledger verify, replay and doctor: exit code 0`);
  const used = spawnSync(machine.node, [DATABASES, folder, String(COUNT)], { encoding: 'utf8', env: machine.env });
  if (used.status !== 0) throw new Error(`databases ended with ${used.status ?? used.signal}: ${used.stderr}`);
  console.log(`  ${used.stdout.trim()}`);
  if (isNew) updateOldLock(machine, version);
  else refuseOtherLine(machine, folder, work);
}

/** Another package manager, or a lock file, brings line 13 to a version of Node that it would crash. */
function refuseOtherLine(machine, folder, work) {
  npm(machine, folder, ['install', '--no-save', '--engine-strict=false', `${BINDING}@13`]);
  const { status, stderr } = turnpike(machine, folder, work, ['ledger', 'verify']);
  if (status !== 3 || !/crashes Node/.test(stderr)) throw new Error(`with line 13: ${status ?? 'killed'}: ${stderr}`);
  console.log(`  with ${BINDING} ${bindingIn(folder)}: refused with exit code 3`);
}

/** A lock file that was made on Node 20 keeps its version, until it is updated as the documents say. */
function updateOldLock(machine, version) {
  const folder = join(WORK, `${version}-lock`);
  makePackage(folder);
  const older = makeMachine('20', true);
  npm(older, folder, ['install', '--ignore-scripts', archive]);
  const locked = bindingIn(folder);
  rmSync(join(folder, 'node_modules'), { recursive: true });
  npm(machine, folder, ['ci', '--ignore-scripts']);
  if (bindingIn(folder) !== locked) throw new Error(`npm ci did not install ${locked}`);
  npm(machine, folder, ['update', BINDING]);
  if (!bindingIn(folder).startsWith('13.')) throw new Error(`npm update left ${bindingIn(folder)}`);
  console.log(`  a lock file of Node 20 has ${locked}; npm update ${BINDING} installs ${bindingIn(folder)}`);
}

/** Node, its npm, and of the system only what an installation may use. */
function makeMachine(version, withCompiler) {
  const node = packagedNode(version);
  const programs = join(WORK, `programs-${version}`);
  if (!existsSync(programs)) {
    mkdirSync(programs);
    symlinkSync(node, join(programs, 'node'));
    for (const name of PLAIN_PROGRAMS) symlinkSync(outputOf('sh', ['-c', `command -v ${name}`]), join(programs, name));
    // npm of this line, for children too.
    writeFileSync(join(programs, 'npm'), `#!/bin/sh\nexec node ${npmOf(version)} "$@"\n`, { mode: 0o755 });
  }
  const path = withCompiler ? `${programs}:${process.env.PATH}` : programs;
  const env = { ...process.env, PATH: path, npm_config_nodedir: dirname(dirname(node)) };
  if (!withCompiler) {
    for (const name of ['g++', 'cc', 'make', 'python3']) {
      if (spawnSync('sh', ['-c', `command -v ${name}`], { env }).status === 0) throw new Error(`there is ${name}`);
    }
  }
  return {
    node,
    env,
    exact: outputOf(node, ['--version']).slice(1),
    npm: outputOf(node, [npmOf(version), '--version']),
  };
}

function npm(machine, folder, args) {
  const { status, stdout, stderr } = spawnSync('npm', [...args, '--no-audit', '--no-fund'], {
    cwd: folder,
    env: machine.env,
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`npm ${args.join(' ')} ended with ${status}: ${stdout}${stderr}`);
}

function turnpike(machine, folder, cwd, args) {
  const main = join(folder, 'node_modules/turnpike/dist/src/interfaces/cli/main.js');
  return spawnSync(machine.node, [main, ...args], { cwd, env: machine.env, encoding: 'utf8' });
}

function bindingIn(folder) {
  return JSON.parse(readFileSync(join(folder, 'node_modules', BINDING, 'package.json'), 'utf8')).version;
}

function pack() {
  spawnSync('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', WORK], { cwd: ROOT });
  return join(
    WORK,
    readdirSync(WORK).find((name) => name.endsWith('.tgz')),
  );
}

function outputOf(command, args) {
  return spawnSync(command, args, { encoding: 'utf8' }).stdout.trim();
}
