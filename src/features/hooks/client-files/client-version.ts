// Finds out which version of a client is installed. A hook does this while the client waits, so the file of the package
// is read first, and the program is started only if that file does not exist.

import { execFile } from 'node:child_process';
import { readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { basename, delimiter, dirname, isAbsolute, join } from 'node:path';
import { readJson } from '../../../core/contract/json.js';
import { readRegularSync } from '../../../system/files/open-file.js';
import type { ClientNames } from '../clients/client-names.js';

/** The programs of a client, and the packages that have them. A package of one platform has a longer name. */
type ClientPrograms = Pick<ClientNames, 'programs' | 'packages'>;

const SPAWN_MS_MAX = 900;
const OUTPUT_BYTES_MAX = 65_536;
const PACKAGE_BYTES_MAX = 262_144;
/** How many folders above a program its package.json may be. */
const FOLDERS_MAX = 6;
/** How many processes above this one may be the client. */
const ANCESTORS_MAX = 8;
const VERSION = /\d{1,9}\.\d{1,9}\.\d{1,9}(?:-(?:alpha|beta|rc|next|dev|preview|nightly)[0-9A-Za-z.]{0,20})?/;

/**
 * The version of the client that has started this process, else of the one on the path.
 * @returns null if it cannot be found out within a second
 */
export async function findClientVersion(
  names: ClientPrograms,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<string | null> {
  const [program] = [...ancestorsOf(names), ...onPath(names, environment)];
  if (program === undefined) return null;
  return versionOfFolder(program) ?? versionOfPackage(program, names) ?? (await askProgram(program, environment));
}

/** The path of a client's program without links; null if it is not on the path. */
export const findProgram = (
  names: ClientPrograms,
  environment: Readonly<Record<string, string | undefined>>,
): string | null => onPath(names, environment)[0] ?? null;

function onPath(
  { programs }: ClientPrograms,
  environment: Readonly<Record<string, string | undefined>>,
): readonly string[] {
  const folders = (environment['PATH'] ?? '').split(delimiter).filter(isAbsolute).slice(0, 256);
  return folders.flatMap((folder) => programs.flatMap((name) => realPath(join(folder, name)) ?? []));
}

/** Programs of the client among the processes above this one. Linux only. */
function ancestorsOf(names: ClientPrograms): readonly string[] {
  const found: string[] = [];
  let pid = process.ppid;
  for (let level = 0; level < ANCESTORS_MAX && pid > 1; level += 1) {
    try {
      const program = readlinkSync(`/proc/${pid}/exe`);
      const [, script = ''] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
      const real = basename(program) === 'node' ? realPath(script) : program;
      if (real !== null && isOf(real, names)) found.push(real);
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      pid = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
    } catch {
      break;
    }
  }
  return found;
}

const isOf = (program: string, names: ClientPrograms): boolean =>
  names.programs.includes(basename(program).replace(/\.exe$/, '')) ||
  VERSIONED.test(program) ||
  versionOfPackage(program, names) !== null;

/** The installer of Claude Code names the program after its version. */
const VERSIONED = /\/claude\/versions\/(\d{1,9}\.\d{1,9}\.\d{1,9})$/;
const versionOfFolder = (program: string): string | null => VERSIONED.exec(program)?.[1] ?? null;

function versionOfPackage(program: string, { packages }: ClientPrograms): string | null {
  let folder = dirname(program);
  for (let level = 0; level < FOLDERS_MAX; level += 1, folder = dirname(folder)) {
    try {
      const text = readRegularSync(join(folder, 'package.json'), PACKAGE_BYTES_MAX).toString('utf8');
      const { name, version } = readJson(text) as Readonly<Record<string, unknown>>;
      const isNamed = packages.some((known) => name === known || String(name).startsWith(`${known}-`));
      return isNamed && typeof version === 'string' ? (VERSION.exec(version)?.[0] ?? null) : null;
    } catch {
      // This folder has no package.json.
    }
  }
  return null;
}

function askProgram(
  program: string,
  { PATH = '', HOME = '' }: Readonly<Record<string, string | undefined>>,
): Promise<string | null> {
  const options = {
    timeout: SPAWN_MS_MAX,
    killSignal: 'SIGKILL',
    maxBuffer: OUTPUT_BYTES_MAX,
    cwd: '/',
    env: { PATH, HOME, DISABLE_AUTOUPDATER: '1' },
  } as const;
  return new Promise((done) => {
    const child = execFile(program, ['--version'], options, (error, stdout) => {
      clearTimeout(timer);
      done(error === null ? (VERSION.exec(stdout)?.[0] ?? null) : null);
    });
    child.on('error', () => done(null));
    child.stdin?.end();
    // A process that it has started may keep the output open.
    const timer = setTimeout(() => done(null), SPAWN_MS_MAX + 100);
  });
}

function realPath(path: string): string | null {
  try {
    return realpathSync(path);
  } catch {
    return null;
  }
}
