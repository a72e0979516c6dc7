// node test/agents/install-clients.mjs
//
// Installs the coding agents with which Turnpike is tested, each in the version that is pinned here, into a folder of
// its own: `TURNPIKE_AGENTS_CACHE`, or node_modules/.cache/agents. They are no dependencies of the package. What is
// there already is not installed again. No install script of theirs is run.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The package and the version of each client, and where its program is. `node`: whether Node executes the program. */
export const CLIENT_PACKAGES = {
  'claude-code': {
    packages: { '@anthropic-ai/claude-code': '2.1.330' },
    program: `@anthropic-ai/claude-code-${process.platform}-${process.arch}/claude`,
    node: false,
  },
  codex: { packages: { '@openai/codex': '0.169.0' }, program: '@openai/codex/bin/codex.js', node: true },
  'gemini-cli': {
    packages: { '@google/gemini-cli': '0.61.0' },
    program: '@google/gemini-cli/bundle/gemini.js',
    node: true,
  },
  opencode: {
    packages: { 'opencode-ai': '1.18.33' },
    program: `opencode-${process.platform}-${process.arch}/bin/opencode`,
    node: false,
  },
};

export const cacheFolder = () => resolve(process.env.TURNPIKE_AGENTS_CACHE ?? join(ROOT, 'node_modules/.cache/agents'));

/** The words that start a client. */
export const commandOf = (client) => {
  const { program, node } = CLIENT_PACKAGES[client];
  const path = join(cacheFolder(), client, 'node_modules', program);
  return node ? [process.execPath, path] : [path];
};

/** The version of a client. */
export const versionOf = (client) => Object.values(CLIENT_PACKAGES[client].packages)[0];

/** Without this package in its own folder, opencode waits for a download of it. */
const PLUGIN_FOLDER = 'opencode-plugin';
const PLUGIN_PACKAGES = { '@opencode-ai/plugin': '1.18.33' };
export const pluginFolder = () => join(cacheFolder(), PLUGIN_FOLDER);

/** Installs a client unless it is there in its pinned version. Returns whether it had to. */
export function installClient(client) {
  const isNew = installPackages(client, CLIENT_PACKAGES[client].packages);
  if (client === 'opencode') installPackages(PLUGIN_FOLDER, PLUGIN_PACKAGES);
  const program = commandOf(client).at(-1);
  if (!existsSync(program)) throw new Error(`${client} has no program at ${program}`);
  return isNew;
}

export function installPackages(name, packages) {
  const folder = join(cacheFolder(), name);
  if (Object.entries(packages).every(([one, version]) => installedVersion(folder, one) === version)) return false;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: `agents-${name}`, private: true }));
  const wanted = Object.entries(packages).map(([one, version]) => `${one}@${version}`);
  // The native program needs no Node, so what a package says of Node does not count. `npm run` passes on the setting of
  // this checkout.
  const lenient = ['--engine-strict=false', '--ignore-scripts'];
  const options = ['--no-audit', '--no-fund', '--save-exact', '--loglevel=error', ...lenient];
  execFileSync('npm', ['install', ...options, ...wanted], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
  return true;
}

const installedVersion = (folder, name) => {
  const file = join(folder, 'node_modules', name, 'package.json');
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).version : null;
};

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const client of Object.keys(CLIENT_PACKAGES)) {
    const isNew = installClient(client);
    console.log(`${client} ${versionOf(client)}: ${isNew ? 'installed' : 'present'} in ${join(cacheFolder(), client)}`);
  }
}
