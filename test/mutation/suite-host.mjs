// Runs suites written for jest in this process, from one bundle that can be evaluated again within milliseconds. jest
// itself needs seconds for each run, and a mutation test needs thousands of runs.
//
// It supports what these suites use: describe, test, their `each`, and hooks. `expect` is jest's own.

import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import vm from 'node:vm';
import { expect } from 'expect';
import { bind } from 'jest-each';

const TEST_TIMEOUT_MS = 60_000;

/**
 * A bundle with the suites of one project.
 * @param path the bundle: a CommonJS module whose export `suites` maps paths to functions that import a suite
 */
export class SuiteHost {
  #script;
  #require;

  constructor(path) {
    const source = `(function (require, module, exports) {${readFileSync(path, 'utf8')}\n})`;
    this.#script = new vm.Script(source, { filename: path });
    this.#require = createRequire(join(path, '..', 'suite-host.cjs'));
  }

  /** Evaluates the bundle anew: no module keeps state of an earlier evaluation. */
  evaluate() {
    return new Evaluation(this.#script.runInThisContext(), this.#require);
  }
}

/** One evaluation of the bundle. */
class Evaluation {
  #collector = new Collector();
  #suites;

  constructor(factory, requirePackage) {
    const jestGlobals = this.#collector.globals;
    const require = (name) => (name === '@jest/globals' ? jestGlobals : requirePackage(name));
    const module = { exports: {} };
    factory(require, module, module.exports);
    this.#suites = module.exports.suites;
  }

  get paths() {
    return Object.keys(this.#suites);
  }

  /** Imports a suite and returns its tests in order. @throws what the suite throws outside of its tests */
  async collect(path) {
    return this.#collector.collect(this.#suites[path]);
  }

  /** Runs the hooks that end a suite. */
  async finish(tests) {
    for (const block of new Set(tests.flatMap(({ blocks }) => blocks)))
      if (block.begun) for (const hook of block.afterAll) await hook();
  }
}

/** Collects the tests that `describe` and `test` register. */
class Collector {
  #block = newBlock(null, '');
  #tests = [];

  constructor() {
    const describe = (title, register) => this.#inBlock(title, register);
    const test = (title, run) => this.#tests.push(this.#newTest(title, run));
    const skip = Object.assign(() => undefined, { each: () => () => undefined });
    this.globals = {
      describe: Object.assign(describe, { each: bind(describe, false), skip }),
      test: Object.assign(test, { each: bind(test), skip }),
      expect,
      jest: { setTimeout: () => undefined },
      beforeAll: (hook) => this.#block.beforeAll.push(hook),
      afterAll: (hook) => this.#block.afterAll.push(hook),
      beforeEach: (hook) => this.#block.beforeEach.push(hook),
      afterEach: (hook) => this.#block.afterEach.push(hook),
    };
    this.globals.it = this.globals.test;
  }

  async collect(importSuite) {
    this.#tests = [];
    this.#block = newBlock(null, '');
    await importSuite();
    return this.#tests;
  }

  #inBlock(title, register) {
    const outer = this.#block;
    this.#block = newBlock(outer, title);
    try {
      register();
    } finally {
      this.#block = outer;
    }
  }

  #newTest(title, run) {
    const blocks = [];
    for (let block = this.#block; block !== null; block = block.outer) blocks.unshift(block);
    return { name: [...blocks.map((block) => block.title), title].filter(Boolean).join(' '), blocks, run };
  }
}

const newBlock = (outer, title) => ({
  outer,
  title: String(title),
  begun: false,
  beforeAll: [],
  afterAll: [],
  beforeEach: [],
  afterEach: [],
});

/** Runs one test with its hooks. @throws what the test or a hook throws */
export async function runTest({ blocks, run }) {
  for (const block of blocks) {
    if (block.begun) continue;
    block.begun = true;
    for (const hook of block.beforeAll) await hook();
  }
  expect.setState({
    assertionCalls: 0,
    expectedAssertionsNumber: null,
    isExpectingAssertions: false,
    currentTestName: '',
  });
  for (const block of blocks) for (const hook of block.beforeEach) await hook();
  try {
    await within(callTest(run), TEST_TIMEOUT_MS);
    for (const { error } of expect.extractExpectedAssertionsErrors()) throw error;
  } finally {
    for (const block of [...blocks].reverse()) for (const hook of block.afterEach) await hook();
  }
}

/** A test with a parameter gets jest's `done` callback. */
const callTest = (run) =>
  run.length === 0
    ? run()
    : new Promise((resolve, reject) => run((error) => (error === undefined ? resolve() : reject(error))));

async function within(promise, timeout) {
  if (promise === undefined) return;
  let timer;
  const expired = new Promise((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`the test did not end within ${timeout} ms`)), timeout);
  });
  try {
    await Promise.race([promise, expired]);
  } finally {
    clearTimeout(timer);
  }
}
