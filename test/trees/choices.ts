// The meaning of the numbers of a turn. The first choice is the plainest one: shrinking leads there.

import type { BudgetLimits } from '../../src/core/contract/run/budget.js';
import type { EffectResult, PathFact } from '../../src/core/contract/run/effect.js';
import type { StartAgentInput, StartRunInput, VoteInput } from '../../src/core/contract/run/entry.js';
import { EXECUTION_CAUSES, type ExecutionCause } from '../../src/core/contract/fault.js';
import type { JsonObject } from '../../src/core/contract/json.js';
import type { OverlayFact, OverlayRule } from '../../src/core/contract/policy/overlay.js';
import type { Turn } from './turns.js';

const pick = <T>(values: readonly [T, ...T[]], n: number): T => values[n % values.length] ?? values[0];

const WORKS = [
  'CASE_WORK',
  'CASE_WORK',
  'CASE_WORK',
  'CROSS_READ',
  'CROSS_READ',
  'STRICT',
  'STRICT',
  'NO_CASE',
] as const;
const ROLES_SELDOM = ['SANDBOX_AGENT', 'NOBODY', 'ATTORNEY_ADMIN'] as const;

/** Most agents match their lane. */
export function agentFor({ role, lane }: Extract<Turn, { t: 'agent' }>) {
  const role_id = role < 11 ? 'CASE_AGENT' : pick(ROLES_SELDOM, role);
  const lane_id =
    role_id === 'SANDBOX_AGENT'
      ? 'SANDBOX_FILES'
      : lane > 14
        ? 'NOWHERE'
        : lane > 13
          ? 'EXPORT_CASE_DATA'
          : pick(WORKS, lane);
  const actor = { actor_type: 'agent', actor_id: pick(['agent-a', 'agent-b', 'anna'], role) } as const;
  return { actor, role_id, lane_id, exposure: 'detailed' } satisfies Partial<StartAgentInput>;
}

export const budgetFor = (limit: number): BudgetLimits | null =>
  pick<BudgetLimits | null>(
    [
      null,
      null,
      null,
      { steps: 4, tool_calls: 2 },
      { steps: 3 },
      { tool_calls: 3, bytes: 1_200 },
      { wall_ms: 9_000 },
      { tokens: 20, steps: 6 },
      { steps: 50, bytes: 100_000, wall_ms: 1_000_000, tool_calls: 100, tokens: 1_000 },
    ],
    limit,
  );

interface Act {
  readonly act: number;
  readonly n: number;
  readonly path: number;
}

const PATHS = ['/sandbox/a.txt', '/sandbox/d/b.md', '/sandbox/c.sh', '/etc/passwd'] as const;
const call = (tool: string, input: object) => ['CALL_TOOL', { tool, input }] as const;
const write = (target: string, mode: string, record: object) => ['WRITE_RECORD', { target, mode, record }] as const;
const read = (target: string, over: object = {}) => ['READ_RECORDS', { target, ...over }] as const;

/** The text of a proposal. */
export function actFor({ act, n, path }: Act, id: string): string {
  const at = pick(PATHS, path);
  const acts: readonly (readonly [string, object])[] = [
    ['THINK', {}],
    call('mail.send', { n }),
    call('billing.charge', { n }),
    call('news.fetch', { n }),
    write('facts', 'append', { id: `f${n}` }),
    write('entities', 'upsert', { id: `e${n}` }),
    write('entities', 'append', { id: `e${n}` }),
    write('shared_playbooks', 'append', { id: `p${n}` }),
    read('facts'),
    read('entities', { case_id: pick(['case-2', 'case-3', 'case-1'], n) }),
    read('entities'),
    read('facts', { case_id: pick(['case-2', 'case-1', 'case-4'], n), limit: 3 }),
    read('shared_playbooks'),
    ['LOOK_UP', { n }],
    ['STAMP', { n }],
    ['TELL', { n }],
    ['READ_FILE', { path: at }],
    ['WRITE_FILE', { path: at, content: `text ${n}` }],
    ['WRITE_FILE', { path: PATHS[0], content: 'text' }],
    ['DELETE_FILE', { path: at }],
    ['LIST_FILES', { path: '/sandbox/' }],
    call('news.fetch', { n: 1 }),
    call('nobody.knows', { n }),
    write('facts', 'append', { id: n }),
    ['RUN_SHELL', {}],
    ['CALL_TOOL', { tool: 'mail.send' }],
    ['FINISH', { response: 'done' }],
  ];
  const [action, args] = acts[act] ?? (['THINK', {}] as const);
  const proposal = { schema_version: '1.0.0', id, reasoning: 'Because.', action, args };
  return act >= acts.length
    ? pick(['{', '', '[]', JSON.stringify({ ...proposal, extra: 1 })], path)
    : JSON.stringify(proposal);
}

export const statusFor = (stands: number): PathFact =>
  pick<PathFact>(
    [
      { status: 'file', bytes: 5, inode: '7', mtime_ns: '1' },
      { status: 'file', bytes: 5, inode: '7', mtime_ns: '1' },
      { status: 'absent' },
      { status: 'directory', inode: '9', mtime_ns: '3' },
      { status: 'no_parent' },
      { status: 'refused', kind: 'symlink' },
      { status: 'error', cause: 'IO_ERROR' },
    ],
    stands,
  );

const CAUSES = Object.keys(EXECUTION_CAUSES) as [ExecutionCause, ...ExecutionCause[]];

/** The outcome of an effect: done, failed permanently, failed for now, or unknown. */
export function causeFor(how: number): EffectResult {
  if (how < 6) return { status: 'done', result: { text: 'x'.repeat(how * 40) } };
  if (how < 10) return { status: 'failed', cause: pick(['TIMEOUT', 'NOT_EXECUTED', 'IO_ERROR', 'NO_SPACE'], how) };
  return how < 12 ? { status: 'failed', cause: pick(CAUSES, how * 7) } : { status: 'unknown' };
}

/** Rules that appear, change and disappear. */
export function overlayFor(rule: number, epoch: number): OverlayFact | null {
  if (rule === 0) return null;
  if (rule > 15) return { epoch: null, problem: rule === 16 ? 'rolled_back' : 'invalid' };
  const [first, second] = [matcher(rule), matcher(rule + 5)];
  const ruled = (matchers: Partial<OverlayRule>, n: number) => ({
    rule_id: `deny-${epoch + n}`,
    reason: 'Because.',
    ...matchers,
  });
  // Every third overlay lifts the denials.
  return { epoch, rules: rule % 3 === 0 ? [] : [ruled(first, 0), ...(rule % 2 === 0 ? [ruled(second, 1)] : [])] };
}

const matcher = (n: number): Partial<OverlayRule> =>
  pick<Partial<OverlayRule>>(
    [
      { tool: 'mail.send' },
      { role_id: 'CASE_AGENT', table: 'facts' },
      { lane_id: 'CROSS_READ' },
      { run_id: 'run_randomtree.2' },
      { action: 'WRITE_FILE' },
      { table: 'sandbox_files', actor_id: 'agent-a' },
      { run_id: 'run_randomtree.1.1.1' },
      { role_id: 'ATTORNEY_ADMIN' },
      { case_id: 'case-1', action: 'READ_RECORDS' },
      { table: 'shared_playbooks' },
    ],
    n,
  );

type Start = Omit<StartRunInput, 'input_id' | 'time' | 'run_id' | 'request' | 'overlay'> & {
  readonly request: JsonObject;
};
const EVERYTHING = { cases: [], flags: ['contains_pii'], many: true } as const;

export function startFor(
  { promotion, who, target, flags }: Extract<Turn, { t: 'start' }>,
  case_id: string | null,
): Start {
  const table = pick(['shared_playbooks', 'shared_heuristics', 'facts', 'unknown.table', 'shared_playbooks'], target);
  const request: JsonObject = promotion
    ? { action: 'WRITE_RECORD', args: { target: table, mode: 'append', record: { id: 'p1' } } }
    : { action: 'EXPORT_BUNDLE', args: { bundle_id: 'bundle_1', destination: '/out' } };
  const own = { cases: case_id === null ? [] : [case_id], flags: [], many: false };
  const label =
    flags === 9
      ? { ...EVERYTHING, cases: [], flags: [...EVERYTHING.flags] }
      : flags === 8
        ? { cases: ['case-2'], flags: [], many: false }
        : own;
  const carried = promotion ? 'sanitized_insight' : 'export_bundle';
  return {
    kind: 'start_run',
    run_kind: promotion ? 'promotion' : 'export',
    actor: { actor_type: 'human', actor_id: pick(['requester', 'anna', 'bernd'], who) },
    role_id: pick(['ATTORNEY_ADMIN', 'ATTORNEY_ADMIN', 'GOVERNANCE_AGENT', 'REVIEWER'], who),
    lane_id: who === 4 ? 'CASE_WORK' : promotion ? 'PROMOTE_SHARED_KNOWLEDGE' : 'EXPORT_CASE_DATA',
    request,
    inputs: [],
    facts: { artifact_flags: flags === 7 ? [carried, 'raw_case_text'] : [carried], label },
  };
}

/** Most votes come from eligible people; the requester, agents, the system and strangers try as well. */
export function voterFor(who: number, requester = 'nobody'): VoteInput['approver'] {
  const voters: readonly [VoteInput['approver'], ...VoteInput['approver'][]] = [
    { actor: { actor_type: 'human', actor_id: 'anna' }, role_id: 'ATTORNEY_ADMIN' },
    { actor: { actor_type: 'human', actor_id: 'bernd' }, role_id: 'REVIEWER' },
    { actor: { actor_type: 'human', actor_id: 'carla' }, role_id: 'REVIEWER' },
    { actor: { actor_type: 'human', actor_id: 'ANNA ' }, role_id: 'REVIEWER' },
    { actor: { actor_type: 'human', actor_id: requester }, role_id: 'ATTORNEY_ADMIN' },
    { actor: { actor_type: 'agent', actor_id: 'agent-a' }, role_id: 'REVIEWER' },
    { actor: { actor_type: 'system', actor_id: 'turnpike' }, role_id: 'ATTORNEY_ADMIN' },
    { actor: { actor_type: 'human', actor_id: 'dora' }, role_id: 'SYSTEM' },
  ];
  return pick(voters, who);
}
