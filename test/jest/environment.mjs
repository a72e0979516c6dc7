// Where suites run: in the context of jest's process. What they replace there is put back after each suite.

import { ModernFakeTimers } from '@jest/fake-timers';
import { existsSync, rmSync } from 'node:fs';
import { register } from 'node:module';
import { pathToFileURL } from 'node:url';
import { MessageChannel } from 'node:worker_threads';
import { ModuleMocker } from 'jest-mock';

const { port1: replacements, port2: port } = new MessageChannel();
replacements.unref();
register('./loader.mjs', { parentURL: import.meta.url, data: { port }, transferList: [port] });

const { exit } = process;
/** What Node and jest themselves call in this process: a callback that they leave with a fake is lost. */
const REAL_TIMERS = ['nextTick', 'queueMicrotask', 'setImmediate'];
const mocker = new ModuleMocker(globalThis);
let suites = 0;

export default class NativeEnvironment {
  global = globalThis;
  moduleMocker = mocker;
  fakeTimers = null;
  fakeTimersModern;
  /** The URL of the suite. One that runs again in the same process is evaluated again. */
  url;
  /** What `test/fixtures/temp-folder.ts` made for this suite. */
  #folders = [];
  #variables = { ...process.env };

  constructor({ globalConfig, projectConfig }, { testPath, docblockPragmas }) {
    suites += 1;
    this.fakeTimersModern = new ModernFakeTimers({ config: projectConfig, global: globalThis });
    Object.assign(globalThis, { INTERPRETER: undefined }, projectConfig.globals, { tempFolders: this.#folders });
    this.url = pathToFileURL(testPath);
    this.url.searchParams.set('suite', suites);
    // A process that watches files would keep modules as they were.
    const hasOwn = docblockPragmas.modules === 'own' || globalConfig.watch || globalConfig.watchAll;
    const graph = [projectConfig.globals.INTERPRETER, hasOwn ? suites : undefined];
    if (graph.some((part) => part !== undefined)) this.url.searchParams.set('graph', graph.join('-'));
  }

  /** What suites have as `jest`. */
  get jest() {
    const timers = this.fakeTimersModern;
    return {
      spyOn: (...values) => mocker.spyOn(...values),
      restoreAllMocks: () => mocker.restoreAllMocks(),
      setTimeout: (ms) => void (globalThis[Symbol.for('TEST_TIMEOUT_SYMBOL')] = ms),
      useFakeTimers: (options = {}) =>
        timers.useFakeTimers({ ...options, doNotFake: [...REAL_TIMERS, ...(options.doNotFake ?? [])] }),
      useRealTimers: () => timers.useRealTimers(),
      advanceTimersByTime: (ms) => timers.advanceTimersByTime(ms),
      advanceTimersByTimeAsync: (ms) => timers.advanceTimersByTimeAsync(ms),
      unstable_mockModule: (name, create) => this.#replaceModule(name, create),
    };
  }

  /** What the suite imports later finds this module in its place. */
  #replaceModule(name, create) {
    if (!this.url.searchParams.has('graph')) throw new Error(`begin with /** @modules own */: this replaces ${name}`);
    const url = name.startsWith('.')
      ? new URL(name.replace(/js$/, 'ts'), new URL(this.url.pathname, this.url)).href
      : name;
    if (url.startsWith('file:') && !existsSync(new URL(url))) throw new Error(`there is no ${url}`);
    const key = `${suites} ${url}`;
    const module = `globalThis.replacedModules[${JSON.stringify(key)}]`;
    const modules = (globalThis.replacedModules ??= {});
    let text;
    let fails = false;
    try {
      modules[key] = create();
      const names = Object.keys(modules[key]).filter((each) => each !== 'default');
      text = `export const { ${names.join(', ')} } = ${module}; export default ${module}.default;`;
    } catch (error) {
      modules[key] = error;
      text = `throw ${module};`;
      fails = true;
    }
    replacements.postMessage({ url, suite: this.url.href, text, fails });
  }

  getVmContext() {
    return null;
  }

  async setup() {
    // Nothing.
  }

  async teardown() {
    this.fakeTimersModern.dispose();
    mocker.restoreAllMocks();
    Reflect.deleteProperty(globalThis, Symbol.for('TEST_TIMEOUT_SYMBOL'));
    delete globalThis.replacedModules;
    process.exit = exit;
    for (const name of Object.keys(process.env))
      if (!Object.hasOwn(this.#variables, name)) Reflect.deleteProperty(process.env, name);
    Object.assign(process.env, this.#variables);
    // A hook of the suite would come before those that close what still writes there.
    for (const folder of this.#folders) rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  }
}
