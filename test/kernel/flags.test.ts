/** @modules own */
// A change of behaviour, as a later version would make it: here, under flag 0, a cancelled run records its requester.
// `machines` is the real code, with one additional action that checks the flag.

import { expect, jest, test } from '@jest/globals';
import { assign } from 'xstate';
import { artifactRef, type Artifact } from '../../src/core/contract/artifact-ref.js';
import type { OpenInput } from '../../src/core/contract/run/entry.js';
import type { TreeInput } from '../../src/kernel/decision.js';
import type { Policy } from '../../src/core/policy/policy.js';
import * as flags from '../../machines/flags.js';
import * as machines from '../../machines/index.js';
import type { OrchestratorEvent, OrchestratorMemory } from '../../machines/orchestrator.js';

const FLAG = { number: 0, what: 'The reason of a cancelled run begins with `asked_for`.' };
const { createMachines } = machines;

jest.unstable_mockModule('../../machines/flags.js', () => ({ ...flags, FLAGS: [FLAG] }));
jest.unstable_mockModule('../../machines/index.js', () => ({
  ...machines,
  createMachines: (policy: Policy) => {
    const made = createMachines(policy);
    const applyCancel = assign<OrchestratorMemory, OrchestratorEvent, undefined, OrchestratorEvent, never>(
      ({ event }) => {
        if (event.type !== 'CANCEL') return {};
        const reason = policy.flags.has(0) ? `asked_for:${event.reason}` : event.reason;
        return { ending: 'cancelled' as const, end: { reason, error: null } };
      },
    );
    return { ...made, orchestrator: made.orchestrator.provide({ actions: { applyCancel: applyCancel as never } }) };
  },
}));
const { Tree } = await import('../../src/kernel/tree.js');
const { Fold } = await import('../../src/kernel/fold.js');
const { TreeDriver, SHIPPED, TREE } = await import('../fixtures/tree.js');

/** A tree that is opened and cancelled by machines whose pinned text has these flags. */
function recordTree(recorded: unknown) {
  const driver = new TreeDriver();
  driver.open();
  driver.send({ kind: 'cancel', run_id: TREE, reason: 'operator' });
  const [open, cancel] = driver.inputs;
  const old = open?.materials[3];
  if (open === undefined || cancel === undefined || old === undefined) throw new Error('the driver has taken nothing');
  const definitions = JSON.parse(Buffer.from(old.bytes).toString()) as object;
  const text = JSON.stringify(recorded === undefined ? definitions : { ...definitions, flags: recorded });
  const pinned: Artifact = { ...old, bytes: Buffer.from(text) };
  const opened: TreeInput = {
    recorded: { ...(open.recorded as OpenInput), machines: artifactRef(pinned) },
    materials: [...SHIPPED, pinned],
  };
  return [opened, cancel] as const;
}

function recordedBy(inputs: readonly TreeInput[]) {
  const tree = new Tree(TREE);
  return inputs.flatMap((input) => {
    const { entries, artifacts } = tree.decide(input);
    return entries.map(({ text, entry }) => ({ text, entry, artifacts: entry.type === 'input' ? artifacts : [] }));
  });
}

const lastReason = (entries: ReturnType<typeof recordedBy>): string | undefined => {
  const last = entries.at(-1)?.entry;
  return last?.type === 'audit_event' ? last.body.outcome_reason : undefined;
};

test.each([
  ['has none', undefined, 'cancelled:operator'],
  ['has an empty set', [], 'cancelled:operator'],
  ['has flag 0', [0], 'cancelled:asked_for:operator'],
] as const)('U-06: a tree that %s replays as it ran', (_what, recorded, reason) => {
  const entries = recordedBy(recordTree(recorded));
  expect(lastReason(entries)).toBe(reason);
  const fold = new Fold(TREE);
  for (const [seq, { text, artifacts }] of entries.entries()) {
    expect(fold.apply({ seq, text }, artifacts)).not.toHaveProperty('difference');
  }
  expect(fold.finish()).toBeNull();
  // No other set of flags replays it: the flags decide, and not the time of the replay.
  const other = recorded?.length === 1 ? undefined : [0];
  expect(lastReason(recordedBy(recordTree(other)))).not.toBe(reason);
});

test.each([[[1]], [[0, 7]], [['0']], [0]])('U-06: unknown flags, %j, are rejected and not ignored', (f) => {
  expect(() => recordedBy(recordTree(f))).toThrow(/behaviour flags that this version does not know/);
});
