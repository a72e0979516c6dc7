// Decides a call of a tool by the call rules of its lane.

import type { CallRule } from '../../contract/policy/call-rules.js';
import type { Lane } from '../../contract/policy/lanes.js';
import type { JsonObject } from '../../contract/json.js';
import { callParts, partKindOf, type CallPart } from './call-parts.js';
import { matchesGlob, matchesGlobInAnyCase } from './glob.js';

/** A call as call rules see it. */
export interface JudgedCall {
  readonly tool: string;
  readonly input: JsonObject;
}

/** `rule` is null if no rule has matched. */
export type CallDecision =
  | { readonly decision: 'allow' }
  | { readonly decision: 'approval'; readonly rule: CallRule }
  | { readonly decision: 'deny'; readonly rule: CallRule | null }
  /** The input cannot be read with certainty. */
  | { readonly decision: 'unreadable' };

/**
 * A rule that denies a part decides. Otherwise each part needs a rule that allows it. A part that matches only rules
 * with the decision `approval` needs an approval; the first such rule names it.
 */
export function decideCall({ calls }: Pick<Lane, 'calls'>, { tool, input }: JudgedCall): CallDecision {
  if (calls === undefined) return ALLOWED;
  const rules = calls.filter(({ tools }) => tools.includes(tool));
  if (rules.length === 0) return { decision: 'deny', rule: null };
  const parts = callParts(tool, input);
  if (parts === null) return { decision: 'unreadable' };
  const denying = rules.find((rule) => rule.decision === 'deny' && parts.some((part) => isDenied(rule, part)));
  if (denying !== undefined) return { decision: 'deny', rule: denying };
  const granting = parts.map((part) => grantingRule(rules, part));
  if (granting.includes(undefined)) return { decision: 'deny', rule: null };
  const approval = granting.find((rule) => rule?.decision === 'approval');
  return approval === undefined ? ALLOWED : { decision: 'approval', rule: approval };
}

/** The rules that grant the parts of a call, each once. */
export function grantingRules({ calls = [] }: Pick<Lane, 'calls'>, { tool, input }: JudgedCall): readonly CallRule[] {
  const rules = calls.filter(({ tools }) => tools.includes(tool));
  const parts = rules.length === 0 ? null : callParts(tool, input);
  return [...new Set((parts ?? []).flatMap((part) => grantingRule(rules, part) ?? []))];
}

/** The subject of the approval that a call needs by these rules; null if it needs none. */
export function callApprovalSubject(lane: Pick<Lane, 'calls'>, call: JudgedCall): string | null {
  const decided = decideCall(lane, call);
  return decided.decision === 'approval' ? approvalSubjectOf(decided.rule) : null;
}

/** Whether the decision about a call depends on its input: rules name the tool, and see parts of its input. */
export const isDecidedByInput = ({ calls = [] }: Pick<Lane, 'calls'>, tool: string): boolean =>
  partKindOf(tool) !== 'call' && calls.some(({ tools }) => tools.includes(tool));

export const approvalSubjectOf = ({ id }: Pick<CallRule, 'id'>): string => `call.${id}`;

const ALLOWED: CallDecision = { decision: 'allow' };

/** A rule that allows counts before one that asks for approval. */
const grantingRule = (rules: readonly CallRule[], part: CallPart): CallRule | undefined =>
  rules.find((rule) => rule.decision === 'allow' && isGranted(rule, part)) ??
  rules.find((rule) => rule.decision === 'approval' && isGranted(rule, part));

/** Whether every condition of the rule holds for the part. A condition about another kind of part does not hold. */
function isGranted({ commands, paths, hosts, names }: CallRule, part: CallPart): boolean {
  return (
    (commands === undefined ||
      (part.kind === 'command' && commands.some((prefix) => beginsWith(part.words, prefix)))) &&
    (paths === undefined || (part.kind === 'path' && paths.some((glob) => matchesGlob(glob, part.path)))) &&
    (hosts === undefined || (part.kind === 'host' && hosts.some((pattern) => matchesHost(pattern, part.host)))) &&
    (names === undefined || (part.kind === 'name' && names.some((glob) => matchesGlob(glob, part.name))))
  );
}

/** As `isGranted`, but a path condition also holds for a word of a command that names such a path. */
function isDenied(rule: CallRule, part: CallPart): boolean {
  const { commands, paths, hosts, names } = rule;
  return (
    (commands === undefined ||
      (part.kind === 'command' && commands.some((prefix) => beginsWith(part.words, prefix)))) &&
    (paths === undefined || pathsOf(part).some((path) => paths.some((glob) => matchesGlobInAnyCase(glob, path)))) &&
    (hosts === undefined || (part.kind === 'host' && hosts.some((pattern) => matchesHost(pattern, part.host)))) &&
    (names === undefined || (part.kind === 'name' && names.some((glob) => matchesGlobInAnyCase(glob, part.name))))
  );
}

const beginsWith = (words: readonly string[], prefix: string): boolean =>
  prefix.split(' ').every((word, index) => words[index] === word);

const matchesHost = (pattern: string, host: string): boolean =>
  pattern.startsWith('*.') ? host.endsWith(pattern.slice(1)) : host === pattern;

/** The paths that a part may name. The parts of a word around `=`, `:`, `,` and `@` may be paths of their own. */
function pathsOf(part: CallPart): readonly string[] {
  if (part.kind === 'path') return [part.path];
  if (part.kind !== 'command') return [];
  return part.words.flatMap((word) => [word, ...word.split(/[=:,@]/)]).flatMap(lexicalPaths);
}

/** The word without `.` and `..`: as its own path, and as the path that an option such as `-f.env` ends with. */
function lexicalPaths(word: string): readonly string[] {
  if (word === '') return [];
  const clean = (text: string): string =>
    text
      .split('/')
      .filter((segment, index) => segment !== '.' && segment !== '..' && (segment !== '' || index === 0))
      .join('/');
  const option = /^-[A-Za-z](.+)$/.exec(word)?.[1];
  return [clean(word), ...(option === undefined ? [] : [clean(option)])];
}
