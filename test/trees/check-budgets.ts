// Budgets, computed again from the entries. The rule: past events are charged, also beyond the limit (a rejected step,
// the bytes of a payload or a result, elapsed time). But no step passes AUTHORIZE, and no run is created for it, unless
// one step, its runs, a millisecond, a byte and a token were left when it began.

import { BUDGET_KINDS, type BudgetKind, type Limits } from '../../src/core/contract/run/budget.js';
import type { ProposalInput, StartAgentInput } from '../../src/core/contract/run/entry.js';
import { behalfOf, verdictsOf, type Faults, type Life, type Story, type TurnRecord, type Traced } from './story.js';

type Spent = Record<BudgetKind, number>;

interface Purse {
  readonly grant: Limits;
  readonly limit: Limits;
  readonly spent: Spent;
  /** The budget at the start of the current step. */
  began: Spent;
  chargedAt: string;
  /** Runs of the current step, and everything that was ever allowed. */
  runs: number;
  readonly allowed: { steps: number; runs: number };
}

const nothing = (): Spent => ({ steps: 0, tool_calls: 0, wall_ms: 0, bytes: 0, tokens: 0 });

export const budgets = (story: Story): Faults => new Books(story).audit();

class Books {
  readonly #story: Story;
  readonly #faults: Faults = [];
  readonly #purses = new Map<string, Purse>();
  readonly #tree: Limits;
  readonly #spent = nothing();
  readonly #reserved = nothing();

  constructor(story: Story) {
    this.#story = story;
    const { budgets: limits } = story.policy;
    this.#tree = everyKind((kind) => limits[kind] ?? null);
  }

  audit(): Faults {
    const { turns, lives, traces } = this.#story;
    const traceAt = new Map(traces.map((traced) => [traced.seq, traced]));
    for (const turn of turns) {
      if (turn.input.kind === 'proposal' && !turn.refused) this.#proposed(turn.input);
      for (const entry of turn.entries) {
        const life = entry.type === 'run_created' ? lives.get(entry.body.run_id) : undefined;
        if (life?.run.run_kind === 'agent') this.#opened(turn, life);
        else if (life !== undefined) this.#created(life);
        const traced = traceAt.get(entry.seq);
        if (traced !== undefined) this.#stepped(traced);
      }
      for (const { run_id } of turn.ended) this.#settled(run_id);
    }
    return this.#faults;
  }

  /** The rest of the tree's budget is granted once, and never more than that. */
  #opened({ input }: TurnRecord, life: Life): void {
    const asked = input as StartAgentInput;
    const left = everyKind((kind) => {
      const limit = this.#tree[kind];
      return limit === null ? null : Math.max(0, limit - this.#spent[kind] - this.#reserved[kind]);
    });
    const lacking = BUDGET_KINDS.find((kind) => (asked.budget?.[kind] ?? 0) > (left[kind] ?? Infinity));
    const rule = verdictsOf(life)[0]?.event.authz?.rule_id ?? '';
    if (lacking !== undefined) {
      if (rule !== `budget.${lacking}`) this.#fault(life.run.run_id, `asks for more ${lacking} than there is: ${rule}`);
      if (life.run.budget !== null) this.#fault(life.run.run_id, 'was refused a budget and has one');
      return;
    }
    if (rule.startsWith('budget.')) this.#fault(life.run.run_id, `was refused by ${rule}, and there was enough`);
    const grant = everyKind((kind) => smaller(left[kind], asked.budget?.[kind] ?? null));
    if (JSON.stringify(life.run.budget) !== JSON.stringify(grant))
      this.#fault(life.run.run_id, 'was granted something else');
    for (const kind of BUDGET_KINDS) this.#reserved[kind] += this.#tree[kind] === null ? 0 : (grant[kind] ?? 0);
    const limit = { ...grant, steps: smaller(grant.steps, this.#story.policy.limits.steps_per_run_max) };
    const purse = { grant, limit, spent: nothing(), began: nothing(), chargedAt: asked.time, runs: 0 };
    this.#purses.set(life.run.run_id, { ...purse, allowed: { steps: 0, runs: 0 } });
  }

  #proposed({ run_id, time, payload, tokens }: ProposalInput): void {
    const purse = this.#purses.get(run_id);
    if (purse === undefined) return;
    purse.spent.wall_ms += Date.parse(time) - Date.parse(purse.chargedAt);
    purse.spent.bytes += payload.byte_size ?? 0;
    purse.spent.tokens += tokens ?? 0;
    purse.chargedAt = time;
    purse.began = { ...purse.spent };
    purse.runs = 0;
  }

  #created(life: Life): void {
    const { run } = life;
    const purse = this.#purses.get(behalfOf(life) ?? '');
    if (purse === undefined) return;
    purse.runs += 1;
    if (run.retry !== null) {
      const limit = purse.limit.tool_calls ?? Infinity;
      if (purse.began.tool_calls + purse.runs > limit) this.#fault(run.run_id, 'tries again on no budget');
    }
    if (verdictsOf(life)[0]?.event.outcome !== 'allow') return;
    purse.allowed.runs += 1;
    if (purse.allowed.runs > (purse.grant.tool_calls ?? Infinity))
      this.#fault(run.run_id, 'is one run more than was granted');
  }

  #stepped({ trace }: Traced): void {
    const purse = this.#purses.get(trace.run_id);
    if (purse === undefined) return;
    const { phase_failed_at: failed, action, cause, rule_id } = trace;
    const step = `${trace.run_id} step ${trace.step_index}`;
    const judged = trace.replay_of === null && (failed === null || failed === 'AUTHORIZE' || failed === 'EXECUTE');
    const lacking = this.#lacking(purse, trace.mediated_run_id === null ? 0 : 1);
    if (cause === 'BUDGET' && rule_id !== `budget.${lacking ?? 'nothing'}`) {
      this.#fault(step, `is denied by ${rule_id ?? ''}, and ${lacking ?? 'nothing'} is used up`);
    }
    if (judged && lacking !== undefined && action !== 'FINISH') {
      if (failed !== 'AUTHORIZE') this.#fault(step, `went on with no ${lacking} left`);
      // Denials by lane and overlay come first, everything else after.
      if (!['BUDGET', 'LANE', 'OVERLAY'].includes(cause ?? '') && rule_id !== 'sandbox.no_case') {
        this.#fault(step, `is denied by ${rule_id ?? ''}, and not for its budget`);
      }
    }
    if (judged && failed !== 'AUTHORIZE' && action !== 'FINISH') {
      purse.allowed.steps += 1;
      if (purse.allowed.steps > (purse.limit.steps ?? Infinity)) this.#fault(step, 'is one step more than was granted');
    }
    purse.spent.steps += 1;
    purse.spent.tool_calls += purse.runs;
    purse.spent.bytes += trace.result?.byte_size ?? 0;
    purse.runs = 0;
  }

  #lacking({ began, limit }: Purse, runs: number): BudgetKind | undefined {
    const needs: Spent = { steps: 1, tool_calls: runs, wall_ms: 1, bytes: 1, tokens: 1 };
    return BUDGET_KINDS.find((kind) => needs[kind] > 0 && began[kind] + needs[kind] > (limit[kind] ?? Infinity));
  }

  #settled(run_id: string): void {
    const purse = this.#purses.get(run_id);
    if (purse === undefined) return;
    for (const kind of BUDGET_KINDS) {
      this.#reserved[kind] -= this.#tree[kind] === null ? 0 : (purse.grant[kind] ?? 0);
      this.#spent[kind] += purse.spent[kind];
    }
    this.#purses.delete(run_id);
  }

  #fault(who: string, what: string): void {
    this.#faults.push(`${who}: ${what}`);
  }
}

const everyKind = <T>(of: (kind: BudgetKind) => T): Record<BudgetKind, T> => ({
  steps: of('steps'),
  tool_calls: of('tool_calls'),
  wall_ms: of('wall_ms'),
  bytes: of('bytes'),
  tokens: of('tokens'),
});

const smaller = (one: number | null, other: number | null): number | null =>
  one === null ? other : other === null ? one : Math.min(one, other);
