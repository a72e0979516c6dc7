// The words of a rule are checked against the schema itself: every sample of every rule that the contract publishes.

import { describe, expect, test } from '@jest/globals';
import Type from 'typebox';
import { Check } from 'typebox/value';
import { SCHEMA_DOCUMENTS } from '../../../src/published/schema-documents.js';
import { CaseId, Identifier, Timestamp } from '../../../src/core/contract/shapes.js';
import { TokenId } from '../../../src/core/contract/token.js';
import { UUID_PATTERN } from '../../../src/core/contract/run/proposal.js';
import { PolicyName } from '../../../src/core/contract/policy/policy-header.js';
import { describeTextRule, findTextProblem, type TextRule } from '../../../src/core/contract/text-rule.js';

/** Every different rule with a pattern in the published schemas. */
function publishedRules(): readonly TextRule[] {
  const found = new Map<string, TextRule>();
  const visit = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return;
    const { pattern, minLength, maxLength } = node as TextRule;
    if (typeof pattern === 'string') {
      const rule = {
        pattern,
        ...(minLength === undefined ? {} : { minLength }),
        ...(maxLength === undefined ? {} : { maxLength }),
      };
      found.set(JSON.stringify(rule), rule);
    }
    for (const part of Object.values(node)) visit(part);
  };
  for (const { schema } of SCHEMA_DOCUMENTS) visit(schema);
  for (const rule of [TokenId, PolicyName]) visit(rule);
  return [...found.values()];
}

const PRINTABLE = Array.from({ length: 95 }, (_, at) => String.fromCharCode(32 + at));
const ODD = [...PRINTABLE, '\u0000', '\n', '\u202e', 'é', '😀'];

const fits = (rule: TextRule, text: string): boolean => Check(Type.String({ ...rule }), text);

/** A text that the rule accepts, of this length, found by trying: no knowledge of the words. */
function acceptedText(rule: TextRule, beginning: string, length: number): string | null {
  const open = { pattern: rule.pattern ?? '' };
  const one = PRINTABLE.find((character) =>
    [1, 2, length].some((count) => fits(open, beginning + character.repeat(Math.max(0, count - beginning.length)))),
  );
  if (one === undefined) return null;
  const text = beginning + one.repeat(Math.max(0, length - beginning.length));
  return fits(rule, text) ? text : null;
}

const beginningOf = (rule: TextRule): string =>
  /^\^((?:[A-Za-z_-]|\\\.(?!\{))*)/.exec(rule.pattern ?? '')?.[1]?.replace('\\', '') ?? '';

/** The lengths that the rule accepts, found by trying. */
function acceptedLengths(rule: TextRule): readonly number[] {
  const lengths = Array.from({ length: 201 }, (_, length) => length);
  return lengths.filter((length) => acceptedText(rule, beginningOf(rule), length) !== null);
}

const WORDED = publishedRules().filter((rule) => describeTextRule(rule) !== null);

describe('a rule of ids and names in words', () => {
  test('names the length if the length is wrong', () => {
    expect(findTextProblem(CaseId, 't9')).toBe(
      'is too short: an id has 4 to 80 characters of letters, digits, "_" and "-", beginning with a letter or a digit',
    );
    expect(findTextProblem(CaseId, 'c'.repeat(81))).toMatch(/^is too long: an id has 4 to 80 characters/);
  });

  test('names the first character, and a later one, that does not fit', () => {
    expect(findTextProblem(Identifier, '-lane')).toMatch(/^begins with "-": an id has 1 to 120 characters of letters/);
    expect(findTextProblem(Identifier, 'la ne')).toMatch(/^has the character " ": /);
    expect(findTextProblem(PolicyName, 'a\u202eb', 'a name')).toMatch(/^has the character "\\u\{202e\}": a name has/);
    expect(findTextProblem(TokenId, 'token')).toMatch(/^does not begin with "tok_": an id has 5 to 40 characters/);
  });

  test('exists for every pattern that the contract publishes, except for these', () => {
    const wordless = publishedRules().filter((rule) => describeTextRule(rule) === null);
    expect([...new Set(wordless.map(({ pattern }) => pattern))].toSorted()).toEqual([
      '^(?:[0-9a-f]{40}|[0-9a-f]{64})$',
      '^(?:\\*\\.)?[a-z0-9-]+(?:\\.[a-z0-9-]+)*$',
      '^(?:\\.[A-Za-z0-9]{1,16}|[A-Za-z0-9][A-Za-z0-9_-]{0,63})$',
      '^(?:promotion|export|erasure|archive|restore|key_rotation|[A-Z][A-Z0-9_]{0,63}|call\\.[a-z][a-z0-9_]{0,39})$',
      '^/sandbox/',
      '^1\\.\\d+\\.\\d+$',
      '^[-+@]\\S*(?: [-+@]\\S*)*$',
      UUID_PATTERN,
      '^[A-Za-z0-9_]+(?:\\.[1-9][0-9]*)*$',
      '^\\S+(?: \\S+)*$',
      '^\\d{4}-\\d{2}-\\d{2}$',
      (Timestamp as TextRule).pattern,
      '^https?://[!-"$->@-~]+$',
      '^unicode-[0-9]{1,3}\\.[0-9]{1,3}\\.[0-9]{1,3}$',
    ]);
    expect(WORDED.length).toBeGreaterThan(10);
  });

  test('says a text without simple words has not the required form, and nothing for one that has it', () => {
    const rule = { pattern: '^a(?:b|c)$' };
    expect([findTextProblem(rule, 'ab'), findTextProblem(rule, 'ad')]).toEqual([
      null,
      'does not have the required form',
    ]);
  });
});

describe.each(WORDED.map((rule) => [JSON.stringify(rule), rule] as const))('the rule %s', (_name, rule) => {
  const lengths = acceptedLengths(rule);
  const [least = 0] = lengths;
  const most = lengths.at(-1) ?? 0;
  const valid = acceptedText(rule, beginningOf(rule), Math.min(most, Math.max(least, beginningOf(rule).length + 2)));

  test('finds nothing wrong with texts that the schema accepts', () => {
    expect(lengths.length).toBeGreaterThan(0);
    for (const length of lengths) {
      const text = acceptedText(rule, beginningOf(rule), length);
      expect(text === null ? 'no text' : findTextProblem(rule, text)).toBeNull();
    }
  });

  test('calls a text below the least length too short, and states the length', () => {
    if (least > 0) expect(findTextProblem(rule, (valid ?? '').slice(0, least - 1))).toMatch(/^is too short/);
    expect(describeTextRule(rule)).toContain(String(least));
  });

  test('calls a text above the largest length too long', () => {
    if (most < 200)
      expect(findTextProblem(rule, (valid ?? '').padEnd(most + 1, valid?.at(-1)))).toMatch(/^is too long/);
    if (most < 200) expect(describeTextRule(rule)).toContain(String(most));
  });

  test('names every single character that does not fit, first or later', () => {
    const text = valid ?? '';
    for (const character of ODD) {
      for (const at of new Set([0, text.length - 1])) {
        const changed = text.slice(0, at) + character + text.slice(at + 1);
        const problem = findTextProblem(rule, changed);
        expect({ changed, fine: problem === null }).toEqual({ changed, fine: fits(rule, changed) });
        if (problem === null) continue;
        expect(problem).toMatch(at === 0 ? /^(?:begins with|does not begin with) "/ : /^has the character "/);
      }
    }
  });
});
