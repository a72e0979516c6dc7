// What an opening and a close do with the parts when one of them fails, and who closes the store of the caller.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { memoryStore } from '../../src/adapters/memory-ledger-store.js';
import { winstonLog } from '../../src/adapters/winston-log.js';
import type { LedgerStore } from '../../src/ports/ledger-store.js';
import { openTurnpike, type Turnpike, type TurnpikeOptions } from '../../src/runtime/turnpike.js';
import { tempFolder } from '../fixtures/temp-folder.js';

let folder: string;
const at = (name: string): string => join(folder, name);

beforeEach(() => {
  folder = tempFolder('opening');
});

/** A store that lists the methods that are called on it, with some methods replaced. */
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
