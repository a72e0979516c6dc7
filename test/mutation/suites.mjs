// The suites that `npm run mutate` runs, the fastest first: most mutants fail a fast test.

import { readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

/** Folders of test/ whose suites cover src/step, src/policy and machines within milliseconds. */
const FOLDERS = ['step', 'policy', 'machines', 'session', 'kernel', 'run', 'replay'];

/** Suites that need seconds each for what the others find as well, or top-level await, which a bundle cannot have. */
const LEFT_OUT = new Set([
  'test/kernel/determinism.test.ts',
  'test/kernel/flags.test.ts',
  'test/kernel/fold.test.ts',
  'test/kernel/oracle.test.ts',
  'test/kernel/snapshot.test.ts',
  'test/kernel/tree.test.ts',
  'test/machines/governed.test.ts',
  'test/policy/matrix.test.ts',
  'test/policy/policy-fuzz.test.ts',
  'test/replay/policy/simulate.test.ts',
  'test/replay/state-at.test.ts',
  'test/replay/tree-course.test.ts',
  'test/run/audit-events.test.ts',
  'test/run/run-records.test.ts',
]);

/** Suites that run last. */
const SLOW = [
  'test/machines/overlay.test.ts',
  'test/policy/labels.test.ts',
  'test/policy/approval/voter-identity.test.ts',
  'test/policy/content/passage-search.test.ts',
  'test/policy/files/check-policy.test.ts',
  'test/policy/lint/lint-policy.test.ts',
  'test/session/session-machine.test.ts',
  'test/session/judge-report.test.ts',
  'test/replay/histories.test.ts',
];

/** The suites in the order for a mutant of `source`: its namesake, its folder, then the others as they are listed. */
export function orderFor(source, suites) {
  const name = basename(source, '.ts');
  const folder = dirname(source).replace(/^src\//, '');
  const rank = (path) =>
    basename(path).startsWith(`${name}.`) ? 0 : path.startsWith(`test/${folder}/`) && !SLOW.includes(path) ? 1 : 2;
  return [...suites].sort((a, b) => rank(a) - rank(b));
}

/** Paths of the suites relative to `root`. */
export function listSuites(root) {
  const found = FOLDERS.flatMap((folder) =>
    readdirSync(join(root, 'test', folder), { recursive: true })
      .map((name) => `test/${folder}/${String(name)}`)
      .filter((path) => path.endsWith('.test.ts') && !path.endsWith('.campaign.test.ts') && !LEFT_OUT.has(path))
      .sort(),
  );
  return [...found.filter((path) => !SLOW.includes(path)), ...SLOW];
}
