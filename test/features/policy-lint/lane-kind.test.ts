// What a lane is for, by what it lists.

import { describe, expect, test } from '@jest/globals';
import type { Lane } from '../../../src/core/contract/policy/lanes.js';
import { NATIVE_TOOLS } from '../../../src/features/hooks/native-calls.js';
import { laneKindOf, PROMOTION_PROHIBITS, type LaneKind } from '../../../src/features/policy-lint/lane-kind.js';
import { bareLane, CATALOGUE } from '../../core/policy/bare-policy.js';

const NOTHING: LaneKind = {
  exports: false,
  promotes: false,
  checks: false,
  files: false,
  sends: false,
  calls: false,
  writes: false,
};
const kindOf = (changes: Partial<Lane>): LaneKind => laneKindOf(bareLane(changes), CATALOGUE);
const writing = (...tables: string[]) => tables.map((table) => ({ table, mode: 'append' as const }));
const promotes = (tools: string[], ...tables: string[]): boolean =>
  kindOf({ allowed_actions: { tools, writes: writing(...tables) } }).promotes;

test('a lane that lists nothing is for nothing', () => {
  expect(kindOf({})).toEqual(NOTHING);
});

test.each([
  ['export_bundle.create', { exports: true }],
  ['session.verify', { checks: true }],
  ['sandbox.read_file', { files: true }],
  ['outside.send', { sends: true }],
  ['inside.run', {}],
  ['unknown.run', {}],
  ['my.session.verify', {}],
])('a lane with the tool %s', (tool, kind) => {
  expect(kindOf({ allowed_actions: { tools: [tool] } })).toEqual({ ...NOTHING, calls: true, ...kind });
  expect(kindOf({ allowed_actions: { tools: ['inside.run', tool] } })).toEqual({ ...NOTHING, calls: true, ...kind });
});

describe('a lane is for promotions', () => {
  test('if it requires a ticket, or has a prohibition that only promotions need, whatever else it lists', () => {
    const allowed_actions = { tools: ['inside.run'], writes: writing('case_notes') };
    const scopes = [
      { requires: ['case_id', 'promotion_ticket_id'], prohibits: [] },
      ...PROMOTION_PROHIBITS.map((name) => ({ requires: [], prohibits: ['external_export', name] })),
    ];
    for (const scope of scopes) {
      expect(kindOf({ scope, allowed_actions })).toEqual({ ...NOTHING, calls: true, writes: true, promotes: true });
    }
    expect(kindOf({ scope: { requires: ['case_id'], prohibits: ['external_export'] } }).promotes).toBe(false);
  });

  test('if it writes a shared table, and no tool and no table of a case', () => {
    expect(promotes([], 'lessons')).toBe(true);
    expect(promotes([], 'shared_playbooks')).toBe(true);
    expect(promotes([], 'unknown', 'lessons')).toBe(true);
    expect(promotes([], 'lessons', 'case_notes')).toBe(false);
    expect(promotes([], 'case_notes')).toBe(false);
    expect(promotes([], 'case_shared_')).toBe(false);
    expect(promotes([], 'unknown')).toBe(false);
    expect(promotes(['inside.run'], 'lessons')).toBe(false);
    expect(promotes(['inside.run'], 'shared_playbooks', 'case_notes')).toBe(false);
  });
});

test('0061: a lane sends with the tools of coding agents that reach beyond the machine', () => {
  for (const { name, outside } of NATIVE_TOOLS) {
    expect([name, kindOf({ allowed_actions: { tools: [name] } }).sends]).toEqual([name, outside]);
  }
});
