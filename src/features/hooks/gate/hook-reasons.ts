// What the model of a coding agent gets to know of a call that it must not make: the rule, the run, the step, the part
// that was refused, and what its lane allows. The model may see its policy, but never the content of other runs.

import type { JsonObject } from '../../../core/contract/json.js';
import type { CallRule } from '../../../core/contract/policy/call-rules.js';
import type { StepTrace } from '../../../core/contract/run/step-trace.js';
import { type CallRules, type JudgedCall, approvalRuleFor } from '../../../core/policy/policy-features.js';
import { beginsWith, decideCall, isMatch, otherOptions, type PatternKind } from '../calls/call-decision.js';
import type { CallPart } from '../calls/call-parts.js';
import type { Policy } from '../../../core/policy/policy.js';

const REASON_CHARS_MAX = 1_000;

/** A call that policy has denied. */
export function denialReason(
  { rule_id, run_id, step_index, error_code }: StepTrace,
  call: JudgedCall,
  policy: Policy,
  lane_id: string,
): string {
  const rule = rule_id ?? error_code ?? 'unknown';
  return bounded(
    `Turnpike denied this call: rule ${rule}, run ${run_id}, step ${step_index}. ${explained(call, policy, lane_id)}`,
  );
}

/** A call that waits for its approval. */
export const pendingReason = ({ run_id, step_index }: StepTrace): string =>
  bounded(
    `Turnpike: approval pending (run ${run_id}, step ${step_index}). A person has to approve this call. ` +
      'Go on with other work, and make the same call again later.',
  );

function explained(call: JudgedCall, policy: Policy, lane_id: string): string {
  const lane = policy.lanes.get(lane_id);
  if (lane?.calls === undefined) return REFUSED_AS_A_WHOLE;
  const refused = refusedText(lane, call);
  return refused === null ? REFUSED_AS_A_WHOLE : `${refused} ${allowedText(lane, call, policy, lane_id)}`;
}

const REFUSED_AS_A_WHOLE = 'It was refused as a whole: no call rule refuses a part of it.';

/** What was refused, and why; null if no call rule has refused it. */
function refusedText(rules: CallRules, call: JudgedCall): string | null {
  const decided = decideCall(rules, call);
  if (decided.decision === 'unreadable') return unreadableText(call);
  if (decided.decision !== 'deny') return null;
  const { rule, part } = decided;
  if (part === null) return `Refused: no call rule is about ${call.tool}.`;
  if (rule !== null) {
    const patterns = matchingPatterns(rule, part);
    return `Refused: ${partText(part)}, because rule ${rule.id} denies ${patterns.length === 0 ? 'it' : patterns.join(', ')}.`;
  }
  const options = part.kind === 'command' ? unlistedOptions(rules, call.tool, part.words) : [];
  return options.length === 0
    ? `Refused: ${partText(part)}, because no rule allows it.`
    : `Refused: ${partText(part)}, because its rule lists no ${options.map(quoted).join(', ')}.`;
}

function unreadableText({ input: { redacted } }: JudgedCall): string {
  const members = Array.isArray(redacted) ? redacted.filter((one) => typeof one === 'string') : [];
  return members.length === 0
    ? 'Refused: the call has no certain reading. Write it plainly, as commands and paths without expansions.'
    : `Refused: ${members.join(', ')} of the call had text that looks like a secret.`;
}

/** The options by which a command fails, if a rule allows it with others. */
const unlistedOptions = ({ calls = [] }: CallRules, tool: string, words: readonly string[]): readonly string[] =>
  calls
    .filter(({ tools, decision }) => decision !== 'deny' && tools.includes(tool))
    .flatMap(({ commands = [], options }) =>
      commands.filter((prefix) => beginsWith(words, prefix)).map((prefix) => otherOptions(words, prefix, options)),
    )
    .find((options) => options.length > 0) ?? [];

function partText(part: CallPart): string {
  switch (part.kind) {
    case 'command':
      return `the command ${quoted(part.words.join(' '))}`;
    case 'path':
      return `the path ${quoted(part.path)}`;
    case 'glob':
      return `the search for ${quoted(part.glob)} in ${quoted(part.path)}`;
    case 'host':
      return `the host ${quoted(part.host)}`;
    case 'name':
      return `the tool ${quoted(part.name)}`;
    case 'call':
      return 'the call';
  }
}

const PART_CHARS_MAX = 200;
const quoted = (text: string): string =>
  `\`${text.length <= PART_CHARS_MAX ? text : `${text.slice(0, PART_CHARS_MAX)}...`}\``.toWellFormed();

/** What the call rules of the lane allow of the tool without an approval. */
function allowedText(rules: CallRules, call: JudgedCall, policy: Policy, lane_id: string): string {
  // Then each call needs one, whatever its rules say.
  const needsApproval = approvalRuleFor(policy.approvals, 'CALL_TOOL') !== undefined;
  const allowed = needsApproval ? [] : allowedInstead(rules, call);
  if (allowed.length === 0) return `Lane ${lane_id} allows no other call of ${call.tool} without an approval.`;
  const texts = allowed.map(({ pattern, options, except }) => {
    if (pattern === null) return 'every call';
    const limits = [
      ...(options.length === 0 ? [] : [`options ${options.join(' ')}`]),
      ...(except.length === 0 ? [] : [`not ${except.join(', ')}`]),
    ];
    return limits.length === 0 ? pattern : `${pattern} (${limits.join('; ')})`;
  });
  // What is near to the refused part comes first: the list may be cut.
  const near = texts.filter((text) => text.endsWith(')'));
  const sorted = [...near, ...texts.filter((text) => !text.endsWith(')'))];
  return `Its call rules allow ${call.tool} for: ${[...new Set(sorted)].join(', ')}, unless a rule denies a part.`;
}

/** A client that could act without asking. */
export const unsafeReason = (client: string): string =>
  'Turnpike: this client could act without asking, so every call is denied. ' +
  `The user must run \`turnpike agents doctor ${client}\`, follow it, and start a new session.`;

/** A session that policy has ended. */
export const closedReason = (run_id: string): string =>
  `Turnpike: policy has ended this session (run ${run_id}), so every call is denied. ` +
  `A person may reopen it: \`turnpike agents reopen ${run_id}\`.`;

export const NO_SUBAGENT_REASON =
  'Turnpike: policy allows no further subagent while the others have its budgets, so the call is denied. ' +
  'Wait until one of them has ended.';

export const OTHER_PROJECT_REASON =
  'Turnpike: this session belongs to another project folder, so the call is denied. Start a new session here.';

/** A session that began without a check of its client, as one that uses HTTP alone. */
export const UNCHECKED_REASON =
  'Turnpike: the client of this session was not checked, so the call is denied. ' +
  'Its hook for the start of a session must be the command `turnpike hook`.';

/** A call of which nothing can be recorded, so that nothing can be decided. */
export const SECRET_REASON =
  'Turnpike: the command, the path or the name of this call has text that looks like a secret, so the call is denied. ' +
  'Name the secret by a file or a variable that the program reads itself.';

/** Nothing more than that: the cause is in the log. */
export const FAILURE_REASON =
  'Turnpike could not decide this call, so it is denied. The log of the service has the cause.';

const bounded = (text: string): string =>
  text.length <= REASON_CHARS_MAX ? text : `${text.slice(0, REASON_CHARS_MAX - 4)} ...`;

/** What a rule allows of a tool. */
interface AllowedPattern {
  /** A command, or a pattern of paths, hosts or names; null: every call of the tool. */
  readonly pattern: string | null;
  /** The refused command begins with it, so only these options are allowed. */
  readonly options: readonly string[];
  /** The refused part matches it, because rules deny these. */
  readonly except: readonly string[];
  /** A call that matches it and is allowed. */
  readonly example: JudgedCall;
}

/**
 * What the rules allow of the tool of a refused call. Nothing is listed that needs an approval, or that matches what
 * was refused without its exception: each text comes with an example, and rules have decided that example.
 */
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
      const example = { tool: call.tool, input: pattern === null ? {} : inputOf(call.tool, pattern) };
      const { rule: denying, part } = denied;
      const isRefused = part !== null && (pattern === null || isMatch(pattern.kind, pattern.text, part));
      const options = isRefused && denying === null ? (rule.options ?? []) : [];
      const except = isRefused && denying !== null ? matchingPatterns(denying, part) : [];
      if (isRefused && options.length + except.length === 0) return [];
      return [{ pattern: pattern?.text ?? null, options, except, example }];
    }),
  );
  return found.filter(({ example }) => decideCall(rules, example).decision === 'allow');
}

/** The patterns of a rule that match a part. */
const matchingPatterns = (rule: CallRule, part: CallPart): readonly string[] =>
  patternsOf(rule).flatMap((pattern) =>
    pattern !== null && isMatch(pattern.kind, pattern.text, part) ? [pattern.text] : [],
  );

interface Pattern {
  readonly kind: PatternKind;
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
