// What call rules allow in place of a call that they refuse. Nothing is listed that needs an approval, or that matches
// what was refused without its exception: each text comes with an example, and rules have decided that example.

import type { CallRule } from '../../../core/contract/policy/call-rules.js';
import type { JsonObject } from '../../../core/contract/json.js';
import type { CallRules, JudgedCall } from '../../../core/policy/policy-features.js';
import { beginsWith, decideCall, isNamedBy, matchesHost } from '../calls/call-decision.js';
import type { CallPart } from '../calls/call-parts.js';
import { matchesGlob, matchesGlobInAnyCase } from '../calls/glob.js';

/** What a rule allows of a tool. */
export interface AllowedPattern {
  /** A command, or a pattern of paths, hosts or names; null: every call of the tool. */
  readonly pattern: string | null;
  /** The refused command begins with it, so only these options are allowed. */
  readonly options: readonly string[];
  /** The refused part matches it, because rules deny these. */
  readonly except: readonly string[];
  /** A call that matches it and is allowed. */
  readonly example: JudgedCall;
}

/** What the rules allow of the tool of a refused call. */
export function allowedInstead(rules: CallRules, call: JudgedCall): readonly AllowedPattern[] {
  const decided = decideCall(rules, call);
  // Whatever has refused the call, it was no call rule, and may refuse the others too.
  if (decided.decision === 'allow' || decided.decision === 'approval') return [];
  const allowing = (rules.calls ?? []).filter(
    ({ tools, decision }) => decision === 'allow' && tools.includes(call.tool),
  );
  const denied = decided.decision === 'deny' ? decided : { rule: null, part: null };
  const found = allowing.flatMap((rule) =>
    patternsOf(rule).flatMap((pattern) => {
      const example = exampleOf(call.tool, pattern);
      const { rule: denying, part } = denied;
      const isRefused = part !== null && isMatch(pattern, part);
      const options = isRefused && denying === null ? (rule.options ?? []) : [];
      const except = isRefused && denying !== null ? matchingPatterns(denying, part) : [];
      if (isRefused && options.length + except.length === 0) return [];
      return [{ pattern: pattern?.text ?? null, options, except, example }];
    }),
  );
  return found.filter(({ example }) => decideCall(rules, example).decision === 'allow');
}

/** The patterns of a rule that match a part. */
export const matchingPatterns = (rule: CallRule, part: CallPart): readonly string[] =>
  patternsOf(rule).flatMap((pattern) => (pattern !== null && isMatch(pattern, part) ? [pattern.text] : []));

interface Pattern {
  readonly kind: 'command' | 'path' | 'host' | 'name';
  readonly text: string;
}

/** Null stands for a rule without conditions. */
function patternsOf({ commands, paths, hosts, names }: CallRule): readonly (Pattern | null)[] {
  const lists = [
    ['command', commands],
    ['path', paths],
    ['host', hosts],
    ['name', names],
  ] as const;
  const patterns = lists.flatMap(([kind, texts = []]) => texts.map((text) => ({ kind, text })));
  return patterns.length === 0 ? [null] : patterns;
}

function isMatch(pattern: Pattern | null, part: CallPart): boolean {
  if (pattern === null) return true;
  switch (pattern.kind) {
    case 'command':
      return part.kind === 'command' && beginsWith(part.words, pattern.text);
    case 'path':
      return isNamedBy(pattern.text, part) || (part.kind === 'path' && matchesGlob(pattern.text, part.path));
    case 'host':
      return part.kind === 'host' && matchesHost(pattern.text, part.host);
    case 'name':
      return part.kind === 'name' && matchesGlobInAnyCase(pattern.text, part.name);
  }
}

function exampleOf(tool: string, pattern: Pattern | null): JudgedCall {
  return { tool, input: pattern === null ? {} : inputOf(tool, pattern) };
}

function inputOf(tool: string, { kind, text }: Pattern): JsonObject {
  const name = text.replaceAll('**', 'x').replaceAll(/[*?]/g, 'x');
  switch (kind) {
    case 'command':
      return { command: { text, bytes: Buffer.byteLength(text) } };
    case 'path':
      return tool === 'native.patch' ? { paths: [name] } : { path: name };
    case 'host':
      return { url: `https://${name}/` };
    case 'name': {
      const [server = '', of = ''] = name.split('/');
      return tool === 'native.mcp' ? { server, tool: of } : { name };
    }
  }
}
