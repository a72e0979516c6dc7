// What an opening and a close do with the parts if one of them fails, and who closes the store of the caller.

import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { memoryStore } from '../../src/stores/memory/memory-ledger-store.js';
import { winstonLog } from '../../src/system/winston-log.js';
import type { LedgerStore } from '../../src/engine/ports/ledger/ledger-store.js';
import { keyFolder } from '../../src/home/home-paths.js';
import { openTurnpike, type Turnpike, type TurnpikeOptions } from '../../src/host/turnpike.js';
import { tempFolder } from '../fixtures/temp-folder.js';

let folder: string;
const at = (name: string): string => join(folder, name);

beforeEach(() => {
  folder = tempFolder('opening');
});

/** A store that records the called methods, with some methods replaced. */
function watched(methods: Partial<LedgerStore> = {}): { readonly store: LedgerStore; readonly calls: string[] } {
  const calls: string[] = [];
  const store = new Proxy<LedgerStore>(memoryStore(), {
    get: (target, name) => {
      const replaced = Reflect.get(methods, name) as unknown;
      const value = replaced ?? (Reflect.get(target, name) as unknown);
      if (typeof value !== 'function') return value;
      return (...given: unknown[]): unknown => {
        calls.push(String(name));
        return Reflect.apply(value as (...all: unknown[]) => unknown, target, given);
      };
    },
  });
  return { store, calls };
}

const opened = (store: LedgerStore, more: Partial<TurnpikeOptions> = {}): Promise<Turnpike> =>
  openTurnpike({ store, sandbox: at('sandbox'), state: at('state'), log: winstonLog('silent'), ...more });

const fail = (message: string) => (): Promise<never> => Promise.reject(new Error(message));

describe('a part that cannot be closed', () => {
  test('D13 close() closes the other parts, releases the local state, and throws the first error', async () => {
    const turnpike = await opened(watched({ close: fail('no close') }).store);
    await expect(turnpike.close()).rejects.toThrow('no close');
    expect(existsSync(at('state/control.sock'))).toBe(false);
    await (await opened(memoryStore())).close();
  });

  test('D13 an opening that fails throws its own error and releases the local state', async () => {
    const { store } = watched({ acquire: fail('no writer'), close: fail('no close') });
    await expect(opened(store)).rejects.toThrow('no writer');
    await (await opened(memoryStore())).close();
  });
});

describe('the store of the caller', () => {
  test.each<readonly [string, Partial<TurnpikeOptions>]>([
    ['an unknown interpreter', { interpreter: 'fast' as 'xstate' }],
    ['an inspector without its interpreter', { inspect: () => undefined, interpreter: 'table-driven' }],
    ['a home as well', { home: 'home' }],
    ['no sandbox', { sandbox: undefined } as object],
    ['a key folder in the sandbox', { keys: 'sandbox/keys' }],
  ])('is closed, and nothing is read or created, with %s', async (_what, options) => {
    const { keys, home } = options;
    const { store, calls } = watched();
    const places = { ...(keys && { keys: at(keys) }), ...(home && { home: at(home) }) };
    await expect(opened(store, { ...options, ...places })).rejects.toMatchObject({ code: 'USAGE' });
    expect(calls).toEqual(['close']);
    expect(readdirSync(folder)).toEqual([]);
  });

  test.each([
    ['the local state is locked', {}],
    ['the store has no head', { head: fail('no head') }],
    ['the ledger has another writer', { acquire: fail('no writer') }],
  ])('is closed once when %s', async (what, methods) => {
    const first = what.includes('locked') ? await opened(memoryStore()) : null;
    const { store, calls } = watched(methods);
    await expect(opened(store)).rejects.toThrow();
    expect(calls.filter((name) => name === 'close')).toHaveLength(1);
    await first?.close();
    await (await opened(memoryStore())).close();
  });

  test('is closed when the ledger key cannot be read', async () => {
    const { store, calls } = watched();
    mkdirSync(at('keys'));
    writeFileSync(keyFolder(at('keys')).ledgerKey.privateKey, 'no key\n', { mode: 0o600 });
    await expect(opened(store, { keys: at('keys') })).rejects.toMatchObject({ code: 'POLICY_INVALID' });
    expect(calls.at(-1)).toBe('close');
  });

  test('an opening that fails throws its own error if the store cannot be closed either', async () => {
    const { store } = watched({ head: fail('no head'), close: fail('no close') });
    await expect(opened(store)).rejects.toThrow('no head');
  });
});

describe('a folder in the sandbox', () => {
  test.each(['sandbox/keys', 'sandbox/case/deep/keys', 'link/keys', 'sandbox'])(
    '%s is rejected before it is created',
    async (keys) => {
      mkdirSync(at('sandbox/case'), { recursive: true });
      symlinkSync(at('sandbox/case'), at('link'));
      await expect(opened(memoryStore(), { keys: at(keys) })).rejects.toMatchObject({ code: 'USAGE' });
      expect(readdirSync(at('sandbox'), { recursive: true })).toEqual(['case']);
      expect(existsSync(at('state'))).toBe(false);
    },
  );

  test('is rejected before the other folder is created', async () => {
    const places = { keys: at('keys'), state: at('sandbox/state') };
    await expect(opened(memoryStore(), places)).rejects.toMatchObject({ code: 'USAGE' });
    expect(readdirSync(folder)).toEqual([]);
  });
});
