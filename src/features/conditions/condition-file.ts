// Reads a condition file (`conditions.cedar`) into single policies with their place and their annotations. Cedar reads
// each policy; this file only finds where one ends and the next begins, so that a finding has its line and column.

import { Buffer } from 'node:buffer';
import { quoteForMessage, toPrintable } from '../../core/contract/finding-text.js';
import type { PolicyFinding } from '../../core/policy/files/policy-finding.js';
import type { Condition, Obligation } from '../../core/policy/policy-features.js';
import { parsePolicy, type CedarPolicyJson, type CedarProblem } from './cedar.js';

/** One `forbid` of the file. */
export interface ParsedCondition extends Condition {
  readonly scope: CedarPolicyJson;
}

export interface ConditionFile {
  readonly conditions: readonly ParsedCondition[];
  readonly findings: readonly PolicyFinding[];
}

export const CONDITION_BYTES_MAX = 262_144;
export const CONDITIONS_MAX = 256;
const QUORUM_MAX = 8;
const DEFAULT_EXPIRY_MINUTES = 60;
const EXPIRY_MINUTES_MAX = 525_600;
const MESSAGE_CHARS_MAX = 400;
const ID = /^[a-z][a-z0-9_-]{0,63}$/;
const ROLE = /^[A-Za-z][A-Za-z0-9_.-]{0,119}$/;

/** Reads any bytes: every mistake is a finding. A condition with a mistake is not returned. */
export function readConditionFile(path: string, bytes: Uint8Array): ConditionFile {
  const text = decode(bytes);
  if (typeof text !== 'string') return { conditions: [], findings: [{ file: path, line: 1, ...text }] };
  const conditions: ParsedCondition[] = [];
  const findings: PolicyFinding[] = [];
  const places = splitPolicies(text);
  if (places.length > CONDITIONS_MAX) {
    const message = `the file has more than ${CONDITIONS_MAX} conditions`;
    return { conditions, findings: [{ file: path, line: 1, rule: 'condition.too_many', message }] };
  }
  const known = new Set<string>();
  for (const place of places) {
    const read = readCondition(place, known);
    if ('condition' in read) conditions.push(read.condition);
    else findings.push(...read.mistakes.map((mistake) => ({ file: path, ...mistake })));
  }
  return { conditions, findings };
}

/** A policy in the text, from its first character that is neither space nor comment. */
export interface PolicyPlace {
  readonly text: string;
  readonly line: number;
  readonly column: number;
}

/** The policies of a text: each ends with a semicolon outside of strings and comments. */
export function splitPolicies(text: string): readonly PolicyPlace[] {
  const places: PolicyPlace[] = [];
  let start = -1;
  for (const { 0: token, index } of text.matchAll(TOKEN)) {
    if (token.startsWith('//') || /^\s/.test(token)) continue;
    if (start < 0) start = index;
    if (token !== ';') continue;
    places.push(placeOf(text, start, index + 1));
    start = -1;
  }
  if (start >= 0) places.push(placeOf(text, start, text.length));
  return places;
}

/** A comment, a string (closed or not), white space, or one other character. */
const TOKEN = /\/\/[^\n]*|"(?:\\[\s\S]|[^"\\])*"?|\s+|[\s\S]/gu;

function placeOf(text: string, start: number, end: number): PolicyPlace {
  const before = text.slice(0, start);
  const line = before.split('\n').length;
  return { text: text.slice(start, end), line, column: start - before.lastIndexOf('\n') };
}

/** The line and column of an offset in UTF-8 bytes of a policy's text. */
export function positionOf(place: PolicyPlace, offset: number): { readonly line: number; readonly column: number } {
  const before = Buffer.from(place.text).subarray(0, offset).toString('utf8');
  const newline = before.lastIndexOf('\n');
  if (newline < 0) return { line: place.line, column: place.column + before.length };
  return { line: place.line + before.split('\n').length - 1, column: before.length - newline };
}

type Mistake = Omit<PolicyFinding, 'file'>;

/** A problem that Cedar reports, as a finding at its place. */
export function toMistake(place: PolicyPlace, rule: PolicyFinding['rule'], problem: CedarProblem): Mistake {
  return { ...positionOf(place, problem.start), rule, message: problemText(problem) };
}

/** What Cedar says, and its remedy: neither shortens the other. */
export const problemText = ({ message, help }: CedarProblem): string =>
  `${toPrintable(message)}${help === null ? '' : ` (${toPrintable(help)})`}`;

/** What Cedar's parser does not say of frequent mistakes. */
function syntaxHint({ text, line }: PolicyPlace): string {
  const tokens = [...text.matchAll(TOKEN)].filter(({ 0: token }) => !token.startsWith('//') && !/^\s/.test(token));
  const code = tokens.map(({ 0: token }) => (token.startsWith('"') ? '""' : token)).join('');
  if (tokens.at(-1)?.[0] !== ';') return '; the last condition of a file ends with ";" too';
  const [, second] = effectsIn(text);
  if (second !== undefined) {
    const next = line + text.slice(0, second).split('\n').length - 1;
    return `; a condition ends with ";", which is missing before line ${next}`;
  }
  return /\d\.\d/.test(code) ? '; write a number with a point as decimal("0.5")' : '';
}

/** Where `forbid` or `permit` begins a policy, outside of strings and comments. */
function effectsIn(text: string): readonly number[] {
  const plain = text.replaceAll(/\/\/[^\n]*|"(?:\\[\s\S]|[^"\\])*"?/gu, (part) => ' '.repeat(part.length));
  return [...plain.matchAll(/\b(?:forbid|permit)\s*\(/g)].map(({ index }) => index);
}

function readCondition(
  place: PolicyPlace,
  known: Set<string>,
): { readonly condition: ParsedCondition } | { readonly mistakes: readonly Mistake[] } {
  const read = parsePolicy(place.text);
  if ('problems' in read) {
    const hint = syntaxHint(place);
    return {
      mistakes: read.problems.map((problem) => {
        const { message, ...mistake } = toMistake(place, 'condition.syntax', problem);
        return { ...mistake, message: `${message}${hint}` };
      }),
    };
  }
  const { policy } = read;
  const annotations = policy.annotations ?? {};
  const id = annotations['id'];
  const mistakes = [...findMistakes(policy, known)].map(({ rule, message }) => ({
    line: place.line,
    column: place.column,
    rule,
    message,
  }));
  const obligation = readObligation(annotations);
  if (mistakes.length > 0 || id === undefined || obligation === undefined) return { mistakes };
  known.add(id);
  const message = annotations['message'] ?? null;
  return { condition: { id, message, obligation, ...place, scope: policy } };
}

type AnnotationMistake = Pick<Mistake, 'rule' | 'message'>;

function* findMistakes(
  { effect, annotations = {} }: CedarPolicyJson,
  known: Set<string>,
): Generator<AnnotationMistake> {
  if (effect !== 'forbid') {
    yield { rule: 'condition.permit', message: 'only forbid is accepted: lanes permit, and conditions narrow it' };
  }
  const id = annotations['id'];
  if (id === undefined || !ID.test(id)) {
    yield { rule: 'condition.id', message: 'a condition needs an @id of a-z, 0-9, _ and -, at most 64 characters' };
  } else if (known.has(id)) {
    yield { rule: 'condition.duplicate_id', message: `the id ${quoteForMessage(id)} is used twice` };
  }
  for (const name of Object.keys(annotations)) {
    if (!ANNOTATIONS.includes(name)) {
      const message = `@${name} means nothing here: use ${ANNOTATIONS.map((known) => `@${known}`).join(', ')}`;
      yield { rule: 'condition.annotation', message };
    }
  }
  yield* findValueMistakes(annotations);
}

const ANNOTATIONS: readonly string[] = ['id', 'approvals', 'approver_role', 'expires', 'message'];

function* findValueMistakes(annotations: Readonly<Record<string, string>>): Generator<AnnotationMistake> {
  const { approvals, approver_role, expires, message } = annotations;
  const wrong = (text: string): AnnotationMistake => ({ rule: 'condition.annotation', message: text });
  if (approvals === undefined && (approver_role ?? expires) !== undefined) {
    yield wrong('@approver_role and @expires need @approvals');
  }
  if (approvals !== undefined && quorumOf(approvals) === null) yield wrong(`@approvals is "1" to "${QUORUM_MAX}"`);
  if (approver_role !== undefined && rolesOf(approver_role) === null) {
    yield wrong('@approver_role is the name of a role, or several with commas');
  }
  if (expires !== undefined && minutesOf(expires) === null) {
    yield wrong('@expires is a number of minutes, hours or days, such as "30m", "8h" or "7d", at most 365 days');
  }
  if (message !== undefined && (message.length === 0 || message.length > MESSAGE_CHARS_MAX)) {
    yield wrong(`@message has 1 to ${MESSAGE_CHARS_MAX} characters`);
  }
}

/** @returns undefined if an annotation has a mistake */
function readObligation(annotations: Readonly<Record<string, string>>): Obligation | null | undefined {
  const { approvals, approver_role, expires } = annotations;
  if (approvals === undefined) return null;
  const quorum = quorumOf(approvals);
  const approver_roles = approver_role === undefined ? null : rolesOf(approver_role);
  const expires_minutes = expires === undefined ? DEFAULT_EXPIRY_MINUTES : minutesOf(expires);
  if (quorum === null || expires_minutes === null || (approver_roles === null && approver_role !== undefined)) {
    return undefined;
  }
  return { quorum, approver_roles, expires_minutes };
}

const quorumOf = (text: string): number | null => (/^[1-8]$/.test(text) ? Number(text) : null);

function rolesOf(text: string): readonly string[] | null {
  const roles = [...new Set(text.split(',').map((role) => role.trim()))].toSorted();
  return roles.length <= 16 && roles.every((role) => ROLE.test(role)) ? roles : null;
}

const MINUTES: Readonly<Record<string, number>> = { m: 1, h: 60, d: 1_440 };

function minutesOf(text: string): number | null {
  const [, count = '', unit = ''] = /^(\d{1,6})([mhd])$/.exec(text) ?? [];
  const minutes = Number(count) * (MINUTES[unit] ?? 0);
  return minutes >= 1 && minutes <= EXPIRY_MINUTES_MAX ? minutes : null;
}

function decode(bytes: Uint8Array): string | AnnotationMistake {
  if (bytes.byteLength > CONDITION_BYTES_MAX) {
    return { rule: 'condition.too_large', message: `the file has more than ${CONDITION_BYTES_MAX} bytes` };
  }
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return { rule: 'condition.encoding', message: 'the file is not valid UTF-8' };
  }
}
