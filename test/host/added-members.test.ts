// The members that features add to the public object.

import { expect, test } from '@jest/globals';
import { FEATURES } from '../../src/features/declare-features.js';
import type { Sessions } from '../../src/features/sessions/sessions.js';
import { openMembers, pickMembers, remoteMembers } from '../../src/host/added-members.js';
import { CONTROL_OPERATIONS } from '../../src/host/control/control-messages.js';
import { FeatureParts } from '../../src/host/feature-parts.js';
import type { AddedMembers, HostAccess, HostFeature, RequestSender } from '../../src/runtime/host-feature.js';

const { operations } = FEATURES.flatMap(({ inHost }) => inHost?.members?.sessions ?? [])[0] as {
  readonly operations: Readonly<Record<keyof Sessions, true>>;
};

/** Two members, whose parts count their creations. */
function countedFeature() {
  const created: unknown[][] = [];
  const part = { status: (session_id: string) => Promise.resolve(session_id) } as unknown as Sessions &
    AddedMembers['hooks'];
  const create = (name: string) => () => {
    created.push([name]);
    return Promise.resolve(part);
  };
  const feature: HostFeature = {
    parts: { sessions: create('sessions'), hookGate: create('gate') },
    members: {
      sessions: {
        part: 'sessions',
        operations,
        remote: (...call) => {
          created.push(call);
          return Promise.resolve(part);
        },
      },
      hooks: { part: 'hookGate', option: 'hooks' },
    },
  };
  const features = [{ inHost: feature }, {}];
  return { created, part, features, parts: new FeatureParts(features, () => ({}) as HostAccess) };
}

test('the first call of an operation creates its part', async () => {
  const { created, features, parts } = countedFeature();
  const { sessions } = await openMembers(features, parts, {});
  expect(Object.keys(sessions)).toEqual(Object.keys(operations));
  expect(created).toEqual([]);
  expect(await Promise.all([sessions.status('one'), sessions.status('two')])).toEqual(['one', 'two']);
  expect(created).toEqual([['sessions']]);
});

test('a member with an option is created if the option is true, and is null otherwise', async () => {
  const { created, part, features, parts } = countedFeature();
  for (const options of [{}, { hooks: false }, { hooks: 'yes' } as object])
    expect((await openMembers(features, parts, options)).hooks).toBeNull();
  expect(created).toEqual([]);
  expect((await openMembers(features, parts, { hooks: true })).hooks).toBe(part);
  expect(created).toEqual([['gate']]);
});

test('an operation that the part lacks rejects', async () => {
  const { features, parts } = countedFeature();
  const { sessions } = await openMembers(features, parts, {});
  await expect(sessions.list()).rejects.toThrow('a part lacks its operation list');
});

test('the member of another process is created once, with that process and the contract', async () => {
  const { created, features } = countedFeature();
  const owner = {} as RequestSender;
  const { sessions, hooks } = remoteMembers(features, owner, '/contract');
  expect([hooks, created]).toEqual([null, []]);
  expect(await Promise.all([sessions.status('one'), sessions.status('two')])).toEqual(['one', 'two']);
  expect(created).toEqual([[owner, '/contract']]);
});

test('no two requests of the control socket have one `op`', () => {
  const added = FEATURES.flatMap(({ inHost }) => Object.keys(inHost?.requests ?? {}));
  const own = Object.keys(CONTROL_OPERATIONS);
  const all = [...own, ...added];
  expect(added).toEqual(['hook', 'reopen_hooks', 'session']);
  expect(all.filter((op, at) => all.indexOf(op) !== at)).toEqual([]);
});

test('only the members of features are picked', () => {
  const { part, features } = countedFeature();
  const object = { sessions: part, hooks: null, close: () => undefined };
  expect(pickMembers(features, object)).toEqual({ sessions: part, hooks: null });
  expect(pickMembers([], object)).toEqual({});
});
