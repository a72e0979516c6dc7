// A policy under which the writes of a case are limited by counters.

import type { Artifact } from '../../../../src/core/contract/artifact-ref.js';
import { editedPolicy } from '../../../fixtures/tree.js';

/** How many writes of a case can begin within a minute, and how many of one actor and one tree in all. */
export const WRITES_PER_MINUTE = 7;
export const WRITES_PER_ACTOR = 500;
export const WRITES_PER_TREE = 12;

const CONDITIONS = `@id("per_minute")
forbid (principal, action == Action::"WRITE_FILE", resource)
when { context.counters.per_minute >= ${WRITES_PER_MINUTE} };
@id("per_actor")
forbid (principal, action == Action::"WRITE_FILE", resource)
when { context.counters.per_actor >= ${WRITES_PER_ACTOR} };
@id("per_tree")
forbid (principal, action == Action::"WRITE_FILE", resource)
when { context.counters.per_tree >= ${WRITES_PER_TREE} };
`;
const COUNTERS = `version: v1
contract_version: v1
last_updated: 2026-01-05
counters:
  - { name: per_minute, over: case, window: { sliding: 1m }, counts: [{ action: WRITE_FILE }] }
  - { name: per_actor, over: actor, counts: [{ action: WRITE_FILE }] }
  - { name: per_tree, over: tree, counts: [{ action: WRITE_FILE }] }
`;

const artifact = (text: string): Artifact => ({ kind: 'policy', case_id: null, bytes: Buffer.from(text) });

export const COUNTED_WRITES: readonly Artifact[] = [
  ...editedPolicy({ actions: [['denials_per_run_max: 10 ', 'denials_per_run_max: 1000 ']] }),
  artifact(CONDITIONS),
  artifact(COUNTERS),
];
