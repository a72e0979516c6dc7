// What a command gets from us: an environment that is made for it. Nothing of our own is handed on, neither a variable
// nor a descriptor.

import { readdirSync, readFileSync } from 'node:fs';
import { delimiter, dirname } from 'node:path';

const SYSTEM_PROGRAMS = ['/usr/local/bin', '/usr/bin', '/bin', '/usr/local/sbin', '/usr/sbin', '/sbin'];
/** The flag with which the kernel shows that a descriptor is closed when a program takes over. */
const CLOSE_ON_EXEC = 0o2000000;
/** 0 to 2 are given to it, 3 is how it says that it has begun. */
const FIRST_INHERITABLE = 4;

/** The folders in which programs are looked for: Node's, `programs`, the system's. */
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
 * The descriptors of this process that a program would inherit. Node marks its own as not to be inherited; these came
 * from whoever started this process, or from a library that does not mark them.
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
    // It was the listing's own.
    return false;
  }
}
