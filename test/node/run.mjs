// Runs the tests on several versions of Node: `npm run test:node -- [VERSION...] [-- JEST-ARGUMENTS]`, by default on
// 20, 22 and 24. Node comes from the registry of packages, into build/node, where a later run finds it. Each version
// gets a copy of this checkout, in which only the SQLite binding is its own, compiled with the headers that came with
// it.

import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const FOLDER = join(ROOT, 'build/node');
/** A version cannot be had here, or its binding cannot be compiled. */
class UnavailableError extends Error {}

const VERSIONS = ['20', '22', '24'];
const BINDING = 'better-sqlite3';
/**
 * The headers with which the binding is compiled, where not those of the version itself. Since 24.19, `ObjectWrap` of
 * the headers aborts a process whose garbage collector finds an object of the binding while no context is entered.
 * Bindings that were compiled before are not affected.
 */
const HEADERS = { 24: '24.18.1' };
/** The package that contains Node for this platform, with its headers. */
const PACKAGE = `node-${process.platform}-${process.arch}`;
/** Of a checkout, this is made, or too large to copy. */
const LEFT_OUT = ['.git', 'build', 'coverage', 'node_modules'];

const argv = process.argv.slice(2);
const end = argv.includes('--') ? argv.indexOf('--') : argv.length;
const versions = end === 0 ? VERSIONS : argv.slice(0, end);

let failed = false;
for (const version of versions) {
  try {
    const { line, isOk } = runTests(version, argv.slice(end + 1));
    console.log(line);
    failed ||= !isOk;
  } catch (error) {
    if (!(error instanceof UnavailableError)) throw error;
    console.log(`node ${version}: skipped: ${error.message.split('\n')[0]}`);
  }
}
process.exitCode = failed ? 1 : 0;

/** Runs the tests on a version. @throws UnavailableError */
function runTests(version, args) {
  const node = nodeOf(version);
  const checkout = checkoutFor(version, node);
  const results = join(FOLDER, version, 'results.json');
  rmSync(results, { force: true });
  const jest = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning', 'node_modules/jest/bin/jest.js'];
  const which = ['--selectProjects', 'tests', '--ci', '--json', `--outputFile=${results}`];
  const { status } = spawnSync(node, [...jest, ...which, ...args], {
    cwd: checkout,
    env: environmentOf(node),
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const exact = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim().slice(1);
  if (!existsSync(results)) return { line: `node ${exact}: jest ended with ${status} and no results`, isOk: false };
  const found = JSON.parse(readFileSync(results, 'utf8'));
  const broken = found.testResults.filter((suite) => suite.status === 'failed').map(({ name }) => name);
  const counts = `${found.numPassedTests} passed, ${found.numFailedTests} failed, ${found.numPendingTests} skipped`;
  const suites = broken.map((name) => `\n  ${name.slice(checkout.length + 1)}`).join('');
  return { line: `node ${exact}: ${counts}${suites}`, isOk: status === 0 };
}

/** The program of a version: this one where it is of that version. */
function nodeOf(version) {
  if (`${process.versions.node}.`.startsWith(`${version}.`)) return process.execPath;
  return packagedNode(version);
}

/** The program of the package of a version, which is fetched if it is not there yet. */
function packagedNode(version) {
  const folder = join(FOLDER, version);
  const found = join(folder, 'node_modules', PACKAGE, 'bin/node');
  if (!existsSync(found)) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'package.json'), '{ "private": true }\n');
    const how = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
    run('npm', ['install', ...how, `${PACKAGE}@${version}`], { cwd: folder });
  }
  return found;
}

/** A copy of this checkout whose binding is that of the version; this one where it is. */
function checkoutFor(version, node) {
  if (node === process.execPath) return ROOT.slice(0, -1);
  const checkout = join(FOLDER, version, 'checkout');
  rmSync(checkout, { recursive: true, force: true });
  mkdirSync(checkout);
  for (const name of readdirSync(ROOT)) {
    if (!LEFT_OUT.includes(name)) cpSync(join(ROOT, name), join(checkout, name), { recursive: true });
  }
  // Links to the same files: tests write none of them.
  run('cp', ['-al', join(ROOT, 'node_modules'), join(checkout, 'node_modules')], {});
  const at = join('node_modules', BINDING);
  rmSync(join(checkout, at), { recursive: true });
  cpSync(join(ROOT, at), join(checkout, at), { recursive: true });
  const file = join(checkout, at, 'build/Release/better_sqlite3.node');
  const { version: of } = JSON.parse(readFileSync(join(checkout, at, 'package.json'), 'utf8'));
  const compiled = join(FOLDER, version, `${BINDING}-${of}.node`);
  if (!existsSync(compiled)) {
    const headers = {
      npm_config_build_from_source: 'true',
      npm_config_nodedir: dirname(dirname(headersOf(version, node))),
    };
    run('npm', ['rebuild', BINDING], { cwd: checkout, env: { ...environmentOf(node), ...headers } });
    cpSync(file, compiled);
  }
  cpSync(compiled, file);
  return checkout;
}

/** The program next to whose folder the headers are. */
function headersOf(version, node) {
  return HEADERS[version] === undefined ? node : packagedNode(HEADERS[version]);
}

/** Children that are started as `node` or `npm` are of the same version. */
function environmentOf(node) {
  return { ...process.env, PATH: `${dirname(node)}:${process.env.PATH}` };
}

function run(command, args, options) {
  const { status, stderr } = spawnSync(command, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'ignore', 'pipe'],
    ...options,
  });
  if (status !== 0) throw new UnavailableError(`${command} ${args.join(' ')} ended with ${status}: ${stderr}`);
}
