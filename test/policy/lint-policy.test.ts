// The linter against a corpus of careless policies, and against every grant and limit of the shipped policy taken away.

import { describe, expect, test } from '@jest/globals';
import { parseDocument } from 'yaml';
import type { PolicyFile } from '../../src/contract/pins.js';
import { LINT_RULE_IDS, LINT_RULES, type Caution, type LintRule } from '../../src/policy/caution.js';
import { checkPolicy } from '../../src/policy/check-policy.js';
import { isNear } from '../../src/policy/lint-names.js';
import { lintPolicy } from '../../src/policy/lint-policy.js';
import { shippedBytes } from '../fixtures/shipped-policy.js';
import { sized } from '../fixtures/campaign.js';
import { CARELESS, type Careless, type Edit } from './careless.js';

type Texts = Readonly<Record<PolicyFile, string>>;
const NAMES = ['lanes', 'roles', 'actions'] as const;

function shipped(actions?: string): Texts {
  const bytes = shippedBytes(actions);
  return Object.fromEntries(NAMES.map((name) => [name, Buffer.from(bytes[name]).toString('utf8')])) as unknown as Texts;
}
const filesOf = (texts: Texts) => {
  const file = (name: PolicyFile) => ({ path: `${name}.yaml`, bytes: Buffer.from(texts[name]) });
  return { lanes: file('lanes'), roles: file('roles'), actions: file('actions') };
};
const lint = (texts: Texts): readonly Caution[] => lintPolicy(filesOf(texts));

const placeOf = (text: string, where: string | undefined): number => {
  const place = where === undefined ? 0 : text.indexOf(where.startsWith('action:') ? where : `_id: ${where}`);
  if (place < 0) throw new Error(`there is no ${where ?? ''}`);
  return place;
};
function edited(texts: Texts, { file, in: where, from, to }: Edit): Texts {
  const text = texts[file];
  const at = text.indexOf(from, placeOf(text, where));
  if (at < 0) throw new Error(`${file} has no ${from}`);
  return { ...texts, [file]: `${text.slice(0, at)}${to}${text.slice(at + from.length)}` };
}
/** The line of the caution that must be found. */
function lineOf(texts: Texts, { file, in: where, at }: Careless['finds']): number {
  const text = texts[file];
  const index = text.indexOf(at, placeOf(text, where));
  if (index < 0) throw new Error(`${file} has no ${at}`);
  return text.slice(0, index).split('\n').length;
}
/** Each policy of the corpus, linted once. */
const LINTED = new Map(
  CARELESS.map((careless) => {
    const texts = careless.edits.reduce(edited, shipped());
    return [careless, { texts, line: lineOf(texts, careless.finds), cautions: lint(texts) }] as const;
  }),
);
/** Whether the caution is there that must be found, to a linter with one rule switched off. */
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

describe('the shipped policies', () => {
  test('D20 have no caution, except that of source code what runs may be written', () => {
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
    expect(LINT_RULE_IDS.filter((rule) => !CARELESS.some(({ finds }) => finds.rule === rule))).toEqual([]);
  });

  test.each(CARELESS.map((careless) => [careless.what, careless] as const))('is found: %s', (_, careless) => {
    const { texts, line, cautions } = LINTED.get(careless)!;
    expect(checkPolicy(filesOf(texts)).findings).toEqual([]);
    const { file, rule, severity = 'error' } = careless.finds;
    const told = cautions.map((caution) => `${caution.file}:${caution.line} ${caution.severity} ${caution.rule}`);
    expect(told).toContain(`${file}.yaml:${line} ${severity} ${rule}`);
  });

  test.each(LINT_RULE_IDS)('is not found by a linter without %s', (rule) => {
    const missed = CARELESS.filter((careless) => !isFound(careless, rule));
    expect(missed.length).toBeGreaterThan(0);
    expect(new Set(missed.map(({ finds }) => finds.rule))).toEqual(new Set([rule]));
  });

  test('with a contradiction gets no caution: that is mended first', () => {
    const texts = edited(shipped(), { file: 'roles', in: 'SANDBOX_AGENT', from: 'class: agent', to: 'class: robot' });
    expect(lint(texts)).toEqual([]);
    expect(checkPolicy(filesOf(texts)).findings).not.toEqual([]);
  });
});

describe('names', () => {
  test.each([
    ['facts', 'fact', true],
    ['facts', 'fatcs', true],
    ['facts', 'facts', true],
    ['facts', 'acted', false],
    ['', 'ab', true],
    ['', 'abc', false],
  ])('%j and %j are near: %s', (a, b, near) => {
    expect(isNear(a, b)).toBe(near);
    expect(isNear(b, a)).toBe(near);
  });
});

/** Grants and limits whose loss allows nothing more, and why. */
const HARMLESS: readonly (readonly [RegExp, string])[] = [
  [/^lanes \/lanes\/\d+\/allowed_actions\/(?:tools|writes|reads)(?:\/\d+)?$/, 'what is not listed is denied'],
  [/^lanes \/lanes\/\d+\/allowed_callers\/roles(?:\/\d+)?$/, 'who is not named may not use the lane'],
  [/^lanes \/lanes\/\d+$/, 'a lane that is not there lets nobody do anything'],
  [/^lanes \/lanes\/1\/scope\/prohibits\/2$/, 'the lane of session checks lists no table that it could write'],
  [/^roles \/roles\/\d+(?:\/privileges\/lanes\/\d+)?$/, 'a role without a lane may do nothing'],
  [/^actions \/actions\/\d+$/, 'an action that is not listed is denied'],
  [/^actions \/actions\/\d+\/extensions\/\w+\/\d+$/, 'an ending that is not listed is denied'],
  [/^actions \/knobs\/checkpoints$/, 'the default is the stricter one'],
];

describe('the shipped policy without one of its grants or limits', () => {
  const all = NAMES.flatMap((name) => cutsOf(shipped()[name]).map((cut) => ({ name, ...cut })));
  const step = sized(10, 1);
  const cuts = all.filter((_, index) => index % step === 0);

  test('is told by a finding or a caution, or allows nothing more for a reason that is listed', () => {
    const silent = cuts.filter(({ name, pointer, text }) => {
      const texts = { ...shipped(), [name]: text() };
      const told = checkPolicy(filesOf(texts)).findings.length + lint(texts).length > 0;
      return !told && !HARMLESS.some(([pattern]) => pattern.test(`${name} ${pointer}`));
    });
    expect(silent.map(({ name, pointer }) => `${name} ${pointer}`)).toEqual([]);
    expect(all.length).toBeGreaterThan(150);
  });

  test('each reason is needed', () => {
    const unused = HARMLESS.filter(([pattern]) => !all.some(({ name, pointer }) => pattern.test(`${name} ${pointer}`)));
    expect(unused).toEqual([]);
  });
});

/** A file without one key or item, for every one of them that grants or limits. */
function cutsOf(text: string): readonly { readonly pointer: string; readonly text: () => string }[] {
  const names = /^(?:version|contract_version|last_updated|purpose|description|lane_id|role_id|action)$/;
  const cuts: { pointer: string; text: () => string }[] = [];
  const visit = (value: unknown, path: readonly (string | number)[]): void => {
    if (typeof value !== 'object' || value === null) return;
    for (const key of Object.keys(value)) {
      if (!Array.isArray(value) && names.test(key)) continue;
      const at = [...path, Array.isArray(value) ? Number(key) : key];
      const without = (): string => {
        const document = parseDocument(text);
        document.deleteIn(at);
        return document.toString();
      };
      cuts.push({ pointer: `/${at.join('/')}`, text: without });
      visit((value as Record<string, unknown>)[key], at);
    }
  };
  visit(parseDocument(text).toJS(), []);
  return cuts;
}
