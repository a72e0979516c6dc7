// Versions of Node from the registry of packages, in build/node, where a later run finds them. Each version gets a copy
// of this checkout, in which only the SQLite binding is its own: the one that npm chooses for it.

import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../../', import.meta.url)).slice(0, -1);
export const FOLDER = join(ROOT, 'build/node');
/** A version cannot be had here, or its binding cannot be installed. */
export class UnavailableError extends Error {}

export const BINDING = 'better-sqlite3';
/** The package that contains Node for this platform, with its headers. */
const PACKAGE = `node-${process.platform}-${process.arch}`;
/** The line of npm that comes with a line of Node. */
const NPM_OF = { 20: '10', 22: '10', 24: '11' };
/** Of a checkout, this is made, or too large to copy. */
const LEFT_OUT = ['.git', 'build', 'coverage', 'node_modules'];
const HOW = ['--no-audit', '--no-fund', '--loglevel=error'];

/** The program of a version: this one where it is of that version. */
export function nodeOf(version) {
  if (`${process.versions.node}.`.startsWith(`${version}.`)) return process.execPath;
  return packagedNode(version);
}

/** The program of the package of a version, which is fetched if it is not there yet. */
export const packagedNode = (version) => join(fetched(PACKAGE, version), 'bin/node');

/** The file that starts the npm that comes with a version of Node. */
export const npmOf = (version) => join(fetched('npm', NPM_OF[version.split('.')[0]]), 'bin/npm-cli.js');

function fetched(name, version) {
  const folder = join(FOLDER, name === PACKAGE ? version : `${name}-${version}`);
  const found = join(folder, 'node_modules', name);
  if (!existsSync(found)) {
    makePackage(folder);
    run('npm', ['install', '--ignore-scripts', ...HOW, `${name}@${version}`], { cwd: folder });
  }
  return found;
}

/** Makes a folder with the package of an unnamed user. */
export function makePackage(folder) {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n');
}

/** A copy of this checkout whose binding is that of the version; this one where it is. */
export function checkoutFor(version, node) {
  if (node === process.execPath) return ROOT;
  const checkout = join(FOLDER, version, 'checkout');
  rmSync(checkout, { recursive: true, force: true });
  mkdirSync(checkout);
  for (const name of readdirSync(ROOT)) {
    if (!LEFT_OUT.includes(name)) cpSync(join(ROOT, name), join(checkout, name), { recursive: true });
  }
  // Links to the same files: tests write none of them.
  run('cp', ['-al', join(ROOT, 'node_modules'), join(checkout, 'node_modules')], {});
  const at = join(checkout, 'node_modules', BINDING);
  rmSync(at, { recursive: true });
  cpSync(bindingFor(version, node), at, { recursive: true });
  return checkout;
}

/** The folder of the binding that npm chooses for a version: one for each range of package.json. */
function bindingFor(version, node) {
  const range = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).dependencies[BINDING];
  const folder = join(FOLDER, version, `binding-${range.replaceAll(/[^\w.]+/g, '-')}`);
  const found = join(folder, 'node_modules', BINDING);
  if (!existsSync(found)) {
    makePackage(folder);
    run(node, [npmOf(version), 'install', ...HOW, `${BINDING}@${range}`], { cwd: folder, env: environmentOf(node) });
  }
  return found;
}

/**
 * Children that are started as `node` or `npm` are of the same version; what is compiled, is compiled with the headers
 * that came with it.
 */
export function environmentOf(node) {
  const folder = dirname(node);
  return { ...process.env, PATH: `${folder}:${process.env.PATH}`, npm_config_nodedir: dirname(folder) };
}

export function run(command, args, options) {
  const { status, stderr } = spawnSync(command, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'ignore', 'pipe'],
    ...options,
  });
  if (status !== 0) throw new UnavailableError(`${command} ${args.join(' ')} ended with ${status}: ${stderr}`);
}
