// Lint rules for actions, approvals and limits.

import type { Catalogue, ActionDefinition } from '../../core/contract/policy/catalogue.js';
import type { ActionsPolicy } from '../../core/contract/policy/actions-policy.js';
import { quoteForMessage } from '../../core/contract/finding-text.js';
import { approvalSubjectOf } from '../../core/contract/policy/call-rules.js';
import type { LintSeverity } from '../../home/policy/policy-linter.js';
import type { LintFinding, LintRule } from './lint-rules.js';
import { laneKindOf } from './lint-lanes.js';
import type { PolicyParts } from '../../core/policy/files/policy-consistency.js';

type ListedAction = ActionsPolicy['actions'][number];

export function* lintActions(parts: PolicyParts, catalogue: Catalogue): Generator<LintFinding> {
  const { actions, approvals = [], budgets, limits, knobs } = parts.actions;
  for (const [index, action] of actions.entries()) yield* lintAction(action, `/actions/${index}`, parts, catalogue);
  for (const [index, rule] of approvals.entries()) {
    const approvalLabel = `the approval of ${quoteForMessage(rule.for)}`;
    if (!HIGH_RISK_SUBJECTS.includes(rule.for) && !isAgentSubject(rule.for, parts)) {
      yield actionFinding(
        'approval.unlisted_action',
        `/approvals/${index}/for`,
        `${approvalLabel} is for an action that is not listed`,
      );
    }
    if (rule.expires_minutes > EXPIRES_MINUTES_MAX) {
      const message = `${approvalLabel} holds for ${rule.expires_minutes} minutes`;
      yield actionFinding('approval.long_lived', `/approvals/${index}/expires_minutes`, message, 'warning');
    }
  }
  const calls = actions.findIndex(({ action }) => action === 'CALL_TOOL');
  if (calls >= 0 && budgets?.tool_calls === undefined) {
    yield actionFinding(
      'budget.no_tool_calls',
      `/actions/${calls}`,
      'a run tree may call tools without a limit',
      'warning',
    );
  }
  if (limits.denials_per_run_max > DENIALS_MAX) {
    const message = `an agent may be denied ${limits.denials_per_run_max} times before its run ends`;
    yield actionFinding('limits.denials', '/limits/denials_per_run_max', message);
  }
  const { finish_with_pending_request: finishRule = 'cancel' } = knobs;
  if (finishRule !== 'cancel' && !approvals.some((rule) => isAgentSubject(rule.for, parts))) {
    const message = `FINISH would ${finishRule} on pending requests, but no action of an agent needs an approval`;
    yield actionFinding('finish.no_request', '/knobs/finish_with_pending_request', message, 'warning');
  }
  if (knobs.checkpoints === 'tree_end') {
    const message = 'a ledger that is cut while a tree is under way is not noticed at opening';
    yield actionFinding('checkpoints.late', '/knobs/checkpoints', message, 'warning');
  }
}

/** Whether agents can ask for an approval of it: a listed action, or a call rule that asks for one. */
const isAgentSubject = (subject: string, { lanes: { lanes }, actions: { actions } }: PolicyParts): boolean =>
  actions.some(({ action }) => action === subject) ||
  lanes.some(({ calls = [] }) =>
    calls.some((rule) => rule.decision === 'approval' && approvalSubjectOf(rule) === subject),
  );

const HIGH_RISK_SUBJECTS = ['promotion', 'export'];
const EXPIRES_MINUTES_MAX = 43_200;
const DENIALS_MAX = 1_000;

const actionFinding = (
  rule: LintRule,
  pointer: string,
  message: string,
  severity: LintSeverity = 'error',
): LintFinding => ({
  name: 'actions',
  pointer,
  rule,
  severity,
  message,
});

function* lintAction(
  action: ListedAction,
  at: string,
  { lanes: { lanes } }: PolicyParts,
  catalogue: Catalogue,
): Generator<LintFinding> {
  const definition = catalogue.action(action.action);
  const actionLabel = `action ${quoteForMessage(action.action)}`;
  for (const path of definition === undefined ? [] : filePaths(definition)) {
    const endings = action.extensions?.[path];
    if (endings === undefined) {
      yield actionFinding(
        'action.path_unrestricted',
        at,
        `${actionLabel} takes any file as its ${path}, also scripts and Makefiles`,
      );
      continue;
    }
    const executable = endings.filter(
      // Files without an ending are mostly read by programs: Makefile, Dockerfile, Jenkinsfile.
      (ending) => !ending.startsWith('.') || EXECUTABLE_ENDINGS.has(ending.toLowerCase()),
    );
    if (executable.length === 0) continue;
    const message = `${actionLabel} takes files as its ${path} that programs run or obey: ${executable.join(' ')}`;
    yield actionFinding('action.runs', `${at}/extensions/${path}`, message);
  }
  const lane = lanes.find(({ lane_id }) => lane_id === action.lane);
  if (lane === undefined) return;
  const kind = laneKindOf(lane, catalogue);
  if (kind.exports || kind.promotes || kind.checks) {
    const message = `${actionLabel} works in lane ${quoteForMessage(lane.lane_id)}, which is not for agents`;
    yield actionFinding('action.privileged_lane', `${at}/lane`, message);
  }
}

/** Path arguments that create, change or delete files. A directory has no extension. */
const filePaths = ({ paths, write, trailingSlash }: ActionDefinition): readonly string[] =>
  write === null || trailingSlash ? [] : paths;

/** Extensions of files that shells, interpreters, loaders and build tools execute or read instructions from. */
const EXECUTABLE_ENDINGS: ReadonlySet<string> = new Set(
  [
    '.sh .bash .zsh .fish .ksh .csh .command .ps1 .psm1 .bat .cmd .vbs .wsf .exe .com .msi .scr .jar .so .dll .dylib',
    '.js .mjs .cjs .ts .mts .cts .jsx .tsx .py .pyc .pth .rb .pl .pm .php .lua .r .jl .go .rs .java .groovy .kts .swift',
    '.json .yaml .yml .toml .ini .cfg .conf .env .mk .make .cmake .gradle .bazel .nix .service .desktop .plist',
    '.html .htm .svg .xml .css .docm .xlsm .hta .lnk',
  ].flatMap((endings) => endings.split(' ')),
);
