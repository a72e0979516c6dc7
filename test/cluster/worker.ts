// One worker process. It opens the shared ledger, serves the campaign over HTTP, and notes what it does outside of the
// ledger. It prints its port. It ends itself if only a new opening can continue.

import { createServer, type IncomingMessage } from 'node:http';
import { writeSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { openPostgresStore } from '../../src/stores/postgres/index.js';
import { winstonLog } from '../../src/system/winston-log.js';
import { findPermanentFailure } from '../../src/engine/failures.js';
import { sharedEngine } from '../../src/engine/shared.js';
import type { Effects } from '../../src/engine/tree-engine.js';
import { CodedError } from '../../src/core/errors.js';
import type { ExternalHeadStore } from '../../src/engine/ports/ledger/ledger-store.js';
import type { SharedLedgerStore } from '../../src/engine/ports/ledger/shared-store.js';
import { manifestPolicySource } from '../../src/home/policy/manifest-policy-source.js';
import { openStorageEnvironment } from '../../src/host/storage-environment.js';
import { openTurnpikeIn, type Turnpike } from '../../src/host/turnpike.js';
import { AGENT, TOOL_CALLS_MAX, toolsOf } from './contract.js';
import { MovableClock } from './movable-clock.js';
import { machineTime, note, placesIn, stateOf } from './places.js';
import { plantIn, plantInProcess } from './plants.js';
import type { WorkerOptions } from './worker-options.js';

/** Interval between two tries to restart a failed engine, in ms. */
const RESTART_MS = 400;
const REMOTE = { link: 'remote', idleMs: 3_600_000 } as const;

const options = JSON.parse(process.argv[2] ?? '{}') as WorkerOptions;
const places = placesIn(options.folder);
const worker = `${options.name} ${process.pid}`;
const clock = new MovableClock();
plantInProcess(options.plant);

const codeOf = (error: unknown): string => (error instanceof CodedError ? String(error.code) : 'INTERNAL');

/** Ends the process: a new one may be able to continue. */
function giveUp(error: unknown): void {
  note(places, { at: 'refused', code: codeOf(error), message: String(error), worker });
  process.exit(1);
}

/** Notes every effect and settlement. */
const noted = (effects: Effects): Effects => ({
  gather: (request) => effects.gather(request),
  run: (effect, inCommit) => {
    if (!inCommit) note(places, { at: 'begin', key: effect.idempotency_key, worker, t: machineTime() });
    return effects.run(effect, inCommit);
  },
  settle: (effect) => {
    note(places, { at: 'settle', key: effect.idempotency_key, worker, t: machineTime() });
    return effects.settle(effect);
  },
  ask: (query) => effects.ask(query),
  canRun: (effect) => effects.canRun(effect),
  isElsewhere: effects.isElsewhere,
  forgetUsage: (case_id) => {
    effects.forgetUsage(case_id);
  },
});

/** Notes every head that it writes, in their order, with the size of the stored log right before. */
function notedHeads(externalHeadStore: ExternalHeadStore, store: SharedLedgerStore): ExternalHeadStore {
  let last: Promise<unknown> = Promise.resolve();
  const write: ExternalHeadStore['write'] = async (head) => {
    const { size } = await store.head().catch(() => ({ size: null }));
    note(places, { at: 'head', size: head.size, root: head.root, stored: size, worker });
    await externalHeadStore.write(head);
  };
  return {
    read: () => externalHeadStore.read(),
    write: (head) => {
      const writing = last.then(() => write(head));
      last = writing.catch(() => undefined);
      return writing;
    },
    reopen: () => last.then(() => externalHeadStore.reopen()),
    close: () => last.then(() => externalHeadStore.close()),
  };
}

async function open(): Promise<Turnpike> {
  const { url, schema, plant } = options;
  const folders = { keys: places.keys, state: stateOf(places, options.name), sandbox: places.sandbox };
  const opened = await openPostgresStore({ url, schema, caseKeysDir: `${places.keys}/case-keys` });
  const environment = await openStorageEnvironment(opened, folders).catch(async (error: unknown) => {
    await opened.close();
    throw error;
  });
  const externalHeadStore = notedHeads(environment.externalHeadStore, opened);
  const store = plantIn(plant, { store: opened, externalHeadStore, places });
  return openTurnpikeIn(
    {
      ...environment,
      store,
      externalHeadStore,
      engine: (parts) => sharedEngine({ ...parts, effects: noted(parts.effects) }),
    },
    {
      ...folders,
      ...{ store, clock, control: false, log: winstonLog('warn'), tools: toolsOf(places) },
      policies: manifestPolicySource(places.contract),
    },
  );
}

const turnpike = await open().catch((error: unknown) => {
  giveUp(error);
  throw error;
});

let isRestarting = false;
setInterval(() => {
  if (!turnpike.failed || isRestarting) return;
  isRestarting = true;
  turnpike
    .restart()
    .catch((error: unknown) => (findPermanentFailure(error) === null ? undefined : giveUp(error)))
    .finally(() => (isRestarting = false));
}, RESTART_MS);

async function bodyOf(request: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return JSON.parse(Buffer.concat(chunks).toString('utf8') || '{}') as Record<string, unknown>;
}

async function answer(request: IncomingMessage): Promise<object> {
  const body = await bodyOf(request);
  switch (request.url) {
    case '/start': {
      const budget = { tool_calls: TOOL_CALLS_MAX };
      const run = await turnpike.startAgent({ ...AGENT, ...REMOTE, budget, case: String(body['case']) });
      return { run_id: run.run_id };
    }
    case '/propose': {
      const text = await turnpike.respond(String(body['run_id']), String(body['payload']), {
        inputId: String(body['input_id']),
      });
      return { text };
    }
    case '/jump':
      clock.jump(Number(body['ms']));
      return {};
    case '/verify':
      return { verdict: await turnpike.ledger.verify() };
    default:
      return { failed: turnpike.failed };
  }
}

const server = createServer((request, response) => {
  answer(request).then(
    (given) => response.writeHead(200).end(JSON.stringify(given)),
    (error: unknown) => response.writeHead(500).end(JSON.stringify({ code: codeOf(error), message: String(error) })),
  );
});
server.listen(0, options.address, () => void writeSync(1, `${(server.address() as AddressInfo).port}\n`));
