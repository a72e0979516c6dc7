// The suites that `npm run mutate` runs, the fastest first: most mutants fail a fast test.

import { readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

/** Folders of test/ whose suites cover what `tools/ci/stryker.conf.json` lists within milliseconds. */
const FOLDERS = [
  'core/step',
  'core/policy',
  'machines',
  'kernel',
  'core/run',
  'features/approvals',
  'features/conditions',
  'features/decision-points',
  'features/hooks/calls',
  'features/simulation',
  'features/policy-lint',
];

/** Suites that need seconds each for what the others find as well, or top-level await, which a bundle cannot have. */
const LEFT_OUT = new Set([
  'test/kernel/determinism.test.ts',
  'test/kernel/flags.test.ts',
  'test/kernel/fold.test.ts',
  'test/kernel/oracle.test.ts',
  'test/kernel/snapshot.test.ts',
  'test/kernel/tree.test.ts',
  'test/machines/governed.test.ts',
  'test/core/policy/policy-fuzz.test.ts',
  'test/features/simulation/measure-coverage.test.ts',
  'test/features/simulation/simulate.test.ts',
  'test/kernel/replay/state-at.test.ts',
  'test/kernel/replay/tree-course.test.ts',
  'test/core/run/audit-events.test.ts',
]);

/** Suites that need over half a second each. Only mutants of their own folder run them. */
const SLOW = new Set([
  'test/kernel/recorded-time.test.ts',
  'test/kernel/refusals.test.ts',
  'test/machines/budgets.test.ts',
  'test/machines/overlay.test.ts',
  'test/features/approvals/approval-requests.test.ts',
  'test/features/approvals/voter-identity.test.ts',
  'test/features/promotions/passage-search.test.ts',
  'test/core/policy/files/check-policy.test.ts',
  'test/core/policy/label-rules.test.ts',
  'test/features/policy-lint/lint-policy.test.ts',
  'test/core/policy/overlay-verdict.test.ts',
  'test/kernel/replay/histories.test.ts',
  'test/core/run/budget-account.test.ts',
  'test/features/policy-lint/policy-matrix.test.ts',
]);

/** The suites for a mutant of `source`, in order: its namesake, its folder, then the fast suites of other folders. */
export function suitesFor(source, suites) {
  const name = basename(source, '.ts');
  const folder = `test/${dirname(source).replace(/^src\//, '')}`;
  const isHome = (path) => dirname(path) === folder;
  const rank = (path) => (basename(path) === `${name}.test.ts` ? 0 : !isHome(path) ? 3 : SLOW.has(path) ? 2 : 1);
  return suites.filter((path) => isHome(path) || !SLOW.has(path)).sort((a, b) => rank(a) - rank(b));
}

/** Paths of the suites relative to `root`. */
export function listSuites(root) {
  return FOLDERS.flatMap((folder) =>
    readdirSync(join(root, 'test', folder), { recursive: true })
      .map((name) => `test/${folder}/${String(name)}`)
      .filter(
        (path) => path.endsWith('.test.ts') && !/\.(campaign|nightly)\.test\.ts$/.test(path) && !LEFT_OUT.has(path),
      )
      .sort(),
  );
}
