// docs/errors.md compared with the code: every code, cause and rule, and nothing else.

import { describe, expect, test } from '@jest/globals';
import ts from 'typescript';
import { REFUSED_KINDS } from '../../src/core/contract/run/effect.js';
import { ARGUMENT_CAUSES, EXECUTION_CAUSES, FAULTS, POLICY_CAUSES } from '../../src/core/contract/fault.js';
import { Proposal } from '../../src/core/contract/run/proposal.js';
import { APPROVAL_RULES } from '../../src/core/contract/run/approval-rules.js';
import { LINT_RULE_IDS } from '../../src/features/policy-lint/lint-rules.js';
import { FINDING_RULES, IDENTITY_RULES } from '../../src/core/policy/files/policy-finding.js';
import { RULES } from '../../src/core/policy/verdict.js';
import { EXPORT_BAG_RULES } from '../../src/features/exports/verify/bag-report.js';
import { PROBLEMS } from '../../src/interfaces/service/problems.js';
import { SPEC_RULES } from '../../src/features/sessions/rules/spec/check-spec.js';
import { filesIn, isOfPage, nodesOf, parse } from '../sources.js';
import { tableOf } from './tables.js';

const rows = (name: string) => tableOf('docs/errors.md', name);
const firstColumn = (name: string): readonly string[] => rows(name).map(([first = '']) => first);

describe('codes and causes', () => {
  test('S0-38 S0-51 S0-55 every error_code has its outcome, phase and message', () => {
    expect(rows('faults')).toEqual(
      Object.entries(FAULTS).map(([code, { outcome, phase, message }]) => [code, outcome, phase, message]),
    );
  });

  test('every cause of a policy violation has its message', () => {
    expect(rows('policy-causes')).toEqual(Object.entries(POLICY_CAUSES));
  });

  test('C94: every cause of invalid arguments has its message', () => {
    expect(rows('argument-causes')).toEqual(Object.entries(ARGUMENT_CAUSES));
  });

  test('S0-54 every cause of a failed execution has its message', () => {
    expect(rows('execution-causes')).toEqual(
      Object.entries(EXECUTION_CAUSES).map(([cause, { message, retryable }]) => [
        cause,
        message,
        retryable ? 'yes' : 'no',
      ]),
    );
  });

  test('every problem of HTTP has its status and text', () => {
    expect(rows('problems-http')).toEqual(
      Object.entries(PROBLEMS).map(([code, [status, text]]) => [code, String(status), text]),
    );
  });

  test('every thrown code is listed, with its class and its remedy', () => {
    const classes = nodesOf(parse('src/core/errors.ts')).filter(ts.isClassDeclaration);
    const thrown = classes.flatMap((node) =>
      (node.heritageClauses ?? [])
        .flatMap((clause) => nodesOf(clause))
        .filter(ts.isStringLiteral)
        .map(({ text }) => [node.name?.text ?? '', text]),
    );
    expect(rows('coded-errors').map(([name, code]) => [name, code])).toEqual(thrown);
    expect(rows('coded-errors').filter((row) => row.length !== 4 || row.some((cell) => cell === ''))).toEqual([]);
  });

  test('no other file declares an error class with a code', () => {
    const files = [...filesIn('src', /\.ts$/), ...filesIn('machines', /\.ts$/)].filter(
      // The page is a separate program in a browser: its errors stay inside.
      (path) => path !== 'src/core/errors.ts' && !isOfPage(path),
    );
    const found = files.filter((path) => nodesOf(parse(path)).some((node) => extendsError(node)));
    expect(found).toEqual([]);
  });
});

describe('rules', () => {
  test('the rules of lanes and roles are listed in order, with their texts', () => {
    expect(rows('lane-rules')).toEqual(Object.entries(RULES));
  });

  test('every other rule id of machines, steps and path checks is listed, and no more', () => {
    const own = ruleIds().filter((rule) => !(rule in RULES));
    expect([...firstColumn('step-rules')].sort()).toEqual([...new Set(own)].sort());
  });

  test('every rule of approvals and of bundles is listed, with its text', () => {
    expect(rows('approval-rules')).toEqual(Object.entries(APPROVAL_RULES));
    expect(rows('bundle-rules').map(([rule, severity]) => [rule, severity])).toEqual(Object.entries(EXPORT_BAG_RULES));
  });

  test('all texts after a rule are listed', () => {
    const words = new Map(rows('problems').map(([of = '', list = '']) => [of, list.split(', ')]));
    expect(words.get('json')).toEqual(literalsOfType('src/core/contract/json.ts', 'JsonProblem'));
    expect(words.get('schema')).toEqual([
      ...Object.keys(Proposal.properties).map((key) => `missing_${key}`),
      'unknown_field',
      'invalid_field',
    ]);
    expect(words.get('path')).toEqual(problemsOfPaths());
    expect(words.get('kind')).toEqual([...REFUSED_KINDS]);
  });

  test('every rule of ledger, replay and policy check is listed', () => {
    expect(firstColumn('ledger-rules')).toEqual(
      literalsOfType('src/core/ledger/verification/ledger-problem.ts', 'LedgerRule'),
    );
    expect(firstColumn('replay-rules')).toEqual(literalsOfMember('src/kernel/fold.ts', 'Difference', 'rule'));
    expect(firstColumn('policy-findings')).toEqual([...FINDING_RULES]);
    expect(firstColumn('identity-findings')).toEqual([...IDENTITY_RULES]);
    expect(firstColumn('policy-cautions')).toEqual([...LINT_RULE_IDS]);
  });

  test('every rule of spec documents is listed, with its severity', () => {
    expect(rows('spec-findings').map(([rule, severity]) => [rule, severity])).toEqual(Object.entries(SPEC_RULES));
  });

  test('every reason by which a machine ends a run is listed', () => {
    const listed = rows('endings').map(([, reason]) => reason);
    const files = [...filesIn('machines', /\.ts$/), ...filesIn('src/engine', /\.ts$/), 'src/runtime/agents/agents.ts'];
    const reasons = files.flatMap((path) => nodesOf(parse(path)).flatMap(reasonOf));
    expect(reasons.length).toBeGreaterThan(8);
    expect([...new Set(reasons)].filter((reason) => !listed.includes(reason))).toEqual([]);
  });
});

const extendsError = (node: ts.Node): boolean =>
  ts.isClassDeclaration(node) &&
  (node.heritageClauses ?? []).some(
    (clause) => /\b(?:Coded)?Error\b/.test(clause.getText()) && /code/i.test(node.getText()),
  );

/** Literal rule ids: arguments of `rejectWith` and `deny`, and values of `rule_id:`; a computed end is `<word>`. */
function ruleIds(): readonly string[] {
  const files = [
    ...filesIn('machines', /\.ts$/),
    ...filesIn('src/core/step', /\.ts$/),
    'src/features/approvals/approval-decision.ts',
    'src/features/decision-points/decision-point-rules.ts',
    'src/core/policy/sandbox-path.ts',
    'src/core/policy/verdict.ts',
    'src/features/conditions/condition-verdict.ts',
    'src/features/policy-lint/policy-matrix.ts',
  ];
  return files.flatMap((path) =>
    nodesOf(parse(path)).flatMap((node) => {
      if (ts.isCallExpression(node)) return ruleOfCall(node);
      return ts.isPropertyAssignment(node) && node.name.getText() === 'rule_id' ? ruleOf(node.initializer) : [];
    }),
  );
}

/** Functions of the step that take a rule, and the index of that parameter. */
const TAKES_RULE: Readonly<Record<string, number>> = { rejectWith: 1, deny: 0, quotaFault: 0 };

function ruleOfCall(node: ts.CallExpression): readonly string[] {
  const place = TAKES_RULE[node.expression.getText()];
  const argument = place === undefined ? undefined : node.arguments[place];
  return argument === undefined ? [] : ruleOf(argument);
}

const COMPUTED: Readonly<Record<string, string>> = {
  'fact.kind': '<kind>',
  'cause.toLowerCase()': '<cause>',
  'scanned.problem': '<problem>',
  'problemOf(value)': '<problem>',
  problem: '<problem>',
  kind: '<kind>',
  unreadable: '<problem>',
};

function ruleOf(node: ts.Expression): readonly string[] {
  if (ts.isStringLiteral(node)) return [node.text];
  if (!ts.isTemplateExpression(node)) return [];
  const [span] = node.templateSpans;
  return [`${node.head.text}${COMPUTED[span?.expression.getText() ?? ''] ?? '<unknown to this test>'}`];
}

/** The string literals of a union type. */
function literalsOfType(path: string, name: string): readonly string[] {
  const alias = nodesOf(parse(path)).find((node) => ts.isTypeAliasDeclaration(node) && node.name.text === name);
  return alias === undefined
    ? []
    : nodesOf(alias)
        .filter(ts.isStringLiteral)
        .map(({ text }) => text);
}

function literalsOfMember(path: string, name: string, member: string): readonly string[] {
  const owner = nodesOf(parse(path)).find((node) => ts.isInterfaceDeclaration(node) && node.name.text === name);
  const found = owner === undefined ? [] : nodesOf(owner).filter(ts.isPropertySignature);
  return found
    .filter((node) => node.name.getText() === member)
    .flatMap((node) =>
      nodesOf(node)
        .filter(ts.isStringLiteral)
        .map(({ text }) => text),
    );
}

/** The results of the functions of the path check whose names end in `Problem`. */
function problemsOfPaths(): readonly string[] {
  const nodes = nodesOf(parse('src/core/policy/sandbox-path.ts'));
  const functions = nodes.filter(
    (node) =>
      (ts.isFunctionDeclaration(node) || ts.isVariableDeclaration(node)) && /Problem$/.test(node.name?.getText() ?? ''),
  );
  const words = functions.flatMap((node) =>
    nodesOf(node)
      .filter(ts.isStringLiteral)
      .map(({ text }) => text),
  );
  return [...new Set(words.filter((word) => /^[a-z]+_[a-z_]+$|^prefix$/.test(word)))];
}

/** The reason that a node gives to the end of a run, if it is a literal. */
function reasonOf(node: ts.Node): readonly string[] {
  if (ts.isCallExpression(node) && /^(?:failureEnd|cancellationEnd)$/.test(node.expression.getText())) {
    const [first] = node.arguments;
    return first === undefined
      ? []
      : nodesOf(first)
          .filter(ts.isStringLiteral)
          .map(({ text }) => text)
          .filter((text) => text !== 'CANCEL');
  }
  return ts.isPropertyAssignment(node) && node.name.getText() === 'reason' && ts.isStringLiteral(node.initializer)
    ? [node.initializer.text]
    : [];
}
