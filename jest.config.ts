/**
 * @jest-config-loader ts-node
 * @jest-config-loader-options {"transpileOnly":true,"compilerOptions":{"module":"CommonJS","moduleResolution":"bundler"}}
 */
import type { Config } from 'jest';

const config: Config = {
  testEnvironment: 'node',
  roots: ['<rootDir>/test'],
  testMatch: ['**/*.test.ts'],
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  transform: { '^.+\\.ts$': ['ts-jest', { useESM: true, tsconfig: 'tsconfig.json' }] },
  collectCoverageFrom: ['machines/**/*.ts', 'src/**/*.ts'],
  testTimeout: 60_000,
  // Two cores are what it is made for: jest itself would leave one of them idle.
  maxWorkers: '100%',
};
export default config;
