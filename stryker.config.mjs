// Mutation tests: `npm run mutate` (all), `npm run mutate -- --mutate src/step/parse.ts` (one file).
// Incremental: build/mutation/incremental.json has the results of unchanged code and tests.

export default {
  mutate: ['src/step/**/*.ts', 'src/policy/**/*.ts', 'machines/**/*.ts'],
  testRunner: 'jest',
  plugins: ['@stryker-mutator/jest-runner'],
  testRunnerNodeArgs: ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'],
  jest: { configFile: 'jest.mutation.config.mjs', enableFindRelatedTests: true },
  // jest's own environment of this project cannot be extended by Stryker's: every mutant runs all related tests.
  coverageAnalysis: 'off',
  concurrency: 2,
  incremental: true,
  incrementalFile: 'build/mutation/incremental.json',
  reporters: ['clear-text', 'progress', 'json', 'html'],
  jsonReporter: { fileName: 'build/mutation/report.json' },
  htmlReporter: { fileName: 'build/mutation/report.html' },
  tempDirName: 'build/stryker',
  ignorePatterns: ['/build', '/dist', '/.turnpike', '/coverage'],
  thresholds: { high: 90, low: 85, break: 85 },
};
