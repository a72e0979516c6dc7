// Decides a call of a tool by the call rules of its lane.

import type { CallRule } from '../../../core/contract/policy/call-rules.js';
import type { CallDecider, CallRules, JudgedCall } from '../../../core/policy/policy-features.js';
import { callParts, type CallPart } from './call-parts.js';
import { matchesGlob, matchesGlobInAnyCase, namesDenied } from './glob.js';

/** `rule` is null if no rule has matched, and `part` if no rule is about the tool. */
type CallDecision =
  | { readonly decision: 'allow' }
  | { readonly decision: 'approval'; readonly rule: CallRule }
  | { readonly decision: 'deny'; readonly rule: CallRule | null; readonly part: CallPart | null }
  /** The input cannot be read with certainty. */
  | { readonly decision: 'unreadable' };

/**
 * A rule that denies a part decides. Otherwise each part needs a rule that allows it. A part that matches only rules
 * with the decision `approval` needs an approval; the first such rule names it.
 */
export function decideCall({ calls }: CallRules, { tool, input }: JudgedCall): CallDecision {
  if (calls === undefined) return ALLOWED;
  const rules = calls.filter(({ tools }) => tools.includes(tool));
  if (rules.length === 0) return { decision: 'deny', rule: null, part: null };
  const parts = callParts(tool, input);
  if (parts === null) return { decision: 'unreadable' };
  for (const rule of rules.filter(({ decision }) => decision === 'deny')) {
    const part = parts.find((one) => isDenied(rule, one));
    if (part !== undefined) return { decision: 'deny', rule, part };
  }
  const granted = parts.filter(needsGrant).map((part) => ({ part, rule: grantingRule(rules, part) }));
  const refused = granted.find(({ rule }) => rule === undefined);
  if (refused !== undefined) return { decision: 'deny', rule: null, part: refused.part };
  const approval = granted.find(({ rule }) => rule?.decision === 'approval')?.rule;
  return approval === undefined ? ALLOWED : { decision: 'approval', rule: approval };
}

/** The rules that grant the parts of a call, each once. */
function grantingRules({ calls = [] }: CallRules, { tool, input }: JudgedCall): readonly CallRule[] {
  const rules = calls.filter(({ tools }) => tools.includes(tool));
  const parts = rules.length === 0 ? null : callParts(tool, input);
  return [...new Set((parts ?? []).filter(needsGrant).flatMap((part) => grantingRule(rules, part) ?? []))];
}

/** What core asks of call rules. */
export const CALL_DECIDER: CallDecider = { decide: decideCall, grantingRules };

const ALLOWED: CallDecision = { decision: 'allow' };

const needsGrant = ({ kind }: CallPart): boolean => kind !== 'glob';

/** A rule that allows counts before one that asks for approval. */
const grantingRule = (rules: readonly CallRule[], part: CallPart): CallRule | undefined =>
  rules.find((rule) => rule.decision === 'allow' && isGranted(rule, part)) ??
  rules.find((rule) => rule.decision === 'approval' && isGranted(rule, part));

/** Whether every condition of the rule holds for the part. A condition about another kind of part does not hold. */
function isGranted({ commands, options, paths, hosts, names }: CallRule, part: CallPart): boolean {
  return (
    (commands === undefined ||
      (part.kind === 'command' &&
        commands.some((prefix) => beginsWith(part.words, prefix) && hasOnlyOptions(part.words, prefix, options)))) &&
    (paths === undefined || (part.kind === 'path' && paths.some((glob) => matchesGlob(glob, part.path)))) &&
    (hosts === undefined || (part.kind === 'host' && hosts.some((pattern) => matchesHost(pattern, part.host)))) &&
    (names === undefined || (part.kind === 'name' && names.some((glob) => matchesGlob(glob, part.name))))
  );
}

/** Whether every condition of a rule that denies holds for the part. */
const isDenied = ({ commands, paths, hosts, names }: CallRule, part: CallPart): boolean =>
  (commands === undefined || commands.some((prefix) => isMatch('command', prefix, part))) &&
  (paths === undefined || paths.some((glob) => isMatch('path', glob, part))) &&
  (hosts === undefined || hosts.some((pattern) => isMatch('host', pattern, part))) &&
  (names === undefined || names.some((glob) => isMatch('name', glob, part)));

/** What a pattern of a rule is about. */
export type PatternKind = 'command' | 'path' | 'host' | 'name';

/** Whether a pattern names the part, in any case; one of paths also names a command with a word of such a path. */
export function isMatch(kind: PatternKind, pattern: string, part: CallPart): boolean {
  switch (kind) {
    case 'command':
      return part.kind === 'command' && beginsWith(part.words, pattern);
    case 'path':
      return namesPath(pattern, part);
    case 'host':
      return part.kind === 'host' && matchesHost(pattern, part.host);
    case 'name':
      return part.kind === 'name' && matchesGlobInAnyCase(pattern, part.name);
  }
}

export const beginsWith = (words: readonly string[], prefix: string): boolean =>
  prefix.split(' ').every((word, index) => words[index] === word);

const matchesHost = (pattern: string, host: string): boolean =>
  pattern.startsWith('*.') ? host.endsWith(pattern.slice(1)) : host === pattern;

/** Whether a part names a path that the glob of a rule matches. */
function namesPath(glob: string, part: CallPart): boolean {
  switch (part.kind) {
    case 'path':
      return matchesGlobInAnyCase(glob, part.path);
    case 'glob':
      return namesDenied(part.names, part.path, glob);
    case 'command':
      return namesDenied(part.names, '.', glob) || part.paths.some((path) => matchesGlobInAnyCase(glob, path));
    default:
      return false;
  }
}

/**
 * Whether each option among the words behind the prefix is in the list. What no list has is refused, so that no
 * abbreviation, no other way to write an option and no option of a later version of a program passes. A word counts as
 * an option if it begins with `-`, `+` or `@`, also behind `--`: not every program ends its options there, and some
 * read further ones from `@file`.
 * @param lists texts with spaces between options; absent: all options
 */
const hasOnlyOptions = (words: readonly string[], prefix: string, lists?: readonly string[]): boolean =>
  otherOptions(words, prefix, lists).length === 0;

/** The options that the list does not have. */
export function otherOptions(words: readonly string[], prefix: string, lists?: readonly string[]): readonly string[] {
  if (lists === undefined) return [];
  const options = lists.flatMap((list) => list.split(' '));
  const takesClusters = !options.some((option) => LONG_WITH_ONE_HYPHEN.test(option));
  return words
    .slice(prefix.split(' ').length)
    .filter((word) => /^(?:[+@]|-.)/s.test(word))
    .filter(
      (word) =>
        !options.some((option) => isOption(word, option, takesClusters)) &&
        !(takesClusters && /^-[^-]/.test(word) && isCluster(word, options)),
    );
}

/** A program with such options takes no letters together: `-exec` is one option of it. */
const LONG_WITH_ONE_HYPHEN = /^-[^-=][^=]/;

/** Whether the word is this option. One that ends with `=` takes a value: `--color=`, `-n=`, `-run=`. */
function isOption(word: string, option: string, takesClusters: boolean): boolean {
  if (option === '-#') return /^-[0-9]+$/.test(word);
  if (!option.endsWith('=')) return word === option;
  const name = option.slice(0, -1);
  // Of a program without letters together, `-pkgdir` is no `-p` with a value.
  const isLong = name.startsWith('--') || (name.startsWith('-') && !takesClusters);
  return word === name || word.startsWith(isLong ? option : name);
}

/** Whether the word is letters of the list, of which the last may have its value behind it: `-la`, `-rn5`, `-n20`. */
function isCluster(word: string, options: readonly string[]): boolean {
  for (let at = 1; at < word.length; at += 1) {
    const letter = `-${word.charAt(at)}`;
    if (options.includes(`${letter}=`)) return true;
    if (options.includes('-#') && /^[0-9]+$/.test(word.slice(at))) return true;
    if (!options.includes(letter)) return false;
  }
  return true;
}
