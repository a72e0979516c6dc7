// How jest finds and runs the suites: `npm test`, and the campaigns.

const suites = {
  testEnvironment: './test/jest/environment.mjs',
  roots: ['<rootDir>/test'],
  extensionsToTreatAsEsm: ['.ts'],
  runtime: '<rootDir>/test/jest/runtime.mjs',
  globalSetup: './test/jest/setup.mjs',
  globalTeardown: './test/jest/teardown.mjs',
  transform: {},
  injectGlobals: false,
};

/** These decide no input of a tree, or do it to test something else: another interpreter shows nothing in them. */
const WITHOUT_TREES = [
  // Parts that are tested by themselves, on entries that are written by hand.
  'engine/(reservations/case-reservations|head-writer|timers)',
  // What folds recorded histories: `kernel/oracle` compares the interpreters.
  'kernel/replay/.*',
  // What a machine offers: the kernel of a disk.
  'crash/mount-namespace',
];

/** What needs packages that need a later Node: `npm run test:sdks`. The package `ai` is that version too. */
const separate =
  process.env.TURNPIKE_SDKS === undefined
    ? []
    : [{ ...suites, displayName: 'sdks', testMatch: ['<rootDir>/test/interfaces/sdk/separate/*.test.ts'] }];

/** @type {import('jest').Config} */
export default {
  // `npm test` runs the first; `npm run test:campaigns` the others. The name of a suite's file says where it belongs.
  projects: [
    {
      ...suites,
      displayName: 'tests',
      testMatch: ['**/*.test.ts'],
      testPathIgnorePatterns: ['\\.(campaign|nightly)\\.test\\.ts$', '/test/interfaces/sdk/separate/'],
    },
    { ...suites, displayName: 'campaigns', testMatch: ['**/*.campaign.test.ts'] },
    // What needs more than half a minute: not in `.ci/run`, but in `.ci/run all`.
    { ...suites, displayName: 'nightly', testMatch: ['**/*.nightly.test.ts'] },
    ...separate,
    // The same once more, with XState's own actors in place of the table-driven interpreter.
    {
      ...suites,
      displayName: 'xstate',
      testMatch: [
        '<rootDir>/test/{kernel,engine,simulation,crash,runtime/agents}/**/*.test.ts',
        '<rootDir>/test/features/sessions/*.test.ts',
      ],
      // Of campaigns only the kills: the others are the same in full size, start the built command, or damage disks.
      testPathIgnorePatterns: [
        '/test/(?!crash/crash\\.).*\\.(campaign|nightly)\\.test\\.ts$',
        `/test/(${WITHOUT_TREES.join('|')})\\.test\\.ts$`,
      ],
      globals: { INTERPRETER: 'xstate' },
    },
  ],
  // For a machine that has much else to do: no test of `npm test` takes a tenth of it on one that has not.
  testTimeout: 120_000,
  // Half of the time a worker waits, for a disk, a database or a process that it killed: three keep two cores busy.
  maxWorkers: 3,
  // What a suite leaves in memory adds up, and the more there is, the longer garbage collection takes.
  workerIdleMemoryLimit: '700MB',
};
