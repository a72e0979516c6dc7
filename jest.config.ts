/**
 * @jest-config-loader ts-node
 * @jest-config-loader-options {"transpileOnly":true,"compilerOptions":{"module":"CommonJS","moduleResolution":"bundler"}}
 */
import type { Config } from 'jest';

const config: Config = {
  testEnvironment: './jest.environment.mjs',
  roots: ['<rootDir>/test'],
  testMatch: ['**/*.test.ts'],
  extensionsToTreatAsEsm: ['.ts'],
  globalSetup: './jest.setup.mjs',
  globalTeardown: './jest.teardown.mjs',
  moduleNameMapper: {
    // Below `build/packages` what is imported is JavaScript.
    '^(\\.{1,2}/(?!chunk-).*)\\.js$': '$1',
    '^typebox$': '<rootDir>/build/packages/typebox/index.js',
    '^typebox/(.*)$': '<rootDir>/build/packages/typebox/$1.js',
    '^kysely$': '<rootDir>/build/packages/kysely.cjs',
  },
  transform: { '^.+\\.ts$': ['ts-jest', { useESM: true, tsconfig: 'tsconfig.json' }] },
  collectCoverageFrom: ['machines/**/*.ts', 'src/**/*.ts'],
  testTimeout: 60_000,
  // Half of the time a worker waits, for a disk, a database or a process that it killed: three keep two cores busy.
  maxWorkers: 3,
  // What a suite leaves behind adds up, and to collect garbage beside it takes longer and longer.
  workerIdleMemoryLimit: '700MB',
};
export default config;
