// What features add to an open Turnpike.

import { describe, expect, test } from '@jest/globals';
import type { Effect } from '../../src/core/contract/run/effect.js';
import { FEATURES } from '../../src/features/declare-features.js';
import type { Sessions } from '../../src/features/sessions/sessions.js';
import { CONTROL_OPERATIONS } from '../../src/host/control/control-messages.js';
import { FeatureParts, openAddedTools, openMembers, remoteMembers } from '../../src/host/feature-parts.js';
import { createDeferred } from '../../src/runtime/deferred.js';
import type {
  AddedMembers,
  EffectExecutor,
  HostAccess,
  HostFeature,
  HostParts,
  PartEvents,
  RequestSender,
} from '../../src/runtime/host-feature.js';

const access = {} as HostAccess;
const partsOf = (...features: readonly HostFeature[]): FeatureParts =>
  new FeatureParts(
    features.map((inHost) => ({ inHost })),
    () => access,
  );

/** A feature with decision points, which counts what happens to it. */
function countedFeature() {
  const events: string[] = [];
  const part = { ask: () => Promise.reject(new Error('unused')), close: () => events.push('closed') };
  const create = (host: HostAccess) => {
    events.push(host === access ? 'created' : 'created with something else');
    return Promise.resolve(part);
  };
  return { events, part, feature: { parts: { decisionPoints: create } } satisfies HostFeature };
}

describe('the parts of features', () => {
  test('are created with what the host offers, by their first use', async () => {
    const { events, part, feature } = countedFeature();
    const parts = partsOf({}, feature);
    expect(events).toEqual([]);
    expect([await parts.get('decisionPoints'), await parts.get('decisionPoints')]).toEqual([part, part]);
    expect(events).toEqual(['created']);
  });

  test('are passed to `onCreated` once, when they are created', async () => {
    const { part, feature } = countedFeature();
    const created: unknown[] = [];
    const parts = new FeatureParts(
      [{ inHost: feature }],
      () => access,
      (one) => created.push(one),
    );
    expect(created).toEqual([]);
    await Promise.all([parts.get('decisionPoints'), parts.get('decisionPoints')]);
    expect(created).toEqual([part]);
  });

  test('are closed if they were created', async () => {
    const [used, unused] = [countedFeature(), countedFeature()];
    const parts = partsOf(used.feature);
    await parts.get('decisionPoints');
    for (const close of [...parts.closeSteps, ...partsOf(unused.feature).closeSteps]) await close();
    expect([used.events, unused.events]).toEqual([['created', 'closed'], []]);
  });

  test('reject a call if no feature has the part', async () => {
    await expect(partsOf({}).get('decisionPoints')).rejects.toMatchObject({ code: 'USAGE' });
  });

  test('are null for a call that does without them', async () => {
    const { part, feature } = countedFeature();
    expect(await partsOf({}).find('decisionPoints')).toBeNull();
    expect(await partsOf(feature).find('decisionPoints')).toBe(part);
  });

  test('have one name each in the registry', () => {
    const names = FEATURES.flatMap(({ inHost }) => Object.keys(inHost?.parts ?? {}));
    expect(names.length).toBeGreaterThan(0);
    expect(new Set(names).size).toBe(names.length);
  });
});

type Points = HostParts['decisionPoints'] & PartEvents;

/** A part whose creation each test settles. `closed` has the parts that were closed. */
function deferredPart() {
  const creations: ReturnType<typeof createDeferred<Points>>[] = [];
  const closed: Points[] = [];
  const parts = partsOf({
    parts: {
      decisionPoints: () => {
        const creation = createDeferred<Points>();
        creations.push(creation);
        return creation.promise;
      },
    },
  });
  const createPart = (): Points => {
    const part: Points = { ask: () => Promise.reject(new Error('unused')), close: () => closed.push(part) };
    return part;
  };
  const close = (): Promise<void> => parts.closeSteps[0]?.() ?? Promise.resolve();
  return { get: () => parts.get('decisionPoints'), close, creations, closed, createPart };
}

describe('a part', () => {
  test('is created once for concurrent callers', async () => {
    const { get, creations, createPart } = deferredPart();
    expect(creations.length).toBe(0);
    const calls = [get(), get()];
    // The caller has gone on before the creation begins.
    await turn();
    const part = createPart();
    creations[0]?.resolve(part);
    expect([...(await Promise.all(calls)), await get()]).toEqual([part, part, part]);
    expect(creations.length).toBe(1);
  });

  test('whose creation fails rejects every call that waits for it, and the next call creates it', async () => {
    const { get, creations, createPart } = deferredPart();
    const calls = Promise.allSettled([get(), get()]);
    await turn();
    creations[0]?.reject(new Error('the module is missing'));
    expect(await calls).toMatchObject([{ reason: { message: 'the module is missing' } }, { status: 'rejected' }]);
    const next = get();
    await turn();
    const part = createPart();
    creations[1]?.resolve(part);
    expect(await next).toBe(part);
  });

  test('that is being created is waited for by its close', async () => {
    const { get, close, creations, closed, createPart } = deferredPart();
    void get();
    await turn();
    let hasClosed = false;
    const closing = close().then(() => (hasClosed = true));
    await turn();
    expect([hasClosed, closed]).toEqual([false, []]);
    const part = createPart();
    creations[0]?.resolve(part);
    await closing;
    expect(closed).toEqual([part]);
  });

  test('is closed at once if it is created after the close', async () => {
    const { get, close, creations, closed, createPart } = deferredPart();
    await close();
    const call = get();
    await turn();
    const part = createPart();
    creations[0]?.resolve(part);
    expect([await call, closed]).toEqual([part, [part]]);
  });

  test('reports no error of its creation when it is closed, because the caller has it', async () => {
    const { get, close, creations } = deferredPart();
    const call = get().catch((error: unknown) => error);
    await turn();
    const closing = close();
    creations[0]?.reject(new Error('the module is missing'));
    await expect(closing).resolves.toBeUndefined();
    expect(await call).toMatchObject({ message: 'the module is missing' });
  });
});

const turn = (): Promise<unknown> => new Promise((resolve) => setImmediate(resolve));

describe('the effects of features', () => {
  test('create their executor with the first effect, and abort it', async () => {
    const events: string[] = [];
    const executor: EffectExecutor = {
      run: () => Promise.resolve({ status: 'unknown' }),
      settle: () => ({ status: 'unknown' }),
      abort: () => void events.push('aborted'),
    };
    const create = () => {
      events.push('created');
      return Promise.resolve(executor);
    };
    const parts = partsOf({ effects: { has: ({ action }) => action === 'MINE', changesSandbox: false, create } });
    const [effects] = parts.effects;
    expect([effects?.has({ action: 'MINE' } as Effect), effects?.has({ action: 'OTHER' } as Effect)]).toEqual([
      true,
      false,
    ]);
    expect(events).toEqual([]);
    expect(await effects?.run({ action: 'MINE' } as Effect)).toEqual({ status: 'unknown' });
    for (const abort of parts.abortSteps) await abort();
    expect(events).toEqual(['created', 'aborted']);
  });
});

describe('the tools of features', () => {
  const opened: string[] = [];
  const featureOf = (option: 'hooks' | 'upstreams') => ({
    inHost: {
      tools: {
        option,
        open: () => {
          opened.push(option);
          return Promise.resolve({ tools: [], problems: [], close: () => Promise.resolve() });
        },
      },
    },
  });
  /** The options for which the tools were opened. */
  async function optionsOpened(options: object): Promise<readonly string[]> {
    opened.length = 0;
    await openAddedTools([featureOf('hooks'), featureOf('upstreams')], options, []);
    return [...opened];
  }

  test('are opened in the order of the options, for true and for the folder of upstream servers', async () => {
    expect(await optionsOpened({ hooks: true, upstreams: 'servers' })).toEqual(['upstreams', 'hooks']);
    expect(await optionsOpened({ hooks: false, upstreams: false })).toEqual([]);
    for (const hooks of [undefined, null, 0, '', 'yes']) expect(await optionsOpened({ hooks })).toEqual([]);
  });

  test('reject an option that no feature has', async () => {
    await expect(openAddedTools([], { hooks: true }, [])).rejects.toMatchObject({ code: 'USAGE' });
  });
});

const { operations } = FEATURES.flatMap(({ inHost }) => inHost?.members?.sessions ?? [])[0] as {
  readonly operations: Readonly<Record<keyof Sessions, true>>;
};

/** Two members, whose parts count their creations. */
function countedMembers() {
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
  const { created, features, parts } = countedMembers();
  const { sessions } = await openMembers(features, parts, {});
  expect(Object.keys(sessions)).toEqual(Object.keys(operations));
  expect(created).toEqual([]);
  expect(await Promise.all([sessions.status('one'), sessions.status('two')])).toEqual(['one', 'two']);
  expect(created).toEqual([['sessions']]);
});

test('a member with an option is created if the option is true, and is null otherwise', async () => {
  const { created, part, features, parts } = countedMembers();
  for (const options of [{}, { hooks: false }, { hooks: 'yes' } as object])
    expect((await openMembers(features, parts, options)).hooks).toBeNull();
  expect(created).toEqual([]);
  expect((await openMembers(features, parts, { hooks: true })).hooks).toBe(part);
  expect(created).toEqual([['gate']]);
});

test('an operation that the part lacks rejects', async () => {
  const { features, parts } = countedMembers();
  const { sessions } = await openMembers(features, parts, {});
  await expect(sessions.list()).rejects.toThrow('a part lacks its operation list');
});

test('the member of another process is created once, with that process and the contract', async () => {
  const { created, features } = countedMembers();
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
