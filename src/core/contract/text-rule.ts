// The rules of ids and names in words. A pattern alone does not tell its reader which part of it a text breaks.

import type { TSchema } from 'typebox';
import { quoteForMessage } from './finding-text.js';

/** The keywords of a schema that limit a text. */
export interface TextRule {
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
}

/** A rule, or the schema of a text, whose type does not show its keywords. */
export type TextSchema = TextRule | TSchema;

/** Consecutive characters of one class. */
interface Run {
  readonly one: RegExp;
  /** The members of the class in words: ranges by their names, single characters in quotes. */
  readonly members: readonly string[];
  readonly min: number;
  readonly max: number;
}

/** A pattern as the text that it begins with, and the runs that follow. */
interface Form {
  readonly beginning: string;
  readonly runs: readonly Run[];
}

/**
 * What is wrong with a text, and the whole rule: `is too short: an id has 4 to 80 characters of ...`.
 * @param noun the kind of text, with its article
 * @returns null if the text keeps the rule
 */
export function findTextProblem(schema: TextSchema, text: string, noun = 'an id'): string | null {
  const rule = schema as TextRule;
  const problem = problemOf(rule, text);
  const words = describeTextRule(rule);
  return problem === null || words === null ? problem : `${problem}: ${noun} has ${words}`;
}

/** The rule in words: `4 to 80 characters of ...`. @returns null for a pattern that has no simple words */
export function describeTextRule(schema: TextSchema): string | null {
  const rule = schema as TextRule;
  const form = parsePattern(rule.pattern);
  if (form === null) return null;
  const { beginning, runs } = form;
  const { min, max } = lengthsOf(rule, form);
  const [first, second] = runs;
  const body = second ?? first;
  const length = countText(min, max);
  const begins = [
    ...(beginning === '' ? [] : [quoteForMessage(beginning)]),
    ...(first === undefined || second === undefined ? [] : [joinWords(first.members.map(toSingular), 'or')]),
  ].join(' and ');
  const classes = body === undefined ? '' : ` of ${joinWords(body.members, 'and')}`;
  return `${length}${classes}${begins === '' ? '' : `, beginning with ${begins}`}`;
}

function problemOf(rule: TextRule, text: string): string | null {
  const form = parsePattern(rule.pattern);
  const characters = Array.from(text);
  const { min, max } = lengthsOf(rule, form);
  if (characters.length < min) return 'is too short';
  if (characters.length > max) return 'is too long';
  if (form !== null) return findWrongCharacter(form, text);
  return new RegExp(rule.pattern ?? '', 'u').test(text) ? null : 'does not have the required form';
}

function findWrongCharacter({ beginning, runs }: Form, text: string): string | null {
  if (!text.startsWith(beginning)) return `does not begin with ${quoteForMessage(beginning)}`;
  const characters = Array.from(text.slice(beginning.length));
  let at = 0;
  for (const { one, min, max } of runs) {
    const from = at;
    while (at < characters.length && at - from < max && one.test(characters[at] ?? '')) at += 1;
    if (at - from < min) break;
  }
  const wrong = characters[at];
  if (wrong === undefined) return null;
  return `${at === 0 && beginning === '' ? 'begins with' : 'has the character'} ${quoteForMessage(wrong)}`;
}

/** The smallest and the largest number of characters. */
function lengthsOf({ minLength = 0, maxLength = Infinity }: TextRule, form: Form | null) {
  if (form === null) return { min: minLength, max: maxLength };
  const { beginning, runs } = form;
  const least = runs.reduce((sum, { min }) => sum + min, beginning.length);
  const most = runs.reduce((sum, { max }) => sum + max, beginning.length);
  return { min: Math.max(minLength, least), max: Math.min(maxLength, most) };
}

const LITERAL = /^(?:[A-Za-z0-9_/:-]|\\[.])/;
const CLASS = /^(?:\.|\[(?!\^)((?:[^\]\\])+)\])/;
const COUNT = /^(?:[*+?]|\{(\d+)(?:,(\d+))?\})/;

/** @returns null for a pattern with anything but a beginning and classes of characters */
function parsePattern(pattern: string | undefined): Form | null {
  if (pattern === undefined || !pattern.startsWith('^')) return null;
  let rest = pattern.slice(1);
  let beginning = '';
  for (let found = LITERAL.exec(rest); found !== null; found = LITERAL.exec(rest)) {
    beginning += found[0].replace('\\', '');
    rest = rest.slice(found[0].length);
  }
  const runs: Run[] = [];
  for (let found = CLASS.exec(rest); found !== null; found = CLASS.exec(rest)) {
    rest = rest.slice(found[0].length);
    const count = COUNT.exec(rest);
    rest = rest.slice(count?.[0].length ?? 0);
    runs.push({ one: new RegExp(`^${found[0]}$`, 'u'), members: membersOf(found[1] ?? null), ...toCounts(count) });
  }
  return rest === '$' && runs.length <= 2 ? { beginning, runs } : null;
}

function toCounts(count: RegExpExecArray | null): { readonly min: number; readonly max: number } {
  if (count === null) return { min: 1, max: 1 };
  const [text, least, most] = count;
  if (least !== undefined) return { min: Number(least), max: Number(most ?? least) };
  return { min: text === '+' ? 1 : 0, max: text === '?' ? 1 : Infinity };
}

const RANGES: Readonly<Record<string, string>> = {
  'A-Z': 'capital letters',
  'a-z': 'small letters',
  'a-f': 'a to f',
  '0-9': 'digits',
  '1-9': 'digits other than 0',
};

/** @param text the inside of a class; null for any character */
function membersOf(text: string | null): readonly string[] {
  if (text === null) return ['any characters'];
  const parts = text.match(/.-.|./gsu) ?? [];
  const words = parts.map((part) => (part.length === 3 ? (RANGES[part] ?? `"${part}"`) : quoteForMessage(part)));
  const [capitals, smalls] = [RANGES['A-Z'], RANGES['a-z']];
  return words.some((word) => word === capitals) && words.some((word) => word === smalls)
    ? ['letters', ...words.filter((word) => word !== capitals && word !== smalls)]
    : words;
}

const SINGULARS: Readonly<Record<string, string>> = {
  letters: 'a letter',
  digits: 'a digit',
  'capital letters': 'a capital letter',
  'small letters': 'a small letter',
  'digits other than 0': 'a digit other than 0',
};
const toSingular = (word: string): string => SINGULARS[word] ?? word;

const joinWords = (words: readonly string[], last: 'and' | 'or'): string =>
  words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} ${last} ${words.at(-1) ?? ''}`;

function countText(min: number, max: number): string {
  if (max !== Infinity) return `${min === max ? '' : `${min} to `}${max} ${max === 1 ? 'character' : 'characters'}`;
  return `at least ${min} ${min === 1 ? 'character' : 'characters'}`;
}
