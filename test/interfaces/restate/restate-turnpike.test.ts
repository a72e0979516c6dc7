import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { exchangeFolder, type RestateTurnpike } from '../../../src/interfaces/restate/index.js';
import type { ContentReference } from '../../../src/interfaces/restate/restate-messages.js';
import { toRestateError } from '../../../src/interfaces/restate/turnpike-service.js';
import { cancelRun, keyOf, submitStep } from '../../../src/interfaces/restate/restate-turnpike.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import { memoryStore, openTurnpike, RunError, type Turnpike } from '../../../src/index.js';
import { tempFolder } from '../../fixtures/temp-folder.js';
import { proposalText } from './restate-load.js';

let turnpike: Turnpike;
const exchange = exchangeFolder(tempFolder('exchange'));

beforeAll(async () => {
  turnpike = await openTurnpike({ store: memoryStore(), sandbox: tempFolder('sandbox') });
});
afterAll(() => turnpike.close());

const start = async (): Promise<string> => (await turnpike.remoteAgents.start({ case: 'case-0001' })).run_id;
const referenceOf = (text: string): ContentReference => ({ sha256: sha256(text), bytes: Buffer.byteLength(text) });

async function message(run_id: string, input_id: string, text: string) {
  const payload = referenceOf(text);
  await exchange.write({ kind: 'payload', run_id, input_id, sha256: payload.sha256 }, Buffer.from(text));
  return { run_id, input_id, payload };
}

const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'none',
    (error: unknown) => toRestateError(error).message,
  );

describe('a submission', () => {
  test('gets the same result every time, and the ledger has it once', async () => {
    const run_id = await start();
    const first = await message(run_id, 'one', proposalText(1));
    const result = await submitStep(turnpike, exchange, first);
    expect(result).toMatchObject({ run_id, input_id: 'one', outcome: 'SUCCESS' });
    const response = await exchange.read(
      { kind: 'response', run_id, input_id: 'one', sha256: result.response.sha256 },
      9_999,
    );
    expect(response?.byteLength).toBe(result.response.bytes);
    expect(await submitStep(turnpike, exchange, first)).toEqual(result);
    let proposals = 0;
    for await (const { type, body } of turnpike.ledger.entries(run_id.slice(0, -2)))
      if (type === 'input' && body.kind === 'proposal') proposals += 1;
    expect(proposals).toBe(1);
  });

  test('gets its recorded result after the end of its run', async () => {
    const run_id = await start();
    const sent = await message(run_id, 'one', proposalText(1));
    const result = await submitStep(turnpike, exchange, sent);
    await turnpike.remoteAgents.end(run_id);
    expect(await submitStep(turnpike, exchange, sent)).toEqual(result);
    expect(await codeOf(submitStep(turnpike, exchange, await message(run_id, 'two', proposalText(2))))).toBe(
      'RUN_ENDED',
    );
  });

  test('with the input id of another payload is a conflict', async () => {
    const run_id = await start();
    await submitStep(turnpike, exchange, await message(run_id, 'one', proposalText(1)));
    const other = submitStep(turnpike, exchange, await message(run_id, 'one', proposalText(2)));
    expect(await codeOf(other)).toBe('IDEMPOTENCY_CONFLICT');
  });

  test('is refused if the exchange has no payload, or one that differs from its reference', async () => {
    const run_id = await start();
    const missing = { run_id, input_id: 'one', payload: referenceOf(proposalText(1)) };
    expect(await codeOf(submitStep(turnpike, exchange, missing))).toBe('PAYLOAD_UNKNOWN');
    const { sha256: hash } = missing.payload;
    await exchange.write(
      { kind: 'payload', run_id, input_id: 'one', sha256: hash },
      Buffer.alloc(missing.payload.bytes),
    );
    expect(await codeOf(submitStep(turnpike, exchange, missing))).toBe('PAYLOAD_UNKNOWN');
  });

  test('is retried if the ledger did not record it, and while its step has no response', async () => {
    const run_id = await start();
    const sent = await message(run_id, 'one', proposalText(1));
    const over = (parts: Partial<RestateTurnpike>): RestateTurnpike => ({ ...turnpike, ...parts });
    const unrecorded = over({ respond: () => Promise.resolve('{"outcome":"AUDIT_FAILURE"}') });
    expect(await codeOf(submitStep(unrecorded, exchange, sent))).toBe('LEDGER_UNAVAILABLE');
    await submitStep(turnpike, exchange, sent);
    const ended = new RunError({ code: 'RUN_ENDED', message: 'x' });
    const pending = over({ respond: () => Promise.reject(ended) });
    expect(await codeOf(submitStep(pending, exchange, sent))).toBe('STEP_PENDING');
  });
});

describe('a cancel', () => {
  test('returns how the run has ended, also the second time', async () => {
    const run_id = await start();
    const ending = await cancelRun(turnpike, { run_id, reason: 'operator' });
    expect(ending).toMatchObject({ state: 'cancelled' });
    expect((await cancelRun(turnpike, { run_id, reason: 'timeout' })).state).toBe('cancelled');
  });
});

test('the key of a run is its case, else its tree', async () => {
  const run_id = await start();
  expect(await keyOf(turnpike, run_id)).toBe('case-0001');
  const { run_id: bare } = await turnpike.remoteAgents.start({});
  // Without a case in a lane that requires one, it has none, and is denied.
  expect(await keyOf(turnpike, bare)).toBe(bare.slice(0, -2));
  const find = async (run: string) => ({ ...(await turnpike.remoteAgents.find(run)), case: null, ended: null });
  const caseless: RestateTurnpike = { ...turnpike, remoteAgents: { find } };
  expect(await keyOf(caseless, bare)).toBe(bare.slice(0, -2));
  expect(await codeOf(keyOf(turnpike, 'run_unknown_00.1'))).toBe('RUN_UNKNOWN');
});

test('the next timer of a remote run is its idle timeout', async () => {
  expect(await turnpike.nextTimer(await start())).toMatch(/^\d{4}-.*Z$/);
  expect(await turnpike.nextTimer('run_unknown_00.1')).toBe(null);
});
