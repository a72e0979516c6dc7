// Complete sessions over MCP with servers that are killed. `npm run campaign -- sessions` kills after every single
// call. The shipped command is tested in mcp.nightly.test.ts; here it is started fifty times, from few files.

import { beforeAll, expect, test } from '@jest/globals';
import { diskFolder } from '../fixtures/temp-folder.js';
import { builtCommand } from '../fixtures/build.js';
import { faultsOf, TRANSPORTS, walk } from '../sessions/mcp-walk.js';

const MS_MAX = 400_000;
/** For one transport every sixth call, for the other the calls midway between them. */
const KILL_EVERY = 6;
let command: string;

beforeAll(async () => {
  command = await builtCommand(diskFolder());
}, MS_MAX);

test.each(TRANSPORTS.map((transport, index) => [transport, (index * KILL_EVERY) / 2] as const))(
  'S3-40 C64: over %s, with killed servers, a spec is completed: nothing is executed twice, everything is mediated',
  async (transport, rest) => {
    const killBehind = (call: number): boolean => call % KILL_EVERY === rest;
    const walked = await walk({ transport, command, folder: diskFolder(), killBehind });
    expect(walked.kills).toBeGreaterThan(5);
    expect(faultsOf(walked)).toEqual([]);
  },
  MS_MAX,
);
