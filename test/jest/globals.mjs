// What suites import as `@jest/globals`. A fixture keeps what it imported from here for all suites of a process.
// `expect` is the same in all of them; the others are new in each suite.

/** The function of that name that the running suite has, and what belongs to it. */
const current = (name) =>
  new Proxy(() => undefined, {
    apply: (_, self, values) => Reflect.apply(globalThis.jestGlobals[name], self, values),
    get: (_, key) => globalThis.jestGlobals[name][key],
  });

export const afterAll = current('afterAll');
export const afterEach = current('afterEach');
export const beforeAll = current('beforeAll');
export const beforeEach = current('beforeEach');
export const describe = current('describe');
export const { expect } = globalThis.jestGlobals;
export const it = current('it');
export const jest = current('jest');
export const test = current('test');
