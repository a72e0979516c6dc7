// Goal: no tree uses more than policy gives it, however its agents share it. Method: real trees with small budgets.

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { BUDGET_KINDS, type BudgetKind } from '../../src/core/contract/run/budget.js';
import { sized } from '../fixtures/campaign.js';
import { CASE_WORK, GovernedTree, governedPolicy } from '../fixtures/governed.js';
import { AGENT, TREE } from '../fixtures/tree.js';

const SECOND = `${TREE}.2`;
const GO_ON = [['on_child_failure: fail', 'on_child_failure: continue']] as const;
const MANY_DENIALS = [['denials_per_run_max: 10', 'denials_per_run_max: 1000']] as const;
const within = (budgets: string) =>
  governedPolicy(`budgets: { ${budgets} }\n`, { actions: [...GO_ON, ...MANY_DENIALS] });

const performed = (d: GovernedTree): number => d.commands.filter(({ kind }) => kind === 'perform').length;

/** Calls a tool that answers at once. */
function call(d: GovernedTree, run_id = AGENT, result: Record<string, string> = {}): void {
  const [command] = d.call('slow.tool', {}, run_id).commands;
  if (command !== undefined) d.done(command.run_id, result);
}
const outcomes = (d: GovernedTree) => d.traces.map(({ outcome, rule_id }) => rule_id ?? outcome);

describe('S4-36: an agent that has used up a budget is denied, with the cause BUDGET, and may finish', () => {
  const CASES: Record<BudgetKind, { readonly limit: number; readonly go: (d: GovernedTree) => void }> = {
    tool_calls: { limit: 2, go: call },
    steps: { limit: 2, go: call },
    // One second for the input, one for the answer: the time of a proposal is charged with the next one.
    wall_ms: { limit: 5_000, go: call },
    // Bytes of proposals and of results; a result counts in full, and afterwards nothing is left.
    bytes: {
      limit: 4_200,
      go: (d) => {
        call(d, AGENT, { text: 'x'.repeat(2_000) });
      },
    },
    tokens: {
      limit: 100,
      go: (d) => {
        d.tokens = 49;
        call(d);
      },
    },
  };
  test.each(BUDGET_KINDS)('of %s', (kind) => {
    const { limit, go } = CASES[kind];
    const d = new GovernedTree(within(`${kind}: ${limit}`)).working();
    for (let turn = 0; turn < 4; turn += 1) go(d);
    expect(outcomes(d)).toEqual(['SUCCESS', 'SUCCESS', `budget.${kind}`, `budget.${kind}`]);
    expect(d.traces.slice(2)).toMatchObject([
      { outcome: 'DENIED', cause: 'BUDGET', phase_failed_at: 'AUTHORIZE', mediated_run_id: `${AGENT}.3` },
      { outcome: 'DENIED', cause: 'BUDGET', phase_failed_at: 'AUTHORIZE', mediated_run_id: `${AGENT}.4` },
    ]);
    expect(d.audit(`${AGENT}.3`)[0]).toMatchObject({ outcome: 'deny', authz: { rule_id: `budget.${kind}` } });
    expect(performed(d)).toBe(2);
    d.act('FINISH', { response: 'no more' });
    expect(d.endings[AGENT]).toBe('completed:finished');
  });

  test('an agent without calls left may still think', () => {
    const d = new GovernedTree(within('tool_calls: 0')).working();
    call(d);
    d.act('THINK', {});
    expect(outcomes(d)).toEqual(['budget.tool_calls', 'SUCCESS']);
  });

  test('S2-11: if a rule of the lane denies as well, that rule is named', () => {
    const d = new GovernedTree(within('tool_calls: 0')).working();
    d.call('shell.run');
    expect(outcomes(d)).toEqual(['tool.not_registered']);
  });
});

describe("S4-56: agents of one tree share the tree's budget", () => {
  test('an agent without a requested budget gets everything that is left, and a later one nothing', () => {
    const d = new GovernedTree(within('tool_calls: 3')).working(2);
    expect(d.created(AGENT).budget).toMatchObject({ tool_calls: 3, steps: null });
    expect(d.created(SECOND).budget).toMatchObject({ tool_calls: 0 });
    call(d, SECOND);
    for (let turn = 0; turn < 4; turn += 1) call(d);
    expect(outcomes(d)).toEqual(['budget.tool_calls', 'SUCCESS', 'SUCCESS', 'SUCCESS', 'budget.tool_calls']);
  });

  test('a caller may request less, and the agent is limited to that', () => {
    const d = new GovernedTree(within('tool_calls: 3')).working(0);
    d.startAgent({ ...CASE_WORK, budget: { tool_calls: 1, steps: 5 } });
    expect(d.created(AGENT).budget).toMatchObject({ tool_calls: 1, steps: 5, wall_ms: null });
    for (let turn = 0; turn < 2; turn += 1) call(d);
    expect(outcomes(d)).toEqual(['SUCCESS', 'budget.tool_calls']);
  });

  test('a caller that requests more than is left has its agent denied', () => {
    const d = new GovernedTree(within('tool_calls: 3')).working(0);
    d.startAgent({ ...CASE_WORK, budget: { tool_calls: 2 } });
    d.startAgent({ ...CASE_WORK, budget: { tool_calls: 2 } });
    expect(d.endings).toEqual({ [SECOND]: 'denied:budget.tool_calls' });
    expect(d.created(SECOND).budget).toBeNull();
    expect(d.audit(SECOND)[0]).toMatchObject({ outcome: 'deny', authz: { rule_id: 'budget.tool_calls' } });
    expect(d.startAgent({ ...CASE_WORK, budget: { tool_calls: 1 } }).ended).toEqual([]);
  });

  test('the unused budget of an agent returns to the tree when the agent ends, and not before', () => {
    const d = new GovernedTree(within('tool_calls: 5')).working(0);
    d.startAgent({ ...CASE_WORK, budget: { tool_calls: 4 } });
    d.startAgent({ ...CASE_WORK, budget: { tool_calls: 0 } });
    call(d);
    d.startAgent(CASE_WORK);
    expect(d.created(`${TREE}.3`).budget).toMatchObject({ tool_calls: 1 });
    d.send({ kind: 'end', run_id: AGENT });
    d.startAgent(CASE_WORK);
    expect(d.created(`${TREE}.4`).budget).toMatchObject({ tool_calls: 3 });
  });

  test('in any order, they make no more calls than the tree may', () => {
    const part = fc.option(fc.integer({ min: 0, max: 4 }), { nil: null });
    const move = fc.record({ agent: fc.integer({ min: 1, max: 4 }), ends: fc.boolean() });
    const history = fc.record({
      limit: fc.integer({ min: 0, max: 5 }),
      parts: fc.tuple(part, part),
      moves: fc.array(move, { maxLength: 14 }),
    });
    let spentAll = 0;
    fc.assert(
      fc.property(history, ({ limit, parts, moves }) => {
        const d = new GovernedTree(within(`tool_calls: ${limit}`)).working(0);
        d.startAgent({ ...CASE_WORK, budget: { tool_calls: 0 } });
        for (const tool_calls of parts)
          d.startAgent({ ...CASE_WORK, budget: tool_calls === null ? null : { tool_calls } });
        for (const { agent, ends } of moves) {
          const run_id = `${TREE}.${agent}`;
          if (!d.tree.isLive(run_id)) d.startAgent(CASE_WORK);
          else if (ends && agent > 1) d.send({ kind: 'end', run_id });
          else call(d, run_id);
        }
        expect(performed(d)).toBeLessThanOrEqual(limit);
        if (limit > 0 && performed(d) === limit) spentAll += 1;
      }),
      { seed: 1, numRuns: sized(70, 100) },
    );
    expect(spentAll).toBeGreaterThan(5);
  }, 120_000);
});
