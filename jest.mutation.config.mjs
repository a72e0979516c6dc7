// jest as `npm run mutate` runs it: one project with the suites of `npm test`, since Stryker knows no projects.
// The rest is as in jest.config.ts.

export default {
  testEnvironment: './jest.environment.mjs',
  roots: ['<rootDir>/test'],
  testMatch: ['**/*.test.ts'],
  // Suites about the text of the sources find the mutants themselves, and campaigns take minutes.
  testPathIgnorePatterns: ['\\.campaign\\.test\\.ts$', '/test/(?:docs|tidy|layers|determinism)'],
  extensionsToTreatAsEsm: ['.ts'],
  globalSetup: './jest.setup.mjs',
  moduleNameMapper: {
    '^(\\.{1,2}/(?!chunk-).*)\\.js$': '$1',
    '^typebox$': '<rootDir>/build/packages/typebox/index.js',
    '^typebox/(.*)$': '<rootDir>/build/packages/typebox/$1.js',
    '^(kysely|libphonenumber-js)$': '<rootDir>/build/packages/$1.cjs',
  },
  transform: { '^.+\\.ts$': ['ts-jest', { useESM: true, tsconfig: 'tsconfig.json', diagnostics: false }] },
  testTimeout: 120_000,
};
