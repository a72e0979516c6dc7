// Where tests run: jest's own environment of Node, with a global object that V8 looks names up in by itself. In jest's
// own, every `Object`, `JSON` or `Math` that code of a suite says calls back into two layers of JavaScript.

import { TestEnvironment } from 'jest-environment-node';
import asyncHooks from 'node:async_hooks';
import { rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { constants, createContext } from 'node:vm';
import { keepCompiled } from './compiled.mjs';

/** What each context has of its own, and jest replaces by that of Node, which makes what suites compare. */
const REPLACED = ['ArrayBuffer', 'Uint8Array', 'global'];

const { AsyncLocalStorage } = asyncHooks;
/** Later versions than Node 20 do not let it be replaced. */
const IS_REPLACEABLE = Object.getOwnPropertyDescriptor(asyncHooks, 'AsyncLocalStorage').writable === true;
keepCompiled();

/**
 * In which jest keeps what test or hook runs, to say whose an error is that nothing caught. They run one after the
 * other here: to follow them through every promise, as Node does for its own, took a twentieth of the time of all
 * tests.
 */
class OneTestAtATime {
  #store;

  getStore() {
    return this.#store;
  }

  run(store, act) {
    const outer = this.#store;
    this.#store = store;
    const leave = () => {
      this.#store = outer;
    };
    return act().finally(leave);
  }
}

export default class PlainEnvironment extends TestEnvironment {
  /** What `test/fixtures/temp-folder.ts` made for this suite. */
  #folders = [];

  constructor(config, context) {
    super(config, context);
    const global = plainGlobal(this.global);
    this.global = global;
    this.context = global;
    this.moduleMocker = new this.moduleMocker.constructor(global);
    this.fakeTimersModern.dispose();
    this.fakeTimersModern = new this.fakeTimersModern.constructor({ config: config.projectConfig, global });
    global.tempFolders = this.#folders;
    // The files that setup.mjs makes load shared packages with it.
    global.requireOutside = createRequire(import.meta.url);
    if (IS_REPLACEABLE) asyncHooks.AsyncLocalStorage = OneTestAtATime;
  }

  handleTestEvent({ name }) {
    // jest has made its own by now.
    if (IS_REPLACEABLE && name === 'setup') asyncHooks.AsyncLocalStorage = AsyncLocalStorage;
  }

  async teardown() {
    await super.teardown();
    // A hook of the suite would come before those that close what still writes there.
    for (const folder of this.#folders) rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** A global object with all that `prepared` has. */
function plainGlobal(prepared) {
  const global = createContext(constants.DONT_CONTEXTIFY);
  for (const key of Reflect.ownKeys(prepared)) {
    if (Object.hasOwn(global, key) && !REPLACED.includes(key)) continue;
    const { value, writable, ...how } = Object.getOwnPropertyDescriptor(prepared, key);
    if (how.get === undefined) Object.defineProperty(global, key, { value, writable, ...how });
    else Object.defineProperty(global, key, { ...how, get: () => prepared[key] });
  }
  global.global = global;
  global.Error.stackTraceLimit = prepared.Error.stackTraceLimit;
  for (const name of ['asyncDispose', 'dispose']) global.Symbol[name] ??= prepared.Symbol[name];
  return global;
}
