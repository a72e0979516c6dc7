// What a suite imports as `@jest/globals`: evaluated for each suite.

export const { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest, test } = globalThis.jestGlobals;
