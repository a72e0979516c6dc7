// The environment of a command. The command inherits no variable and no descriptor of this process.

import { readdirSync, readFileSync } from 'node:fs';
import { delimiter, dirname } from 'node:path';

const SYSTEM_PROGRAMS = ['/usr/local/bin', '/usr/bin', '/bin', '/usr/local/sbin', '/usr/sbin', '/sbin'];
/** The flag with which the kernel reports that a descriptor is closed on exec. */
const CLOSE_ON_EXEC = 0o2000000;
/** The command gets 0 to 2; 3 is the pipe on which the launcher reports that it begins. */
const FIRST_INHERITABLE = 4;

/** The search path for programs: `programs`, the directory of Node, the directories of the system. */
export const programPath = (programs: readonly string[]): string =>
  [...new Set([...programs, dirname(process.execPath), ...SYSTEM_PROGRAMS])].join(delimiter);

export const environmentOf = (path: string, home: string, temp: string): Readonly<Record<string, string>> => ({
  PATH: path,
  HOME: home,
  TMPDIR: temp,
  LANG: 'C.UTF-8',
  TZ: 'UTC',
});

/**
 * The descriptors of this process that a program would inherit. Node marks its own as close-on-exec. Others come from
 * the process that started this one, or from a library that does not mark them.
 */
export function strayDescriptors(): readonly number[] {
  if (process.platform !== 'linux') return [];
  const open = readdirSync('/proc/self/fd').map(Number);
  return open.filter((fd) => fd >= FIRST_INHERITABLE && isInherited(fd));
}

function isInherited(fd: number): boolean {
  try {
    const flags = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1'))?.[1];
    return flags !== undefined && (parseInt(flags, 8) & CLOSE_ON_EXEC) === 0;
  } catch {
    // It was the descriptor of the directory listing.
    return false;
  }
}
