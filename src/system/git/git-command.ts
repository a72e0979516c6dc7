// Runs Git on a repository that is untrusted: a user who can write its .git/config must not get a program executed by
// a user who only reads from it. So callers use only plumbing commands (they start no pager, no signature check, no
// diff driver), with settings that leave Git nothing to start: no file system monitor, no hooks, and no transport, with
// which it would fetch a missing object.

import { execFile } from 'node:child_process';

const GIT_MS_MAX = 10_000;

export interface GitAnswer {
  /** `refused`: git ran and failed. `not_run`: there is no git, it timed out, or its output was too long. */
  readonly status: 'done' | 'refused' | 'not_run';
  /** The output; its beginning if it was too long. */
  readonly stdout: Buffer;
}

export interface GitLimits {
  readonly bytesMax: number;
  /** In milliseconds. Default 10 s. */
  readonly msMax?: number;
}

const SETTINGS = [
  'core.fsmonitor=false',
  'core.hooksPath=/dev/null',
  // Another user may own the repository (a container's volume). The owner can run nothing here, see above.
  'safe.directory=*',
  'safe.bareRepository=explicit',
];

/** Runs one plumbing command in the folder `root`. */
export function runGit(
  root: string,
  args: readonly string[],
  { bytesMax, msMax = GIT_MS_MAX }: GitLimits,
): Promise<GitAnswer> {
  const options = {
    encoding: 'buffer',
    timeout: msMax,
    killSignal: 'SIGKILL',
    maxBuffer: bytesMax,
    env: {
      PATH: process.env['PATH'],
      LC_ALL: 'C',
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_CONFIG_GLOBAL: '/dev/null',
      GIT_TERMINAL_PROMPT: '0',
      GIT_OPTIONAL_LOCKS: '0',
      GIT_NO_REPLACE_OBJECTS: '1',
      GIT_GRAFT_FILE: '/dev/null',
      GIT_NO_LAZY_FETCH: '1',
      // The same for versions of Git without GIT_NO_LAZY_FETCH: no protocol is allowed.
      GIT_ALLOW_PROTOCOL: 'none',
    },
  } as const;
  const settings = SETTINGS.flatMap((setting) => ['-c', setting]);
  // -C instead of the working directory of the process, which could contain its own `git`.
  const complete = ['-C', root, '--no-pager', '--literal-pathspecs', ...settings, ...args];
  return new Promise((settle) => {
    execFile('git', complete, options, (error, stdout) => {
      const status = error === null ? 'done' : typeof error.code === 'number' ? 'refused' : 'not_run';
      settle({ status, stdout });
    });
  });
}
