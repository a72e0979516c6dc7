// The linter against a corpus of careless policies, and against the shipped policy with each grant and limit removed.

import { describe, expect, test } from '@jest/globals';
import {
  formatLintMessage,
  LINT_RULE_IDS,
  LINT_RULES,
  type LintRule,
} from '../../../src/features/policy-lint/lint-rules.js';
import { checkPolicy } from '../../../src/core/policy/files/check-policy.js';
import { CARELESS, type Careless, type Edit } from './careless-policies.js';
import { edited, filesOf, lineOf, lint, shipped, type Texts } from './edited-policy.js';
import { allCuts, HARMLESS, isSilent } from './policy-cuts.js';

/** Each policy of the corpus, linted once. */
const LINTED = new Map(
  CARELESS.map((careless) => {
    const texts = careless.edits.reduce(edited, shipped());
    return [careless, { texts, line: lineOf(texts, careless.finds), cautions: lint(texts) }] as const;
  }),
);
/** Whether the expected finding is reported with one rule of the linter switched off. */
function isFound(careless: Careless, off: LintRule): boolean {
  const { line, cautions } = LINTED.get(careless)!;
  const { file, rule, severity = 'error' } = careless.finds;
  return cautions.some(
    (caution) =>
      caution.rule !== off &&
      caution.file === `${file}.yaml` &&
      caution.rule === rule &&
      caution.severity === severity &&
      caution.line === line &&
      caution.remedy === LINT_RULES[rule],
  );
}

/** The rules for identities.yaml have a linter of their own. */
const POLICY_RULES = LINT_RULE_IDS.filter((rule) => !/^(?:identity|condition)\./.test(rule));

describe('the shipped policies', () => {
  test('D20 have no finding, except that the source code profile lets an agent write executable files', () => {
    expect(lint(shipped())).toEqual([]);
    expect(lint(shipped('actions.service.yaml'))).toEqual([]);
    const coding = lint(shipped('actions.coding.yaml')).map(({ rule }) => rule);
    expect(new Set(coding)).toEqual(new Set(['action.runs']));
  });
});

describe('a careless policy', () => {
  test('has at least 40 forms here, and every rule of the linter finds one of them', () => {
    expect(CARELESS.length).toBeGreaterThanOrEqual(40);
    expect(new Set(CARELESS.map(({ what }) => what)).size).toBe(CARELESS.length);
    expect(POLICY_RULES.filter((rule) => !CARELESS.some(({ finds }) => finds.rule === rule))).toEqual([]);
  });

  test.each(CARELESS.map((careless) => [careless.what, careless] as const))('is found: %s', (_, careless) => {
    const { texts, line, cautions } = LINTED.get(careless)!;
    expect(checkPolicy(filesOf(texts)).findings).toEqual([]);
    const { file, rule, severity = 'error' } = careless.finds;
    const lines = cautions.map((caution) => `${caution.file}:${caution.line} ${caution.severity} ${caution.rule}`);
    expect(lines).toContain(`${file}.yaml:${line} ${severity} ${rule}`);
  });

  test.each(POLICY_RULES)('is not found by a linter without %s', (rule) => {
    const missed = CARELESS.filter((careless) => !isFound(careless, rule));
    expect(missed.length).toBeGreaterThan(0);
    expect(new Set(missed.map(({ finds }) => finds.rule))).toEqual(new Set([rule]));
  });

  test('with a contradiction gets no lint finding: the contradiction must be corrected first', () => {
    const texts = edited(shipped(), { file: 'roles', in: 'SANDBOX_AGENT', from: 'class: agent', to: 'class: robot' });
    expect(lint(texts)).toEqual([]);
    expect(checkPolicy(filesOf(texts)).findings).not.toEqual([]);
  });
});

describe('the findings of a policy', () => {
  const edits: readonly Edit[] = [
    { file: 'lanes', in: 'SESSION_CHECKS', from: 'required: true', to: 'required: false' },
    { file: 'lanes', in: 'SANDBOX_FILES', from: 'sandbox.read_file', to: 'sandbox.raed_file' },
    { file: 'lanes', in: 'SANDBOX_FILES', from: 'required: true', to: 'required: false' },
    { file: 'roles', in: 'SANDBOX_AGENT', from: 'class: agent', to: 'class: system' },
    { file: 'actions', from: 'denials_per_run_max: 10 ', to: 'denials_per_run_max: 100000 ' },
  ];
  const messages = lint(edits.reduce<Texts>(edited, shipped()));

  test('are in the order of files and lines', () => {
    const places = messages.map(({ file, line, rule }) => [file, line, rule] as const);
    expect(places.map(([file, , rule]) => `${file} ${rule}`)).toEqual([
      'lanes.yaml tool.misspelt',
      'lanes.yaml lane.audit_not_required',
      'lanes.yaml lane.audit_not_required',
      'roles.yaml role.agent_as_system',
      'actions.yaml limits.denials',
    ]);
    for (const name of ['lanes.yaml', 'roles.yaml', 'actions.yaml']) {
      const lines = places.filter(([file]) => file === name).map(([, line]) => line);
      expect(lines).toEqual([...lines].sort((a, b) => a - b));
    }
  });

  test('are lines that name file, line, rule and remedy', () => {
    const [first] = messages;
    const line = { ...first!, file: 'a/b.yaml', line: 7, message: 'a mistake', remedy: 'correct it' };
    expect(formatLintMessage({ ...line, rule: 'tool.misspelt', severity: 'error' })).toBe(
      'a/b.yaml:7 tool.misspelt: a mistake; correct it',
    );
    expect(formatLintMessage({ ...line, rule: 'tool.unknown', severity: 'warning' })).toBe(
      'a/b.yaml:7 warning: tool.unknown: a mistake; correct it',
    );
  });
});

describe('the shipped policy without one of its grants or limits', () => {
  const all = allCuts();

  test('has a finding, or a listed reason why it allows nothing more', () => {
    const silent = all.filter((_, index) => index % 10 === 0).filter(isSilent);
    expect(silent.map(({ name, pointer }) => `${name} ${pointer}`)).toEqual([]);
    expect(all.length).toBeGreaterThan(150);
  });

  test('each reason is needed', () => {
    const unused = HARMLESS.filter(([pattern]) => !all.some(({ name, pointer }) => pattern.test(`${name} ${pointer}`)));
    expect(unused).toEqual([]);
  });
});
