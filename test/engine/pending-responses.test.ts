// The responses that submitters wait for. In a real run the response comes before the end of the run (A2 of
// machines/agent.ts).

import { expect, test } from '@jest/globals';
import { PendingResponses } from '../../src/engine/ledger-engine.js';

const pendingAfter = async (responding: Promise<unknown>): Promise<unknown> =>
  Promise.race([responding, new Promise((resolve) => setImmediate(resolve, 'pending'))]);

test('a response resolves the promise of its input, and of no other run or input', async () => {
  const responses = new PendingResponses();
  const [own, later, other] = [
    responses.add('run_a.1', 'input'),
    responses.add('run_a.1', 'later'),
    responses.add('run_b.1', 'input'),
  ];
  responses.resolve({ run_id: 'run_a.1', input_id: 'input', response: '{}' });
  responses.resolve({ run_id: 'run_c.1', input_id: 'input', response: '{}' });
  expect(await own).toBe('{}');
  expect([await pendingAfter(later), await pendingAfter(other)]).toEqual(['pending', 'pending']);
});

test('the end of a run resolves what is pending to null, and a failure rejects it', async () => {
  const responses = new PendingResponses();
  const [ended, failed] = [responses.add('run_a.1', 'input'), responses.add('run_b.1', 'input')];
  responses.endRun('run_a.1');
  responses.rejectAll(new Error('the engine has failed'));
  expect(await ended).toBeNull();
  await expect(failed).rejects.toThrow('the engine has failed');
});

test('a response that is added after a failure is rejected, until the next epoch', async () => {
  const responses = new PendingResponses();
  responses.rejectAll(new Error('the engine has failed'));
  await expect(responses.add('run_a.1', 'input')).rejects.toThrow('the engine has failed');
  responses.accept();
  const later = responses.add('run_a.1', 'later');
  responses.resolve({ run_id: 'run_a.1', input_id: 'later', response: '{}' });
  expect(await later).toBe('{}');
});
