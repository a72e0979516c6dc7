import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';

/** What a module exports, by name. */
export type ModuleExports = Readonly<Record<string, unknown>>;

/**
 * Loads a JavaScript module, which executes it with the rights of this process: only for code that its caller trusts.
 * @returns null if it has not loaded in `msMax` milliseconds
 * @throws what the module throws
 */
export async function loadModule(path: string, msMax: number): Promise<ModuleExports | null> {
  const waiting = new AbortController();
  try {
    const loading = import(pathToFileURL(path).href) as Promise<ModuleExports>;
    return await Promise.race([loading, delay(msMax, null, { signal: waiting.signal })]);
  } finally {
    waiting.abort();
  }
}
