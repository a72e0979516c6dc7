// Faults that are planted in front of a real ledger: what the campaign behind Restate compares finds each of them.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { exchangeFolder, type SubmitMessage, type SubmitResult } from '../../../src/interfaces/restate/index.js';
import { submitStep } from '../../../src/interfaces/restate/restate-turnpike.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import { memoryStore, openTurnpike, type Turnpike } from '../../../src/index.js';
import { tempFolder } from '../../fixtures/temp-folder.js';
import { compareWithLedger, load, proposalText } from './restate-load.js';

const exchange = exchangeFolder(tempFolder('exchange'));
const STEPS = 12;
/** The step at which a planted fault happens; it is one that is sent again. */
const AT = 'order-10';

let turnpike: Turnpike;
beforeAll(async () => {
  turnpike = await openTurnpike({ store: memoryStore(), sandbox: tempFolder('sandbox') });
});
afterAll(() => turnpike.close());

type Ingress = (message: SubmitMessage, attempt: number) => Promise<SubmitResult>;

const honest: Ingress = (message) => submitStep(turnpike, exchange, message);

/** Leaves a response for the client that is not the recorded one. */
async function falsified(message: SubmitMessage, seq: number): Promise<SubmitResult> {
  const text = JSON.stringify({ proposal_id: message.input_id, outcome: 'SUCCESS', seq });
  const response = { sha256: sha256(text), bytes: Buffer.byteLength(text) };
  const { run_id, input_id } = message;
  await exchange.write({ kind: 'response', run_id, input_id, sha256: response.sha256 }, Buffer.from(text));
  return { run_id, input_id, seq, outcome: 'SUCCESS', response };
}

/** Submits another proposal than the client's, under another input id. */
async function submitAsNew({ run_id }: SubmitMessage): Promise<void> {
  const text = proposalText(9_999);
  const payload = { sha256: sha256(text), bytes: Buffer.byteLength(text) };
  await exchange.write({ kind: 'payload', run_id, input_id: 'drawn', sha256: payload.sha256 }, Buffer.from(text));
  await submitStep(turnpike, exchange, { run_id, input_id: 'drawn', payload });
}

/** Serves the address of the service as the ingress of Restate does. */
async function serve(ingress: Ingress): Promise<Server> {
  const attempts = new Map<string, number>();
  const server = createServer((request, response) => {
    void (async () => {
      const message = JSON.parse((await buffer(request)).toString()) as SubmitMessage;
      const attempt = attempts.get(message.input_id) ?? 0;
      attempts.set(message.input_id, attempt + 1);
      response.end(JSON.stringify(await ingress(message, attempt)));
    })();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

/** Runs one client, and compares its history with the ledger. */
async function violationsOf(ingress: Ingress): Promise<readonly string[]> {
  const server = await serve(ingress);
  const { run_id } = await turnpike.remoteAgents.start({ case: 'case-0001' });
  const history = await load({
    ingress: () => `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    exchange,
    runs: [{ run_id, key: 'case-0001' }],
    goesOn: (step) => step < STEPS,
  });
  server.close();
  return (await compareWithLedger(turnpike, history)).map((line) => line.replaceAll(run_id, 'RUN'));
}

describe('a campaign behind Restate', () => {
  test('finds nothing without a fault', async () => {
    expect(await violationsOf(honest)).toEqual([]);
  });

  test('finds a response that is acknowledged and not recorded', async () => {
    const found = await violationsOf((message) =>
      message.input_id === AT ? falsified(message, 1_000) : honest(message, 0),
    );
    expect(found).toContain(`lost: RUN ${AT}`);
  });

  test('finds a submission that is repeated under a new input id', async () => {
    const found = await violationsOf(async (message, attempt) => {
      if (message.input_id === AT && attempt === 0) await submitAsNew(message);
      return honest(message, attempt);
    });
    expect(found).toEqual(['never sent: RUN drawn']);
  });

  test('finds another response to a submission that is sent again', async () => {
    const found = await violationsOf(async (message, attempt) => {
      const result = await honest(message, attempt);
      return attempt === 0 ? result : falsified(message, result.seq);
    });
    expect(found).toEqual([0, 10].map((step) => `RUN order-${step}: a resend got another response`));
  });

  test('finds a first response that is not the recorded one', async () => {
    const found = await violationsOf(async (message, attempt) => {
      const result = await honest(message, attempt);
      return message.input_id === 'order-3' ? falsified(message, result.seq) : result;
    });
    expect(found).toEqual(['response: RUN order-3 got another one than the ledger has']);
  });

  test('finds steps of one client that are recorded in another order', async () => {
    const found = await violationsOf(async (message, attempt) => {
      if (message.input_id === 'order-4') {
        const { run_id } = message;
        const text = proposalText(5);
        const payload = { sha256: sha256(text), bytes: Buffer.byteLength(text) };
        await exchange.write(
          { kind: 'payload', run_id, input_id: 'order-5', sha256: payload.sha256 },
          Buffer.from(text),
        );
        await honest({ run_id, input_id: 'order-5', payload }, 0);
      }
      return honest(message, attempt);
    });
    expect(found).toEqual(['order: RUN order-5 is recorded before the step that its client sent before']);
  });
});
