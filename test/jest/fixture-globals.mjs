// What fixtures import as `@jest/globals`, and keep for all suites of a process: functions that call those of the
// running suite. `expect` is the same in all suites.

/** The function at that path which the running suite has. */
const current = (...path) =>
  new Proxy(() => undefined, {
    apply: (_, self, values) => Reflect.apply(found(path), self, values),
    get: (_, key) => current(...path, key),
  });

const found = (path) => path.reduce((value, key) => value[key], globalThis.jestGlobals);

export const afterAll = current('afterAll');
export const afterEach = current('afterEach');
export const beforeAll = current('beforeAll');
export const beforeEach = current('beforeEach');
export const describe = current('describe');
export const { expect } = globalThis.jestGlobals;
export const it = current('it');
export const jest = current('jest');
export const test = current('test');
