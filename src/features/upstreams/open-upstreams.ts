import { resolve } from 'node:path';
import { systemClock } from '../../system/system-clock.js';
import { winstonLog } from '../../system/winston-log.js';
import { UPSTREAMS_FILE } from '../../core/contract/policy/upstreams.js';
import { usageError } from '../../core/errors.js';
import type { Clock } from '../../engine/ports/clock.js';
import type { Log } from '../../engine/ports/log.js';
import { connectUpstreams, type Upstreams } from './connect-upstreams.js';
import { readUpstreams } from './upstream-files.js';

/** The options of `openTurnpike` that concern upstream servers. */
export interface UpstreamOptions {
  /** `true`: the servers of upstreams.json in the contract folder. A path: those of that folder. Default: none. */
  readonly upstreams?: boolean | string;
  readonly contract?: string;
  readonly clock?: Clock;
  readonly log?: Log;
}

const NO_UPSTREAMS: Upstreams = { tools: [], problems: [], close: () => Promise.resolve() };

/**
 * Connects to the upstream servers of a deployment. An unreachable server is a problem in the result, not an error.
 * @throws UsageError if there is no upstreams.json
 * @throws PolicyError if a file cannot be used
 */
export async function openUpstreams(options: UpstreamOptions): Promise<Upstreams> {
  const { upstreams = false, contract, clock = systemClock(), log = winstonLog('warn') } = options;
  if (upstreams === false) return NO_UPSTREAMS;
  const folder = upstreams === true ? contract : upstreams;
  if (folder === undefined) throw usageError('`upstreams: true` needs `contract`: the folder in which they are listed');
  const files = readUpstreams(resolve(folder));
  if (files === null) throw usageError(`${folder} has no ${UPSTREAMS_FILE}`);
  return connectUpstreams(files.config, files.pins, { clock, log, folder: resolve(folder) });
}
