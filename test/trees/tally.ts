// Counts how often each checked situation occurred: a check without any occurrence has proved nothing.

import type { Played } from './play.js';
import { actOf, endOf, isVote, stateIn, storyOf, verdictsOf, type Life, type Story } from './story.js';

const NAMES = [
  'inputs',
  'entries',
  'runs',
  'runs side by side',
  'completed',
  'failed',
  'denied',
  'cancelled',
  'refused inputs',
  'steps',
  'replayed responses',
  'denied by budget',
  'agents refused a budget',
  'denied by overlay',
  'retries denied by overlay',
  'denied by label',
  'denied by a lane for its label',
  'denied for a read of another case',
  'denied for a write of shared knowledge',
  'cross-case reads allowed',
  'runs with a label',
  'runs without their parent’s case',
  'first retries',
  'third retries',
  'retries of a write below a gateway',
  'retries given up',
  'unknown outcomes',
  'denied as unsettled',
  'resolved',
  'approvals asked for',
  'votes counted',
  'votes refused',
  'rejections',
  'requests expired',
  'executions approved',
  'executions approved by two',
  'denied as consumed',
  'promotions completed',
  'exports completed',
  'writes denied below an allowed gateway',
] as const;
type Name = (typeof NAMES)[number];

export class Tally {
  readonly counts = new Map<Name, number>(NAMES.map((name) => [name, 0]));
  trees = 0;

  count(played: Played): void {
    this.trees += 1;
    const story = storyOf(played);
    this.#add('inputs', story.turns.length);
    for (const { entries, refused } of story.turns) {
      this.#add('entries', entries.length);
      if (refused) this.#add('refused inputs');
    }
    for (const { trace } of story.traces) {
      this.#add('steps');
      if (trace.replay_of !== null) this.#add('replayed responses');
    }
    if (haveConcurrentRuns(story)) this.#add('runs side by side');
    for (const life of story.lives.values()) this.#life(story, life);
  }

  /** The situations that never occurred. */
  get missing(): readonly string[] {
    return [...this.counts].filter(([, count]) => count === 0).map(([name]) => name);
  }

  #life(story: Story, life: Life): void {
    const { run, said } = life;
    const end = endOf(life)?.event;
    this.#add('runs');
    if (end !== undefined) this.#add(stateIn(end) as Name);
    const act = actOf(story, life);
    const last = verdictsOf(life).at(-1)?.event;
    const rule = last?.authz?.rule_id ?? '';
    const denied = last?.outcome === 'deny';
    const parent = story.lives.get(run.parent_run_id ?? '');
    if (denied && rule.startsWith('budget.'))
      this.#add(run.run_kind === 'agent' ? 'agents refused a budget' : 'denied by budget');
    if (denied && rule.startsWith('overlay.'))
      this.#add(run.retry === null ? 'denied by overlay' : 'retries denied by overlay');
    if (denied && rule.startsWith('label.')) this.#add('denied by a lane for its label');
    if (denied && (rule.startsWith('label.') || rule === 'platform.label_other_case')) this.#add('denied by label');
    if (denied && rule === 'platform.cross_case') this.#add('denied for a read of another case');
    if (denied && rule === 'platform.shared_write') this.#add('denied for a write of shared knowledge');
    if (denied && rule === 'outcome.unsettled') this.#add('denied as unsettled');
    if (denied && rule === 'approval.consumed') this.#add('denied as consumed');
    if (denied && rule === 'approval.expired') this.#add('requests expired');
    if (denied && run.run_kind === 'db_write' && parent?.run.run_kind === 'tool_gateway') {
      if (run.retry === null) this.#add('writes denied below an allowed gateway');
    }
    const asked = act?.args['case_id'];
    if (!denied && act?.action === 'READ_RECORDS' && typeof asked === 'string' && asked !== run.case_id)
      this.#add('cross-case reads allowed');
    if ((run.label?.cases.length ?? 0) + (run.label?.flags.length ?? 0) > 0) this.#add('runs with a label');
    if (run.case_id === null && parent !== undefined && parent.run.case_id !== null)
      this.#add('runs without their parent’s case');
    if (run.retry?.count === 1) this.#add('first retries');
    if (run.retry?.count === 3) this.#add('third retries');
    if (run.retry !== null && act?.action === 'WRITE_FILE') this.#add('retries of a write below a gateway');
    if (run.retry !== null && end !== undefined && stateIn(end) === 'failed') this.#add('retries given up');
    if (end?.error?.error_code === 'OUTCOME_UNKNOWN') this.#add('unknown outcomes');
    if (end !== undefined && stateIn(end) === 'completed' && run.run_kind === 'promotion')
      this.#add('promotions completed');
    if (end !== undefined && stateIn(end) === 'completed' && run.run_kind === 'export') this.#add('exports completed');
    this.#approval(story, life, said);
  }

  #approval({ policy }: Story, life: Life, said: Life['said']): void {
    for (const { event } of said) {
      const rule = event.authz?.rule_id ?? '';
      if (event.outcome_reason?.startsWith('OUTCOME_RESOLVED') === true) this.#add('resolved');
      if (!isVote(event) && rule === 'approval.required') this.#add('approvals asked for');
      if (!isVote(event)) continue;
      if (rule === 'approval.rejected') this.#add('rejections');
      else this.#add(['approval.accepted', 'approval.granted'].includes(rule) ? 'votes counted' : 'votes refused');
    }
    const last = verdictsOf(life).at(-1)?.event;
    if (last?.outcome !== 'allow' || last.request_hash_sha256 === undefined) return;
    if (last.authz?.rule_id === 'approval.required') return;
    this.#add('executions approved');
    const { run_kind } = life.run;
    const subject = run_kind === 'promotion' || run_kind === 'export' ? run_kind : last.target?.operation;
    if (policy.approvals.some(({ for: name, quorum }) => name === subject && quorum === 2))
      this.#add('executions approved by two');
  }

  #add(name: Name, count = 1): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + count);
  }
}

/** Whether two agents of the tree were live at the same time, each with a running child. */
function haveConcurrentRuns({ lives }: Story): boolean {
  const mediated = [...lives.values()].filter(({ run }) => run.run_kind !== 'agent' && run.run_kind !== 'orchestrator');
  return mediated.some((one) =>
    mediated.some(
      (other) =>
        one.seq < other.seq &&
        one.run.parent_run_id !== other.run.parent_run_id &&
        !other.run.run_id.startsWith(`${one.run.run_id}.`) &&
        other.seq < (endOf(one)?.seq ?? Infinity),
    ),
  );
}
