// jest as `npm run mutate` runs it: one project with the suites of `npm test`, since Stryker knows no projects.
// The rest is as in jest.config.ts.

import bundlePackages from './jest.setup.mjs';

// Here, since Stryker runs suites in the process that has resolved their imports before jest calls its set-up: what is
// missing then is missing to the end.
await bundlePackages();

export default {
  testEnvironment: './jest.environment.mjs',
  // The suites of the folders that are mutated. With those of the runtime a mutant would take minutes.
  roots: ['step', 'policy', 'machines', 'kernel'].map((folder) => `<rootDir>/test/${folder}`),
  testMatch: ['**/*.test.ts'],
  testPathIgnorePatterns: ['\\.campaign\\.test\\.ts$'],
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: {
    '^(\\.{1,2}/(?!chunk-).*)\\.js$': '$1',
    '^typebox$': '<rootDir>/build/packages/typebox/index.js',
    '^typebox/(.*)$': '<rootDir>/build/packages/typebox/$1.js',
    '^(kysely|libphonenumber-js)$': '<rootDir>/build/packages/$1.cjs',
  },
  transform: { '^.+\\.ts$': ['ts-jest', { useESM: true, tsconfig: 'tsconfig.json', diagnostics: false }] },
  testTimeout: 120_000,
};
