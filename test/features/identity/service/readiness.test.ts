// The readiness check `identity-provider`: an issuer that cannot be reached, and one that can be reached again.

import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { IdentityBench } from './identity-harness.js';

const FAILED = 'the keys of an identity provider are missing';
const KEYS = '/jwks';
const WAIT_MS = 20_000;

let stage: IdentityBench;
beforeEach(async () => {
  stage = await IdentityBench.open();
});
afterEach(() => stage.close());

async function reason(): Promise<string | null | undefined> {
  const { checks } = await stage.http.bench.turnpike.readiness.report();
  return checks.find(({ name }) => name === 'identity-provider')?.reason;
}

/** Whether the check gives this reason at last, without any request. */
async function becomes(expected: string | null): Promise<boolean> {
  const end = Date.now() + WAIT_MS;
  while (Date.now() < end) {
    if ((await reason()) === expected) return true;
    await nextTurn();
  }
  return false;
}

const ask = async (): Promise<string> => {
  const response = await stage.http.ask('/runs', await stage.counsel());
  return `${response.status} ${((await response.json()) as { code?: string }).code ?? ''}`;
};

test('C98 holds before any token has come, because nothing is known of the issuer', async () => {
  stage.issuer.isDown = true;
  expect(await reason()).toBeNull();
});

test('C98 holds while an issuer is down whose keys are known', async () => {
  expect(await ask()).toBe('200 ');
  stage.issuer.isDown = true;
  stage.clock.advance(600_000);
  expect(await ask()).toBe('200 ');
  expect(await reason()).toBeNull();
});

test('C98 fails while keys are missing, and holds again without a token: a process that is not ready gets none', async () => {
  stage.issuer.isDown = true;
  expect(await ask()).toBe('503 IDENTITY_UNAVAILABLE');
  expect(await reason()).toBe(FAILED);
  stage.issuer.isDown = false;
  stage.clock.advance(31_000);
  expect(await becomes(null)).toBe(true);
  expect(await ask()).toBe('200 ');
});

test('C98 asks the issuer no more often than tokens may', async () => {
  stage.issuer.isDown = true;
  expect(await ask()).toBe('503 IDENTITY_UNAVAILABLE');
  const count = (): number => stage.issuer.count('/.well-known/openid-configuration') + stage.issuer.count(KEYS);
  const before = count();
  for (let poll = 0; poll < 50; poll += 1) expect(await reason()).toBe(FAILED);
  expect(count()).toBe(before);
  stage.clock.advance(31_000);
  for (let poll = 0; poll < 50; poll += 1) {
    expect(await reason()).toBe(FAILED);
    await nextTurn();
  }
  expect(count()).toBeLessThanOrEqual(before + 1);
});
