import { setTimeout as delay } from 'node:timers/promises';
import { errorCode } from '../../../system/error-code.js';
import { LedgerError } from '../../../core/errors.js';
import type { Clock } from '../../../engine/ports/clock.js';
import type { Log } from '../../../engine/ports/log.js';
import type { CommandOption } from '../command.js';
import { integerType } from '../option-types.js';

/** How long a service waits for its database at its start, in seconds. */
const WAIT_SECONDS_DEFAULT = 60;
export const WAIT_SECONDS_MAX = 86_400;
const RETRY_MS = 500;

export const WAIT_OPTION = {
  name: 'wait',
  value: 'SECONDS',
  type: integerType({ max: WAIT_SECONDS_MAX, takes: `0 to ${WAIT_SECONDS_MAX} seconds` }),
  default: String(WAIT_SECONDS_DEFAULT),
  help: `how long to wait at the start for a database that is away (default ${WAIT_SECONDS_DEFAULT})`,
} as const satisfies CommandOption;

/** How a service waits for its database. */
export interface DatabaseWait {
  readonly ms: number;
  readonly clock: Pick<Clock, 'now'>;
  readonly log: Log;
  /** Ends the wait. */
  readonly stop?: AbortSignal;
}

/** Repeats `open` while the database is away. @throws the error of the last attempt; any other error at once */
export async function waitForDatabase<T>(open: () => Promise<T>, wait: DatabaseWait): Promise<T> {
  const end = wait.clock.now() + wait.ms;
  for (let isFirst = true; ; isFirst = false) {
    try {
      return await open();
    } catch (error) {
      if (!isDatabaseAway(error) || wait.clock.now() >= end || wait.stop?.aborted === true) throw error;
      if (isFirst) wait.log.warn('the database is away: waiting for it', { seconds: wait.ms / 1_000, error });
    }
    await delay(RETRY_MS, undefined, wait.stop === undefined ? {} : { signal: wait.stop }).catch(() => undefined);
  }
}

/** No connection, a connection that broke, or a server that starts or ends. */
const AWAY =
  /^(?:ECONN(?:REFUSED|RESET|ABORTED)|E(?:HOST|NET)UNREACH|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EPIPE|57P0[123]|08...)$/;

export function isDatabaseAway(error: unknown): boolean {
  if (!(error instanceof LedgerError) || error.code !== 'LEDGER_UNAVAILABLE') return false;
  let cause: unknown = error.cause;
  while (typeof cause === 'object' && cause !== null) {
    const { message, cause: next } = cause as Partial<Error>;
    if (AWAY.test(errorCode(cause)) || /^(?:timeout expired|Connection terminated)/.test(message ?? '')) return true;
    cause = next;
  }
  return false;
}
