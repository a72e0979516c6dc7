// A clock that a test sets for one process: a library in front of the system's own functions for the time of day. The
// clock that cannot be set stays as it is, as on a machine whose clock was set.

import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

const SOURCE = `#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long offset(void) {
  const char *path = getenv("TURNPIKE_TEST_CLOCK");
  char text[32] = {0};
  int file = path ? open(path, O_RDONLY) : -1;
  if (file < 0) return 0;
  if (read(file, text, sizeof text - 1) < 0) text[0] = 0;
  close(file);
  return atol(text);
}

int gettimeofday(struct timeval *at, void *zone) {
  static int (*real)(struct timeval *, void *);
  if (!real) real = dlsym(RTLD_NEXT, "gettimeofday");
  int status = real(at, zone);
  if (status == 0) at->tv_sec += offset();
  return status;
}

int clock_gettime(clockid_t clock, struct timespec *at) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  int status = real(clock, at);
  if (status == 0 && clock == CLOCK_REALTIME) at->tv_sec += offset();
  return status;
}
`;

export interface SettableClock {
  /** The environment of a process that reads this clock. */
  readonly env: Readonly<Record<string, string>>;
  /** Sets the clock, in seconds from the true time. */
  set(seconds: number): void;
}

/** @returns null, and prints that, if this machine has no C compiler; in CI it throws instead */
export function createSettableClock(folder: string): SettableClock | null {
  const [source, library, file] = ['clock.c', 'clock.so', 'clock'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  writeFileSync(source, SOURCE);
  const { status } = spawnSync('cc', ['-shared', '-fPIC', '-o', library, source, '-ldl']);
  if (status !== 0) {
    if (process.env['CI'] !== undefined) throw new Error('CI must have a C compiler: `cc -shared` fails');
    process.stdout.write('skipped: clocks that are set, which need a C compiler\n');
    return null;
  }
  const set = (seconds: number): void => writeFileSync(file, String(seconds));
  set(0);
  return { env: { LD_PRELOAD: library, TURNPIKE_TEST_CLOCK: file }, set };
}
