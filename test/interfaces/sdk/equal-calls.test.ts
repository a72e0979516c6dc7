// Equal calls with one id in one answer of a model, as a server sends them that numbers the calls of each answer.

import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { aiSdkDriver } from './ai-sdk-driver.js';
import { call, SdkBench } from './sdk-scenarios.js';

let sdk: SdkBench;
beforeEach(() => {
  sdk = new SdkBench(aiSdkDriver);
});
afterEach(() => sdk.close());

test('0078: the second of two equal calls in one answer gets no output, and its refusal is recorded', async () => {
  const conversation = await sdk.open();
  await conversation.ask([call('call_0', 'note', { text: 'a' }), call('call_0', 'note', { text: 'a' })]);
  expect(sdk.world.effects).toEqual(['note a']);
  const outputs = [...(await conversation.state()).matchAll(/"output":\{"type":"([a-z-]+)"/g)].map(([, type]) => type);
  expect(outputs.toSorted()).toEqual(['error-text', 'json']);
  expect((await sdk.shape()).filter((text) => text.startsWith('step'))).toEqual([
    'step SUCCESS',
    'step VALIDATION_ERROR',
  ]);
  const { results } = await conversation.ask([call('call_1', 'note', { text: 'a' })]);
  expect(results['call_1']).toEqual({ noted: 'a' });
});
