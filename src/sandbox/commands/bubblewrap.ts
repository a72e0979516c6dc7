// The wall around a command: bubblewrap isolates it with namespaces of the Linux kernel.
//
//   B1. What is not mounted does not exist inside: no other case, no home, no network, no process of the host.
//   B2. Only the folder of the case, an empty home and an empty temporary folder are writable.
//   B3. The command has no capability, can gain none, and ends with the process that started it.
//   B4. The command stays in the process group in which it was started, so that killing the group ends everything
//       inside: the first process of a PID namespace takes the others with it. `--new-session` would move that process
//       to another group. It is not needed, because the group has its own session and so no terminal.
//
// Behind the wall, a command can read the folders below if its user may: a service should not run as root.

import { execFile } from 'node:child_process';
import { lstatSync, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';

const PROBE_MS_MAX = 10_000;

/** Directories in which systems store programs and their dependencies. */
const SYSTEM_FOLDERS = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/etc', '/opt', '/nix/store'];

/** The mounts of a wall. All paths are paths of the host unless stated otherwise. */
export interface Wall {
  /** The folder of the case; mounted as `/sandbox`. */
  readonly sandbox: string;
  /** Empty folders; mounted as `WALLED_HOME` and `WALLED_TEMP`. */
  readonly home: string;
  readonly temp: string;
  /** The working directory, as a path inside. */
  readonly cwd: string;
  /** Folders inside system directories that appear empty, except for what `shown` mounts in them. */
  readonly homes: readonly string[];
  /** Further folders that are readable at their own paths. */
  readonly shown: readonly string[];
  /** Folders inside all of these that appear empty. */
  readonly hidden: readonly string[];
}

export type WallView = Pick<Wall, 'homes' | 'shown' | 'hidden'>;

export const WALLED_HOME = '/home';
export const WALLED_TEMP = '/tmp';

/** The arguments with which `bwrap` runs `argv` behind a wall. */
export function wallArguments(wall: Wall, argv: readonly string[]): readonly string[] {
  const read = (path: string) => ['--ro-bind-try', path, path];
  const empty = (path: string) => ['--tmpfs', path];
  // Last of all, because mounting what is shown or hidden may create a mount point there.
  const close = (path: string) => ['--remount-ro', path];
  return [
    ...['--unshare-all', '--die-with-parent', '--cap-drop', 'ALL'],
    ...SYSTEM_FOLDERS.flatMap(read),
    ...wall.homes.flatMap(empty),
    ...['--bind', wall.home, WALLED_HOME, '--bind', wall.temp, WALLED_TEMP],
    ...wall.shown.flatMap(read),
    ...wall.hidden.flatMap(empty),
    ...['--bind', wall.sandbox, '/sandbox', '--proc', '/proc', '--dev', '/dev'],
    // Also /proc: root can write some of its files without capabilities and so escape, for example `core_pattern`.
    ...[...wall.homes, ...wall.hidden, '/proc', '/'].flatMap(close),
    ...['--chdir', wall.cwd, '--', ...argv],
  ];
}

/** Whether `bwrap` can run a program behind this wall; runs `true` to find out. */
export const isWallUsable = (wall: Wall, env: Readonly<Record<string, string>>): Promise<boolean> =>
  new Promise((settle) => {
    const options = { env, timeout: PROBE_MS_MAX, killSignal: 'SIGKILL' } as const;
    execFile('bwrap', wallArguments(wall, ['true']), options, (error) => settle(error === null));
  });

/** Which paths of the host a wall shows: `folders` are readable, and `hidden` appear empty. */
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

/** The directory that a path resolves to, or nothing. */
function realFolder(path: string): readonly string[] {
  try {
    const real = realpathSync(path);
    return lstatSync(real).isDirectory() ? [real] : [];
  } catch {
    return [];
  }
}

const isIn = (path: string, folder: string): boolean => path === folder || path.startsWith(`${folder}/`);
