import { resolve } from 'node:path';
import { systemClock } from '../../system/system-clock.js';
import { winstonLog } from '../../system/winston-log.js';
import { UPSTREAMS_FILE } from '../../core/contract/policy/upstreams.js';
import { usageError } from '../../core/errors.js';
import type { AddedTools, FeatureToolOptions } from '../../runtime/effects/tools-of-features.js';
import { connectUpstreams } from './connect-upstreams.js';
import { readUpstreams } from './upstream-files.js';

const NO_UPSTREAMS: AddedTools = { tools: [], problems: [], close: () => Promise.resolve() };

/**
 * Connects to the upstream servers of a deployment. An unreachable server is a problem in the result, not an error.
 * @throws UsageError if there is no upstreams.json
 * @throws PolicyError if a file cannot be used
 */
export async function openUpstreams(options: FeatureToolOptions): Promise<AddedTools> {
  const { upstreams = false, contract, clock = systemClock(), log = winstonLog('warn') } = options;
  if (upstreams === false) return NO_UPSTREAMS;
  const folder = upstreams === true ? contract : upstreams;
  if (folder === undefined) throw usageError('`upstreams: true` needs `contract`: the folder in which they are listed');
  const files = readUpstreams(resolve(folder));
  if (files === null) throw usageError(`${folder} has no ${UPSTREAMS_FILE}`);
  return connectUpstreams(files.config, files.pins, { clock, log, folder: resolve(folder) });
}
