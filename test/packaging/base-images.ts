// Base images for the Dockerfile where no registry of images can be reached: made of files of this machine, and of the
// Node that the Dockerfile names. The base of the build has a shell and npm. The base of the image has Node and its
// libraries, and no shell.

import { cpSync, existsSync, mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ROOT } from '../root.js';
import { outputOf } from './programs.js';

const BUILD_PROGRAMS = ['sh', 'env', 'mkdir', 'mv', 'rm'];
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';

/** Where the build finds the cache of npm; a cold one only takes longer. */
export const NPM_CACHE = '/npm-cache';

/** The file system of the image's base: no shell and no other program. */
export function makeBase(root: string): void {
  copyProgram('node', packagedNode(), root);
  for (const folder of ['etc', 'proc', 'dev', 'tmp', 'var/lib']) mkdirSync(join(root, folder), { recursive: true });
}

/** The file system of the build's base. */
export function makeBuildBase(root: string): void {
  makeBase(root);
  for (const name of BUILD_PROGRAMS) copyProgram(name, pathOf(name), root);
  symlinkSync('usr/bin', join(root, 'bin'));
  const npm = dirname(dirname(realpathSync(pathOf('npm'))));
  cpSync(npm, join(root, 'usr/lib/node_modules/npm'), { recursive: true });
  symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', join(root, 'usr/bin/npm'));
  put(root, 'etc/passwd', 'root:x:0:0:root:/root:/bin/sh\n');
  const settings = ['prefer-offline=true', `cache=${NPM_CACHE}`, 'fetch-retries=1', 'update-notifier=false'];
  if (existsSync(CERTIFICATES)) {
    put(root, CERTIFICATES, readFileSync(CERTIFICATES));
    settings.push(`cafile=${CERTIFICATES}`);
  }
  put(root, 'usr/etc/npmrc', `${settings.join('\n')}\n`);
}

const pathOf = (name: string): string => outputOf('sh', ['-c', `command -v ${name}`]).trim();

/** The Node of the version that the Dockerfile names, from the registry of packages. */
function packagedNode(): string {
  const [, version = ''] = /^ARG BASE=node:(\d+)/m.exec(readFileSync(join(ROOT, 'Dockerfile'), 'utf8')) ?? [];
  const checkouts = JSON.stringify(join(ROOT, 'test/node/checkouts.mjs'));
  const program = `import(${checkouts}).then(({ packagedNode }) => console.log(packagedNode('${version}')))`;
  return outputOf(process.execPath, ['--eval', program]).trim();
}

/** Copies a program, with the libraries that the loader would find. */
function copyProgram(name: string, found: string, root: string): void {
  const libraries = outputOf('ldd', [realpathSync(found)]).match(/\/[^ )]+/g) ?? [];
  for (const path of libraries) put(root, path, readFileSync(path), 0o755);
  put(root, join('usr/bin', name), readFileSync(found), 0o755);
}

function put(root: string, path: string, content: string | Uint8Array, mode = 0o644): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), content, { mode });
}
