// How jest runs a suite here: as modules of its process. Node imports them, as it imports them for users, and a file of
// the source is evaluated once for all suites of a process. jest's own runtime makes a context for each suite and
// evaluates every file in it, which took a third of the processor time of all tests.
//
// A suite that replaces modules, or tests what has not been loaded, begins with `/** @modules own */`: the project's
// modules are evaluated for it alone.

import asyncHooks from 'node:async_hooks';
import { createRequire } from 'node:module';
import { mapOf } from './compiled.mjs';

const require = createRequire(import.meta.url);
const { AsyncLocalStorage } = asyncHooks;
/** Later versions than Node 20 do not let it be replaced, and need not. */
const IS_REPLACEABLE = Object.getOwnPropertyDescriptor(asyncHooks, 'AsyncLocalStorage').writable === true;
/** Where jest-circus has its list of handlers: none of an earlier suite may be in it. */
const HANDLERS = Symbol.for('EVENT_HANDLERS');

export default class NativeRuntime {
  #environment;

  constructor(_config, environment) {
    this.#environment = environment;
  }

  unstable_shouldLoadAsEsm() {
    return true;
  }

  async unstable_importModule() {
    await import(this.#environment.url.href);
  }

  requireModule(path) {
    return require(path);
  }

  /** Loads jest-circus anew: it collects the tests of one suite in variables of its own. */
  requireInternalModule(path) {
    const last = require.cache[path];
    Reflect.deleteProperty(require.cache, path);
    // Node lists it with those that loaded it, too.
    last?.parent?.children.splice(last.parent.children.indexOf(last), 1);
    Reflect.deleteProperty(globalThis, HANDLERS);
    if (IS_REPLACEABLE) asyncHooks.AsyncLocalStorage = OneTestAtATime;
    try {
      return require(path);
    } finally {
      if (IS_REPLACEABLE) asyncHooks.AsyncLocalStorage = AsyncLocalStorage;
    }
  }

  /** For what suites and fixtures import as `@jest/globals`. */
  setGlobalsForRuntime(globals) {
    globalThis.jestGlobals = { ...globals, jest: this.#environment.jest };
  }

  getSourceMaps() {
    return new SourceMaps();
  }

  getAllCoverageInfoCopy() {
    return null;
  }

  enterTestCode() {}
  leaveTestCode() {}
  teardown() {}
}

/** Where the source map of a file is: jest reads it when it shows a stack. */
class SourceMaps extends Map {
  get(path) {
    return mapOf(path);
  }
}

/**
 * Where jest-circus has the test or hook that runs. They run one after the other: to follow them through every promise,
 * as Node 20 does for its own, took a twentieth of the time of all tests. So no suite may use `test.concurrent`.
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
