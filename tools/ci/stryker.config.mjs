// Mutation tests: `npm run mutate` (all), `npm run mutate -- --mutate src/core/step/check-phases.ts` (one file).
// Incremental: build/mutation/incremental.json has the results of unchanged code and tests.

export default {
  mutate: [
    'src/core/contract/json.ts',
    'src/core/step/**/*.ts',
    'src/core/policy/**/*.ts',
    'src/features/approvals/**/*.ts',
    'src/features/conditions/**/*.ts',
    'src/features/decision-points/**/*.ts',
    'src/features/hooks/calls/**/*.ts',
    'machines/**/*.ts',
  ],
  testRunner: 'bundle',
  plugins: ['./test/mutation/runner.mjs'],
  coverageAnalysis: 'perTest',
  concurrency: 2,
  timeoutMS: 10_000,
  incremental: true,
  incrementalFile: 'build/mutation/incremental.json',
  reporters: ['clear-text', 'progress', 'json', 'html'],
  clearTextReporter: { logTests: false, reportTests: false },
  jsonReporter: { fileName: 'build/mutation/report.json' },
  htmlReporter: { fileName: 'build/mutation/report.html' },
  tempDirName: 'build/stryker',
  ignorePatterns: ['/build', '/dist', '/.turnpike', '/coverage'],
  thresholds: { high: 90, low: 85, break: 85 },
};
