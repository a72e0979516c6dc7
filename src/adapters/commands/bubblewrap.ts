// The wall around a command, made by bubblewrap from namespaces of the Linux kernel.
//
//   B1. What is not put in does not exist inside: no other case, no home, no network, no process of this machine.
//   B2. The case's folder, an empty home and an empty temporary folder can be written; nothing else can.
//   B3. It has no capability, can gain none, and ends with whoever started it.
//   B4. It stays in the process group that it was started in, so that killing the group ends all that is inside: the
//       first process of a PID namespace takes the others with it. `--new-session` would take that one out of the
//       group; a command has no terminal to type into anyway, since its group was started in a session of its own.
//
// Behind it, a command can read what the folders below hold, if its user may: a service should not run as root.

import { execFile } from 'node:child_process';
import { lstatSync, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';

const PROBE_MS_MAX = 10_000;

/** Where systems keep programs, and what programs need. */
const SYSTEM_FOLDERS = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/etc', '/opt', '/nix/store'];

/** What is put behind a wall. All are paths of the host but those that say otherwise. */
export interface Wall {
  /** The folder of the case: `/sandbox` inside. */
  readonly sandbox: string;
  /** Folders that are empty: inside, `WALLED_HOME` and `WALLED_TEMP`. */
  readonly home: string;
  readonly temp: string;
  /** Where it begins, as a path inside. */
  readonly cwd: string;
  /** Folders among the system's that look empty, but for what is shown of them. */
  readonly homes: readonly string[];
  /** Folders to be read besides the system's, at their own paths. */
  readonly shown: readonly string[];
  /** Folders among all these that look empty. */
  readonly hidden: readonly string[];
}

export type WallView = Pick<Wall, 'homes' | 'shown' | 'hidden'>;

export const WALLED_HOME = '/home';
export const WALLED_TEMP = '/tmp';

/** The arguments with which `bwrap` runs `argv` behind a wall. */
export function wallArguments(wall: Wall, argv: readonly string[]): readonly string[] {
  const read = (path: string) => ['--ro-bind-try', path, path];
  const empty = (path: string) => ['--tmpfs', path];
  // Last of all, since what is shown or hidden may need a place made for it.
  const close = (path: string) => ['--remount-ro', path];
  return [
    ...['--unshare-all', '--die-with-parent', '--cap-drop', 'ALL'],
    ...SYSTEM_FOLDERS.flatMap(read),
    ...wall.homes.flatMap(empty),
    ...['--bind', wall.home, WALLED_HOME, '--bind', wall.temp, WALLED_TEMP],
    ...wall.shown.flatMap(read),
    ...wall.hidden.flatMap(empty),
    ...['--bind', wall.sandbox, '/sandbox', '--proc', '/proc', '--dev', '/dev'],
    // Of /proc, too: what root may write there without any capability leads out, `sys/kernel/core_pattern` for one.
    ...[...wall.homes, ...wall.hidden, '/proc', '/'].flatMap(close),
    ...['--chdir', wall.cwd, '--', ...argv],
  ];
}

/** Whether `bwrap` runs a program behind this wall: it is asked to run one. */
export const isWallUsable = (wall: Wall, env: Readonly<Record<string, string>>): Promise<boolean> =>
  new Promise((settle) => {
    const options = { env, timeout: PROBE_MS_MAX, killSignal: 'SIGKILL' } as const;
    execFile('bwrap', wallArguments(wall, ['true']), options, (error) => settle(error === null));
  });

/** What of the system is seen through a wall: `folders` are shown, and nothing of `hidden` is. */
export function wallViewOf(folders: readonly string[], hidden: readonly string[]): WallView {
  const own = [dirname(process.execPath), join(dirname(process.execPath), '../lib/node_modules')].flatMap(realFolder);
  const shown = unique([...own.filter((path) => !isIn(homedir(), path)), ...folders.flatMap(realFolder)]);
  const system = SYSTEM_FOLDERS.flatMap(realFolder);
  const homes = [homedir()].flatMap(realFolder).filter((home) => system.some((place) => isIn(home, place)));
  const masked = unique(hidden.flatMap(realFolder)).filter((path) =>
    [...system, ...shown].some((place) => isIn(path, place)),
  );
  return { homes, shown, hidden: masked.filter((path) => !masked.some((one) => one !== path && isIn(path, one))) };
}

const unique = (paths: readonly string[]): readonly string[] => [...new Set(paths)];

/** The folder that a path leads to, if there is one. */
function realFolder(path: string): readonly string[] {
  try {
    const real = realpathSync(path);
    return lstatSync(real).isDirectory() ? [real] : [];
  } catch {
    return [];
  }
}

const isIn = (path: string, folder: string): boolean => path === folder || path.startsWith(`${folder}/`);
