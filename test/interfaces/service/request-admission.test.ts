// Request admission on a real server: what a request is charged before its body is read, and how it is refused.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import {
  createServer,
  request as clientRequest,
  type ClientRequest,
  type IncomingMessage,
  type Server,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { systemPace } from '../../../src/system/system-pace.js';
import { winstonLog } from '../../../src/system/winston-log.js';
import { createDeferred } from '../../../src/runtime/deferred.js';
import { AdmissionController } from '../../../src/interfaces/admission/admission-controller.js';
import type { AdmissionOptions } from '../../../src/interfaces/admission/admission-limits.js';
import {
  RequestAdmission,
  type AdmissionOutcome,
  type RequestAdmissionOptions,
  type RequestDemand,
} from '../../../src/interfaces/service/request-admission.js';
import { createHandler, type MountedHandler } from '../../../src/interfaces/http/http-handler.js';
import { demandOf, type HttpApp, type HttpAppService } from '../../../src/interfaces/http/http-plugin.js';
import { BinaryBody } from '../../../src/interfaces/http/routes/route.js';
import { ManualClock } from '../../fixtures/manual-clock.js';

const STEP: RequestDemand = { kind: 'step', bytesMax: 10 };
const open: RequestAdmissionOptions['guard'] = () => Promise.resolve({ refusal: null, principal: null });
const service = { metrics: { request: () => undefined }, log: winstonLog('silent') } as unknown as HttpAppService;

let server: Server;
let requests: ClientRequest[];
beforeEach(async () => {
  server = createServer().listen(0, '127.0.0.1');
  requests = [];
  await once(server, 'listening');
});
afterEach(async () => {
  for (const each of requests) each.destroy();
  const closed = once(server, 'close');
  server.close();
  server.closeAllConnections();
  await closed;
});

/** A server that admits requests and never answers them, with the outcome of each admission in order. */
function entering(
  limits: AdmissionOptions,
  {
    demand = STEP,
    guard = open,
    before = () => Promise.resolve(),
  }: {
    readonly demand?: RequestDemand;
    readonly guard?: RequestAdmissionOptions['guard'];
    readonly before?: (request: IncomingMessage) => Promise<unknown>;
  } = {},
) {
  const clock = new ManualClock();
  const admission = new AdmissionController({ clock, pace: systemPace(), limits });
  const requestAdmission = new RequestAdmission({ guard, admission });
  const entered: Promise<AdmissionOutcome>[] = [];
  server.on('request', (request, response) => {
    entered.push(before(request).then(() => requestAdmission.admit(request, response, demand)));
    server.emit('entered');
  });
  const send = async (
    method: 'GET' | 'POST',
    headers: Record<string, string> = {},
  ): Promise<AdmissionOutcome | 'waits'> => {
    const { port } = server.address() as AddressInfo;
    const sent = clientRequest({ port, host: '127.0.0.1', method, headers, agent: false, path: '/x' });
    sent.on('error', () => undefined);
    requests.push(sent);
    const came = once(server, 'entered');
    sent.flushHeaders();
    if (method === 'GET') sent.end();
    await came;
    const turn = new Promise<'waits'>((resolve) => setImmediate(() => resolve('waits')));
    return Promise.race([entered.at(-1)!, turn]);
  };
  return { clock, admission, entered, send };
}

const works = (came: AdmissionOutcome | 'waits'): boolean => came !== null && came !== 'waits' && 'work' in came;

describe('the charged bytes of a body', () => {
  test('are the declared length, up to the limit of the route', async () => {
    const { send } = entering({ bodyBytesPerToken: 25, bodyBytes: 100 });
    expect(works(await send('POST', { 'content-length': '1000000' }))).toBe(true);
    expect(works(await send('POST', { 'content-length': '10' }))).toBe(true);
    expect(await send('POST', { 'content-length': '6' })).toBe('waits');
  });

  test('are the limit of the route if the client declares no length', async () => {
    const { send } = entering({ bodyBytesPerToken: 10, bodyBytes: 100 });
    expect(works(await send('POST', { 'transfer-encoding': 'chunked' }))).toBe(true);
    expect(await send('POST', { 'content-length': '1' })).toBe('waits');
  });

  test('have the payload limit for a route that accepts a payload', async () => {
    const demand = demandOf({ kind: 'step', body: BinaryBody });
    const { send } = entering({ bodyBytesPerToken: 10, bodyBytes: 100 }, { demand });
    expect(works(await send('POST', { 'content-length': '8' }))).toBe(true);
    expect(await send('POST', { 'content-length': '8' })).toBe('waits');
  });

  test('have the limit of the mounted handler', async () => {
    const other: MountedHandler = { name: 'other', demand: STEP, handle: () => Promise.resolve() };
    const demands: RequestDemand[] = [];
    const admit: HttpApp<HttpAppService>['admission']['admit'] = (_request, response, demand) => {
      demands.push(demand);
      response.end();
      return Promise.resolve(null);
    };
    const { handle } = createHandler({
      ...{ service, page: new Map(), routes: [], admission: { admit } },
      findMounted: (path) => (path === '/x' ? other : null),
    });
    server.on('request', (request, response) => void handle(request, response));
    const { port } = server.address() as AddressInfo;
    for (const path of ['/x', '/y']) await fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST' });
    expect(demands).toEqual([STEP, { kind: 'live', bytesMax: 0 }]);
  });
});

describe('a client', () => {
  test('without a token shares the limits of one token with all other clients without a token', async () => {
    const { send } = entering({ kinds: { step: { runningPerToken: 2 } } });
    const all = [await send('GET'), await send('GET'), await send('GET')];
    expect(all.map((came) => (came === 'waits' ? came : 'works'))).toEqual(['works', 'works', 'waits']);
  });

  test('that has left before its admission holds no slot', async () => {
    const before = ({ socket }: IncomingMessage): Promise<unknown> => once(socket.destroy(), 'close');
    const { admission, entered, send } = entering({}, { before });
    await send('GET');
    expect(await entered[0]).toHaveProperty('work');
    expect(admission.counts).toMatchObject({ running: 0, waiting: 0, admitted: { step: 1 } });
  });

  test('that leaves while it waits is not admitted when a slot becomes free', async () => {
    const { admission, entered, send } = entering({ kinds: { step: { runningPerToken: 1 } } });
    const first = await send('GET');
    if (first === 'waits' || first === null || !('work' in first)) throw new Error('it was not let in');
    const arrived = once(server, 'request') as Promise<[IncomingMessage]>;
    expect(await send('GET')).toBe('waits');
    const [{ socket }] = await arrived;
    const left = once(socket, 'close');
    requests.at(-1)!.destroy();
    await left;
    first.work.end();
    expect(await entered[1]).toBeNull();
    expect(admission.counts).toMatchObject({ running: 0, waiting: 0 });
  });

  test('that leaves holds its slot until the mounted handler has ended', async () => {
    const release = createDeferred<null>();
    const begun = createDeferred<null>();
    const clock = new ManualClock();
    const admission = new AdmissionController({ clock, pace: systemPace(), limits: {} });
    const other: MountedHandler = {
      name: 'other',
      demand: STEP,
      handle: async () => {
        begun.resolve(null);
        await release.promise;
      },
    };
    const { handle } = createHandler({
      ...{ service, page: new Map(), routes: [], findMounted: () => other },
      admission: new RequestAdmission({ guard: open, admission }),
    });
    server.on('request', (request, response) => {
      void handle(request, response);
      response.on('close', () => server.emit('left'));
    });
    const { port } = server.address() as AddressInfo;
    const sent = clientRequest({ port, host: '127.0.0.1', agent: false, path: '/x' }).on('error', () => undefined);
    sent.end();
    await begun.promise;
    const left = once(server, 'left');
    sent.destroy();
    await left;
    expect(admission.counts.running).toBe(1);
    release.resolve(null);
    await new Promise((resolve) => setImmediate(resolve));
    expect(admission.counts.running).toBe(0);
  });

  test('over its own limit gets 429, over the limit of the service 503, each with Retry-After', async () => {
    const { clock, admission, entered, send } = entering(
      { kinds: { read: { running: 1, runningPerToken: 1, queueMs: 100 } }, costBurst: 10, costPerSecond: 1 },
      {
        demand: { kind: 'read', bytesMax: 0 },
        guard: ({ rawHeaders }) => {
          const id = rawHeaders[rawHeaders.indexOf('x-token') + 1] ?? '';
          return Promise.resolve({ refusal: null, principal: { id } as never });
        },
      },
    );
    const first = await send('GET', { 'x-token': 'one' });
    if (first === 'waits' || first === null || !('work' in first)) throw new Error('it was not let in');
    first.work.charge(4_109);
    expect([await send('GET', { 'x-token': 'one' }), await send('GET', { 'x-token': 'two' })]).toEqual([
      'waits',
      'waits',
    ]);
    clock.advance(1_000);
    const [mine, theirs] = [await entered[1], await entered[2]];
    expect(mine).toMatchObject({ status: 429, code: 'TOO_MANY_REQUESTS', headers: { 'Retry-After': '4099' } });
    expect(theirs).toMatchObject({ status: 503, code: 'OVERLOADED', headers: { 'Retry-After': '1' } });
    expect(admission.counts.refused).toMatchObject({ token: 1, service: 1 });
  });
});
