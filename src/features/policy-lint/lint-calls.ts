// Lint rules for the call rules of lanes (0061).

import type { CallRule } from '../../core/contract/policy/call-rules.js';
import { quoteForMessage } from '../../core/contract/finding-text.js';
import type { Lane } from '../../core/contract/policy/lanes.js';
import { partKindOf } from '../../core/contract/policy/native-tool-names.js';
import type { PolicyParts } from '../../core/policy/files/policy-consistency.js';
import type { LintSeverity } from '../../home/policy/policy-linter.js';
import type { LintFinding, LintRule } from './lint-rules.js';

/** It runs any program, so a lane that lists it needs rules about commands. */
const SHELL = 'native.shell';

export function* lintCalls({ lanes: { lanes } }: PolicyParts): Generator<LintFinding> {
  for (const [index, lane] of lanes.entries()) {
    const { calls = [], allowed_actions } = lane;
    const shell = allowed_actions.tools?.indexOf(SHELL) ?? -1;
    if (shell >= 0 && lane.calls === undefined) {
      const at = `/lanes/${index}/allowed_actions/tools/${shell}`;
      yield callFinding(lane, 'call.unrestricted', [
        at,
        `lists ${SHELL}, and has no rules about its commands`,
        'warning',
      ]);
    }
    for (const [entry, rule] of calls.entries()) yield* lintRule(lane, rule, `/lanes/${index}/calls/${entry}`);
  }
}

function* lintRule(lane: Lane, rule: CallRule, at: string): Generator<LintFinding> {
  const label = `has the call rule ${quoteForMessage(rule.id)}, which`;
  if (rule.decision === 'allow' && rule.tools.includes(SHELL) && conditionsOf(rule).length === 0) {
    yield callFinding(lane, 'call.any_command', [at, `${label} allows all commands`, 'warning']);
  }
  if (rule.decision === 'allow' && rule.commands !== undefined && rule.options === undefined) {
    const problem = `${label} allows all options of its commands, also those that execute programs or write files`;
    yield callFinding(lane, 'call.any_option', [at, problem, 'warning']);
  }
  if (rule.decision === 'deny' && rule.options !== undefined) {
    const problem = `${label} denies whatever its options are: only a rule that allows or asks has options`;
    yield callFinding(lane, 'call.never_matches', [`${at}/options`, problem, 'error']);
  }
  if (!rule.tools.some((tool) => canMatch(rule, tool))) {
    yield callFinding(lane, 'call.never_matches', [at, `${label} matches no part of any call`, 'error']);
  }
}

const callFinding = (
  { lane_id }: Lane,
  rule: LintRule,
  [pointer, problem, severity]: readonly [pointer: string, problem: string, severity: LintSeverity],
): LintFinding => ({
  name: 'lanes',
  pointer,
  rule,
  severity,
  message: `lane ${quoteForMessage(lane_id)} ${problem}`,
});

const CONDITIONS = { commands: 'command', options: 'command', paths: 'path', hosts: 'host', names: 'name' } as const;
type Condition = keyof typeof CONDITIONS;

const conditionsOf = (rule: CallRule): readonly Condition[] =>
  (Object.keys(CONDITIONS) as Condition[]).filter((name) => rule[name] !== undefined);

/** Whether some part of a call of the tool can have all conditions of the rule. */
function canMatch(rule: CallRule, tool: string): boolean {
  const kind = partKindOf(tool);
  return conditionsOf(rule).every(
    (name) => CONDITIONS[name] === kind || (name === 'paths' && kind === 'command' && rule.decision === 'deny'),
  );
}
