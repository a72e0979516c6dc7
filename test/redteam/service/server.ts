// The attacked service: a whole Turnpike with a filled ledger, and three tokens.

import { mkdirSync, writeFileSync } from 'node:fs';
import { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { limitHeapGrowth } from '../../../src/system/heap-growth.js';
import { nanoidIds } from '../../../src/system/nanoid-ids.js';
import { systemClock } from '../../../src/system/system-clock.js';
import { mintToken, tokenBook, type TokenGrant } from '../../../src/stores/keys/token-file.js';
import { winstonLog } from '../../../src/system/winston-log.js';
import type { TokenRecord } from '../../../src/core/contract/token.js';
import { openTurnpike, type Turnpike } from '../../../src/host/turnpike.js';
import type { AdmissionOptions } from '../../../src/interfaces/admission/admission-limits.js';
import { serveTurnpike } from '../../../src/interfaces/http/serve.js';
import { argument, type Fault, type Served, type ServerOptions } from './protocol.js';

const AGENTS = 64;
const NO_LIMIT = 1_000_000_000;
/** A piece of a response. */
const PIECE_BYTES = 65_536;
const unlimited = { running: NO_LIMIT, runningPerToken: NO_LIMIT, queueMs: NO_LIMIT, cost: 0 };
const unbounded = { live: unlimited, step: unlimited, read: unlimited, task: unlimited };

/** What a planted fault disables. */
const FAULTY: Readonly<Record<Fault, AdmissionOptions>> = {
  'no-token-bound': {
    kinds: unbounded,
    requestsPerConnection: NO_LIMIT,
    connectionsPerToken: NO_LIMIT,
    queued: NO_LIMIT,
    queuedPerToken: NO_LIMIT,
    bodyBytes: NO_LIMIT,
    bodyBytesPerToken: NO_LIMIT,
    costBurst: NO_LIMIT,
    modestSteps: NO_LIMIT,
    modestStepsPerSecond: NO_LIMIT,
    bulkSteps: NO_LIMIT,
    bulkShare: NO_LIMIT,
  },
  'no-backpressure': {},
  'no-bulk-lane': { bulkShare: NO_LIMIT, bulkSteps: NO_LIMIT, sliceMs: 50 },
};

const { folder, entries, fault } = argument() as ServerOptions;
// As `turnpike serve` does.
limitHeapGrowth();

watchResponses(fault === 'no-backpressure');

const turnpike = await openTurnpike({ home: join(folder, 'home'), log: winstonLog('silent') });
await fill(turnpike, entries);

const grants: Readonly<Record<keyof Served['tokens'], TokenGrant>> = {
  hostile: { actor: 'mallory', role: 'SANDBOX_AGENT', rights: ['act', 'observe', 'approve', 'sessions'] },
  victim: { actor: 'agent-one', role: 'SANDBOX_AGENT', rights: ['act'] },
  probe: { actor: 'operator', role: 'ATTORNEY_ADMIN', rights: ['observe'] },
};
const records: TokenRecord[] = [];
const minted = (grant: TokenGrant): string => {
  const { token, record } = mintToken(grant, systemClock(), nanoidIds());
  records.push(record);
  return token;
};
const tokens = { hostile: minted(grants.hostile), victim: minted(grants.victim), probe: minted(grants.probe) };
const server = await serveTurnpike({
  turnpike,
  host: '127.0.0.1',
  port: 0,
  storedTokens: false,
  tokens: tokenBook(() => records, systemClock()),
  log: winstonLog('silent'),
  ...(fault === null ? {} : { admission: FAULTY[fault] }),
});
const served: Served = { url: server.url, tokens };
process.stdout.write(`${JSON.stringify(served)}\n`);

/**
 * Reports how many bytes a response holds that its client has not read, after each further piece. With the planted
 * fault a response always accepts more, so the whole response stays in memory.
 */
function watchResponses(takesAll: boolean): void {
  const { prototype } = ServerResponse;
  const write = Reflect.get(prototype, 'write') as (this: ServerResponse, piece: string) => boolean;
  let reported = 0;
  Reflect.set(prototype, 'write', function (this: ServerResponse, piece: string) {
    const takesMore = write.call(this, piece);
    const held = this.writableLength;
    if (held > reported + PIECE_BYTES) {
      reported = held;
      process.stdout.write(`${JSON.stringify({ held })}\n`);
    }
    return takesAll || takesMore;
  });
}

async function fill(turnpike: Turnpike, wanted: number): Promise<void> {
  const box = join(folder, 'home/sandbox/case-local/a');
  mkdirSync(box, { recursive: true });
  writeFileSync(join(box, 'note.txt'), 'n'.repeat(1_024));
  // Many small trees, as a year of work leaves behind: listing them requires many folds.
  while ((await turnpike.ledger.size()) < wanted) {
    const agents = await Promise.all(Array.from({ length: AGENTS }, () => turnpike.startAgent({ case: 'case-local' })));
    await Promise.all(
      agents.map(async (agent) => {
        for (let n = 0; n < 8; n += 1) await agent.respond(reading());
        await agent.end();
      }),
    );
  }
}

function reading(): string {
  const proposal = { action: 'READ_FILE', args: { path: '/sandbox/a/note.txt' } };
  return JSON.stringify({ schema_version: '1.0.0', id: randomUUID(), reasoning: 'To fill a ledger.', ...proposal });
}
