// Goal: approvals, retries, budgets, labels, overlays and unknown outcomes behave equally under both interpreters, and
// after any restart. Method: random histories of a tree that has all of them.

import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { canonicalJson } from '../../src/core/contract/json.js';
import { TABLE_DRIVEN } from '../../src/kernel/interpreter/interpreter.js';
import { restoreTree, Tree, type TreeSnapshot } from '../../src/kernel/tree.js';
import { sized } from '../fixtures/campaign.js';
import { GovernedTree, governedPolicy, MOVES } from '../fixtures/governed.js';
import { AGENT, essence, TREE } from '../fixtures/tree.js';
import { xstateInterpretation } from '../../src/kernel/interpreter/xstate-actors.js';

const RULE = 'approver_roles: [ATTORNEY_ADMIN], quorum: 1, expires_minutes: 60';
const POLICY = governedPolicy(
  'retries: { max: 2, backoff_ms: 0 }\nbudgets: { tool_calls: 12 }\napprovals:\n' +
    `  - { for: WRITE_RECORD, ${RULE} }\n  - { for: promotion, ${RULE} }\n`,
  { actions: [['on_child_failure: fail', 'on_child_failure: continue']] },
);
const MORE: typeof MOVES = {
  ...MOVES,
  charge: (d) => d.call('billing.charge'),
  lose: (d) => {
    d.call('billing.charge');
    d.tree.pending.slice(0, 1).forEach(({ run_id }) => d.result(run_id, { status: 'unknown' }));
  },
  resolve: (d) => {
    d.tree.unsettled.forEach(({ context }) => d.resolve(context.run_id, 'done'));
  },
  release: (d) => {
    d.tree.pendingHighRiskRuns.forEach(({ run_id }) => d.digests.forEach((digest) => d.vote(digest, { run_id })));
  },
  reportUnknown: (d) => d.reporting.slice(0, 1).forEach((run_id) => d.report(run_id, { status: 'unknown' })),
  late: (d) => {
    d.wait(60_000);
    d.reporting.forEach((run_id) => d.send({ kind: 'wake', run_id, overlay: d.overlay }));
  },
  finish: (d) => d.act('FINISH', { response: 'Done.' }),
  stop: (d) => d.send({ kind: 'interrupt', run_id: AGENT }),
  cancel: (d) => d.cancel(AGENT),
  forbid: (d) => {
    d.overlay = { epoch: 1, rules: [{ rule_id: 'deny-1', reason: 'Stop.', tool: 'slow.tool' }] };
  },
  permit: (d) => {
    d.overlay = null;
  },
};

const stored = (tree: Tree): TreeSnapshot => JSON.parse(JSON.stringify(tree.snapshot())) as TreeSnapshot;

const HISTORY = fc.array(fc.constantFrom(...Object.keys(MORE)), { minLength: 6, maxLength: 24 });

test("U-01 U-06 D16: our interpreter and XState decide the same, and each can continue from the other's snapshot", () => {
  const seen = new Set<string>();
  fc.assert(
    fc.property(HISTORY, (moves) => {
      const d = new GovernedTree(POLICY).working();
      for (const move of moves) MORE[move]!(d);
      const xstate = xstateInterpretation();
      let [ours, theirs] = [new Tree(TREE, TABLE_DRIVEN), new Tree(TREE, xstate)];
      for (const [i, input] of d.inputs.entries()) {
        const expected = essence(d.decisions[i]!);
        expect(essence(ours.decide(input)) === expected).toBe(true);
        expect(essence(theirs.decide(input)) === expected).toBe(true);
        expect(canonicalJson(stored(ours))).toBe(canonicalJson(stored(theirs)));
        const { materials } = d.inputs[0]!;
        [ours, theirs] = [
          restoreTree(stored(theirs), materials, TABLE_DRIVEN),
          restoreTree(stored(ours), materials, xstate),
        ];
      }
      for (const { rule_id } of d.traces) seen.add(rule_id ?? 'done');
      const reporting = d.bodies('run_created').filter(({ executor }) => executor === 'caller');
      for (const [run_id, ending] of Object.entries(d.endings)) {
        const isReporting = reporting.some((run) => run.run_id === run_id);
        seen.add(run_id === AGENT ? ending : isReporting ? `reporting ${ending}` : 'other');
      }
      // M6 of mediated.ts: none outlives its agent run.
      if (d.endings[AGENT] !== undefined) expect(d.reporting).toEqual([]);
    }),
    { seed: 3, numRuns: sized(70, 120) },
  );
  // Of all possible situations, these must have occurred.
  const expected = [
    ...['done', 'approval.required', 'outcome.unsettled', 'overlay.deny-1', 'cancelled:by_caller'],
    ...['reporting completed:completed', 'reporting failed:FAILED', 'reporting failed:OUTCOME_UNKNOWN'],
  ];
  expect(expected.filter((situation) => !seen.has(situation))).toEqual([]);
}, 180_000);
