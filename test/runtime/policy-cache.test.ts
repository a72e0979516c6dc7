import { beforeEach, expect, test } from '@jest/globals';
import { createCatalogue, NO_REGISTRATIONS } from '../../src/core/contract/policy/catalogue.js';
import { manifestPolicySource } from '../../src/home/policy/manifest-policy-source.js';
import type { PolicySource } from '../../src/engine/ports/policy-sources.js';
import { PolicyCache } from '../../src/runtime/policy-cache.js';
import { shippedContract } from '../../src/runtime/shipped-contract.js';
import '../fixtures/approvals.js';

type Files = Awaited<ReturnType<PolicySource['load']>>;

const source = manifestPolicySource(shippedContract());
let now = 0;
let loads = 0;
/** Changes what the source has loaded. */
let change: (files: Files) => Files = (files) => files;
let cache: PolicyCache;

/** The policy after the time for which a loaded one serves. */
function later(): ReturnType<PolicyCache['current']> {
  now += 1_000;
  return cache.current();
}

beforeEach(() => {
  [now, loads] = [1_000_000, 0];
  change = (files) => files;
  const counted: PolicySource = {
    load: async () => {
      loads += 1;
      return change(await source.load());
    },
  };
  cache = new PolicyCache(counted, { now: () => now, wake: () => () => undefined }, createCatalogue(NO_REGISTRATIONS));
});

test('C45: the files are loaded once a second, and unchanged files give the same policy', async () => {
  const first = await cache.current();
  now += 999;
  expect(await cache.current()).toBe(first);
  expect(loads).toBe(1);
  expect(await later()).toBe(first);
  expect(loads).toBe(2);
});

test('C45: a changed file gives another policy, with its bytes pinned', async () => {
  const first = await cache.current();
  change = (files) => ({
    ...files,
    roles: { ...files.roles, bytes: Buffer.concat([files.roles.bytes, Buffer.from('# a comment\n')]) },
  });
  const second = await later();
  expect(second).not.toBe(first);
  expect(second.pins.roles.artifact).not.toEqual(first.pins.roles.artifact);
  expect(second.pins.lanes).toEqual(first.pins.lanes);
});

test('C44: a file whose pin has become invalid is not served with its former pin', async () => {
  await cache.current();
  change = (files) => ({ ...files, lanes: { ...files.lanes, pin: { problem: 'stale' } } });
  expect((await later()).pins.lanes).toMatchObject({ problem: 'stale' });
});

test('an invalid file is reported until it is valid again', async () => {
  const first = await cache.current();
  change = (files) => ({ ...files, actions: { ...files.actions, bytes: Buffer.from('version: [') } });
  await expect(later()).rejects.toMatchObject({ code: 'POLICY_INVALID' });
  await expect(later()).rejects.toMatchObject({ code: 'POLICY_INVALID' });
  change = (files) => files;
  expect(await later()).toBe(first);
});
