// Which process this is, so that another process of the same host can prove that it is dead: a process id alone is used
// again.

import { readFileSync, readlinkSync } from 'node:fs';

/** A process of a host. */
export interface ProcessIdentity {
  /** The boot of the kernel and the namespace of the process ids; unknown hosts differ from each other. */
  readonly host: string;
  readonly pid: number;
  /** When the process started, in ticks of the kernel; empty if unknown. */
  readonly started: string;
}

/** The identity of this process. */
export function ownIdentity(): ProcessIdentity {
  const { pid } = process;
  return { host: hostOf(), pid, started: startOf(pid) ?? '' };
}

/** Whether a process is known to have ended. False if that cannot be known: it may run on another host. */
export function isKnownDead({ host, pid, started }: ProcessIdentity): boolean {
  if (started === '' || host !== hostOf()) return false;
  const now = startOf(pid);
  return now === null || now !== started;
}

function hostOf(): string {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return `${boot} ${readlinkSync('/proc/self/ns/pid')}`;
  } catch {
    return '';
  }
}

/** The start time of a process; null if there is no such process. @throws if the system does not tell */
function startOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name of the program is in parentheses and may contain anything; the start is the 20th field after it.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' ? null : (fields[19] ?? null);
  } catch {
    return null;
  }
}
