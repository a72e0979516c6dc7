// The campaign against the linter: every drawn careless policy gets its expected findings; a policy without
// carelessness gets none. A linter with any rule disabled fails.

import type { LintMessage } from '../../../src/home/policy/policy-linter.js';
import { LINT_RULES } from '../../../src/features/policy-lint/lint-rules.js';
import { checkPolicy } from '../../../src/core/policy/files/check-policy.js';
import { CARELESS } from '../../features/policy-lint/careless-policies.js';
import { filesOf } from '../../features/policy-lint/edited-policy.js';
import { allCuts, isSilent } from '../../features/policy-lint/policy-cuts.js';
import { Random } from '../../simulation/random.js';
import type { RedteamResult } from '../campaign-runner.js';
import { drawPolicy, type DrawnPolicy, type Expected } from './careless-policies.js';
import { cautionsOf, PLANTED, REAL, type Linter } from './linters.js';

export interface LinterCampaign {
  readonly seed: number;
  /** How often each form of carelessness is drawn. */
  readonly rounds: number;
}

interface Linted extends DrawnPolicy {
  readonly cautions: readonly LintMessage[];
}

const FAILURES_SHOWN = 50;

export function attackLinter({ seed, rounds }: LinterCampaign): RedteamResult {
  const random = new Random(`linter ${seed}`);
  const linted: Linted[] = [];
  const failures: string[] = [];
  for (let round = 0; round < rounds; round += 1) {
    for (const first of [null, ...CARELESS]) {
      const drawn = drawPolicy(random, first);
      const [finding] = checkPolicy(filesOf(drawn.texts)).findings;
      // The loader's findings come first: the linter is silent then, and the draw is worthless.
      if (finding !== undefined) failures.push(`a drawn policy cannot be loaded: ${JSON.stringify(finding)}`);
      linted.push({ ...drawn, cautions: cautionsOf(drawn.texts) });
    }
  }
  failures.push(...linted.flatMap((one) => missing(one, REAL)));
  const missed = PLANTED.filter((linter) => !linted.some((one) => missing(one, linter).length > 0));
  failures.push(...missed.map(({ name }) => `the planted fault was not found: ${name}`));
  const cuts = allCuts();
  const silent = cuts.filter(isSilent).map(({ name, pointer }) => `${name} without ${pointer} is not reported`);
  failures.push(...silent);
  const figures = {
    policies: linted.length,
    'cautions that must be there': linted.reduce((sum, { expected }) => sum + expected.length, 0),
    'policies without carelessness': linted.filter(({ expected }) => expected.length === 0).length,
    'grants and limits taken away': cuts.length,
    'planted faults': PLANTED.length,
    'planted faults found': PLANTED.length - missed.length,
  };
  return { figures, failures: failures.slice(0, FAILURES_SHOWN) };
}

/** What a linter missed, and its false alarms. */
function missing({ texts, expected, cautions }: Linted, { change }: Linter): readonly string[] {
  const found = change(cautions, texts);
  if (expected.length === 0) return found.map((caution) => `a false alarm: ${lineOf(caution)}`);
  return expected
    .filter((one) => !found.some((caution) => isThat(caution, one)))
    .map(
      (one) =>
        `${one.what}: no ${one.severity} ${one.rule} at ${one.file}.yaml:${one.line}, but ${found.map(lineOf).join(', ')}`,
    );
}

const lineOf = ({ file, line, severity, rule }: LintMessage): string => `${severity} ${rule} at ${file}:${line}`;

const isThat = (caution: LintMessage, { rule, file, line, severity }: Expected): boolean =>
  caution.rule === rule &&
  caution.file === `${file}.yaml` &&
  caution.line === line &&
  caution.severity === severity &&
  caution.remedy === LINT_RULES[rule];
