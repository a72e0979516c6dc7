import { describe, expect, test } from '@jest/globals';
import type { Effect } from '../../src/core/contract/run/effect.js';
import { FEATURES } from '../../src/features/declare-features.js';
import { FeatureParts, openAddedTools } from '../../src/host/feature-parts.js';
import type { EffectExecutor, HostAccess, HostFeature } from '../../src/runtime/host-feature.js';

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
