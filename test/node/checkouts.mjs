// Versions of Node from the registry of packages, in build/node, where a later run finds them. Each version gets a copy
// of this checkout, in which only the SQLite binding is its own, compiled with the headers that came with it.

import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
export const FOLDER = join(ROOT, 'build/node');
/** A version cannot be had here, or its binding cannot be compiled. */
export class UnavailableError extends Error {}

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

/** The program of a version: this one where it is of that version. */
export function nodeOf(version) {
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
export function checkoutFor(version, node) {
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
export function environmentOf(node) {
  return { ...process.env, PATH: `${dirname(node)}:${process.env.PATH}` };
}

export function run(command, args, options) {
  const { status, stderr } = spawnSync(command, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'ignore', 'pipe'],
    ...options,
  });
  if (status !== 0) throw new UnavailableError(`${command} ${args.join(' ')} ended with ${status}: ${stderr}`);
}
