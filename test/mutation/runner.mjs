// The test runner of `npm run mutate`, a plugin of StrykerJS. It bundles the suites of `suites.mjs` once per process,
// and evaluates the bundle anew for every mutant, so that no value computed at an import outlives a mutant.
//
// A test covers the code that it executes and the code that the import of its suite executes. So there are no static
// mutants, and each mutant runs only the tests that can fail, the namesake suite first.

import {
  declareFactoryPlugin,
  DryRunStatus,
  MutantRunStatus,
  PluginKind,
  TestStatus,
} from '../../tools/ci/stryker.mjs';
import { mkdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { bundleSuites } from './bundle-suites.mjs';
import { runTest, SuiteHost } from './suite-host.mjs';
import { listSuites, suitesFor } from './suites.mjs';

/** The object through which instrumented code learns the active mutant and reports coverage. */
const stryker = (globalThis.__stryker__ ??= {});

class BundleTestRunner {
  #host = null;
  #suites = [];

  capabilities() {
    return { reloadEnvironment: true };
  }

  /** The current folder is Stryker's copy of the project, with instrumented sources. */
  async init() {
    const root = process.cwd();
    const folder = join(root, 'build/mutation');
    mkdirSync(folder, { recursive: true });
    const bundle = join(folder, `suites-${process.pid}.cjs`);
    this.#suites = listSuites(root);
    await bundleSuites(root, this.#suites, bundle);
    this.#host = new SuiteHost(bundle);
  }

  /** Runs every test, each suite in an evaluation of its own. */
  async dryRun() {
    stryker.activeMutant = undefined;
    stryker.mutantCoverage = { static: {}, perTest: {} };
    const tests = [];
    for (const path of this.#suites) {
      stryker.currentTestId = loadId(path);
      const evaluation = this.#host.evaluate();
      const collected = await collect(evaluation, path);
      for (const test of collected) tests.push(await this.#measure(test, path));
      stryker.currentTestId = undefined;
      await evaluation.finish(collected);
    }
    const { perTest } = stryker.mutantCoverage;
    for (const { id, fileName } of tests) perTest[id] = mergeCoverage(perTest[id], perTest[loadId(fileName)]);
    for (const path of this.#suites) Reflect.deleteProperty(perTest, loadId(path));
    return { status: DryRunStatus.Complete, tests, mutantCoverage: { static: {}, perTest } };
  }

  async #measure(test, path) {
    const result = { id: test.id, name: test.id, fileName: path };
    stryker.currentTestId = test.id;
    const from = performance.now();
    const error = await errorOf(() => runTest(test));
    const timeSpentMs = Math.ceil(performance.now() - from);
    return error === null
      ? { ...result, timeSpentMs, status: TestStatus.Success }
      : { ...result, timeSpentMs, status: TestStatus.Failed, failureMessage: messageOf(error) };
  }

  async mutantRun({ activeMutant, testFilter, hitLimit, sandboxFileName }) {
    stryker.activeMutant = activeMutant.id;
    stryker.mutantCoverage = undefined;
    stryker.currentTestId = undefined;
    stryker.hitCount = hitLimit === undefined ? undefined : 0;
    stryker.hitLimit = hitLimit;
    const wanted = testFilter === undefined ? null : new Set(testFilter);
    const source = relative(process.cwd(), sandboxFileName);
    const failure = await this.#findFailure(suitesFor(source, this.#suites), wanted);
    const hits = stryker.hitCount;
    stryker.activeMutant = undefined;
    if (hitLimit !== undefined && hits > hitLimit)
      return { status: MutantRunStatus.Timeout, reason: `Hit limit reached (${hits}/${hitLimit})` };
    return failure.message === null
      ? { status: MutantRunStatus.Survived, nrOfTests: failure.ran }
      : {
          status: MutantRunStatus.Killed,
          killedBy: failure.by,
          failureMessage: failure.message,
          nrOfTests: failure.ran,
        };
  }

  /** Runs the tests of `suites` that are in `wanted`, or all, until one fails. */
  async #findFailure(suites, wanted) {
    let ran = 0;
    const evaluation = this.#host.evaluate();
    for (const path of suites) {
      if (wanted !== null && ![...wanted].some((id) => id.startsWith(`${path} `))) continue;
      let collected;
      try {
        collected = await collect(evaluation, path);
      } catch (error) {
        const by = [...(wanted ?? [])].filter((id) => id.startsWith(`${path} `)).slice(0, 1);
        return { ran, by, message: messageOf(error) };
      }
      const tests = collected.filter(({ id }) => wanted === null || wanted.has(id));
      for (const test of tests) {
        ran += 1;
        const error = await errorOf(() => runTest(test));
        if (error !== null) return { ran, by: [test.id], message: messageOf(error) };
      }
      const error = await errorOf(() => evaluation.finish(tests));
      if (error !== null) return { ran, by: tests.slice(0, 1).map(({ id }) => id), message: messageOf(error) };
    }
    return { ran, by: [], message: null };
  }
}

const loadId = (path) => `${path} (import)`;

/** The tests of a suite, with ids that are unique and the same in every run. */
async function collect(evaluation, path) {
  const tests = await evaluation.collect(path);
  return tests.map((test, n) => ({ ...test, id: `${path} ${n} ${test.name}` }));
}

function mergeCoverage(one = {}, other = {}) {
  const merged = { ...one };
  for (const [mutant, hits] of Object.entries(other)) merged[mutant] = (merged[mutant] ?? 0) + hits;
  return merged;
}

async function errorOf(run) {
  try {
    await run();
    return null;
  } catch (error) {
    return error;
  }
}

const messageOf = (error) => String(error?.stack ?? error).slice(0, 2_000);

const createRunner = () => new BundleTestRunner();
createRunner.inject = [];

export const strykerPlugins = [declareFactoryPlugin(PluginKind.TestRunner, 'bundle', createRunner)];
