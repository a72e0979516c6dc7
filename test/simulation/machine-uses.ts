// Detects direct use of the machine's time, randomness, timers and event loop, which the ports should provide.

import { AsyncLocalStorage, createHook } from 'node:async_hooks';
import { sep } from 'node:path';

/** Event loop turns of the simulation itself, which let promises settle. */
const OWN = /\/simulation\/world\b/;
const ROOT = process.cwd() + sep;
const FOLDERS = ['src', 'machines', 'test'].map((folder) => ROOT + folder + sep);
const isOurs = (line: string): boolean =>
  FOLDERS.some((folder) => line.includes(folder)) && !line.includes('machine-uses');
const STACK_LINES = 100;

/** Reads the machine's time without a function that could be replaced: `new Date()`. */
function watchDates(note: (what: string) => void): () => void {
  const real = globalThis.Date;
  globalThis.Date = new Proxy(real, {
    construct: (target, args, as) => {
      if (args.length === 0) note('new Date');
      return Reflect.construct(target, args, as) as Date;
    },
  });
  return () => (globalThis.Date = real);
}

function watchEnvironment(note: (what: string) => void): () => void {
  const real = process.env;
  process.env = new Proxy(real, {
    get: (target, name, receiver) => {
      note('process.env');
      return Reflect.get(target, name, receiver) as unknown;
    },
  });
  return () => (process.env = real);
}

type Reads = [object: Record<string, unknown>, name: string, label: string];

/** @returns each use by `work` and its callees, once, with the first line of our code that led to it */
export async function machineUses(work: () => Promise<unknown>): Promise<readonly string[]> {
  const uses = new Set<string>();
  const lines = Error.stackTraceLimit;
  Error.stackTraceLimit = STACK_LINES;
  // Uses by an earlier test or by the test runner do not belong to this work.
  const inside = new AsyncLocalStorage<true>();
  const note = (what: string): void => {
    if (inside.getStore() !== true) return;
    const stack = new Error(what).stack?.split('\n') ?? [];
    const ours = stack.find(isOurs);
    // Timers of the test runner for this very test have no line of our code.
    if (ours !== undefined && !OWN.test(ours)) uses.add(`${what} ${ours.trim()}`);
  };
  const hook = createHook({
    init: (_id, type) => {
      if (type !== 'PROMISE') note(type);
    },
  });
  const restore = readsOf().map(([object, name, label]) => {
    const real = object[name] as (...args: unknown[]) => unknown;
    object[name] = (...args: unknown[]) => {
      note(label);
      return real.apply(object, args);
    };
    return (): unknown => (object[name] = real);
  });
  restore.push(watchDates(note), watchEnvironment(note));
  hook.enable();
  try {
    await inside.run(true, work);
  } finally {
    hook.disable();
    for (const put of restore.reverse()) put();
    Error.stackTraceLimit = lines;
  }
  return [...uses].sort();
}

const readsOf = (): readonly Reads[] => [
  [Date as unknown as Reads[0], 'now', 'Date.now'],
  [process as unknown as Reads[0], 'hrtime', 'process.hrtime'],
  [performance as unknown as Reads[0], 'now', 'performance.now'],
  [Math as unknown as Reads[0], 'random', 'Math.random'],
  [crypto as unknown as Reads[0], 'randomUUID', 'crypto.randomUUID'],
  [crypto as unknown as Reads[0], 'getRandomValues', 'crypto.getRandomValues'],
];
