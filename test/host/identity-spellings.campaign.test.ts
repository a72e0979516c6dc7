// One person under many spellings, against everything that names a person: conditions, counters, decision points, the
// emergency overlay and votes. Closing the bench replays each ledger without any Unicode table.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ApprovalBallot, ApprovalEntry } from '../../src/core/contract/run/approval.js';
import { checkAgainstRequester } from '../../src/features/approvals/voter-identity.js';
import { overlayVerdict } from '../../src/core/policy/authorize-run.js';
import { asPerson } from '../../src/runtime/agents/caller-input.js';
import { Bench, type BenchOptions } from '../fixtures/bench.js';
import { proposal } from '../fixtures/tree.js';
import { DecisionServer } from './decision-points/decision-server.js';

interface Spelling {
  readonly actor: string;
  readonly person?: string;
}

/** Names that are anna, in the words of Unicode: equal when folded. */
const SAME: readonly Spelling[] = [
  { actor: 'anna' },
  { actor: 'Anna' },
  { actor: 'ANNA' },
  { actor: 'anna ' },
  { actor: ' an na' },
  { actor: 'an\u200bna' },
  { actor: 'ann\u00ada' },
  { actor: '\uff41\uff4e\uff4e\uff41' },
  { actor: '\u{1d5ba}\u{1d5c7}\u{1d5c7}\u{1d5ba}' },
  { actor: 'robot-1', person: 'anna' },
  { actor: 'robot-2', person: 'Anna ' },
];
/** Names that only look like anna. */
const ALIKE: readonly Spelling[] = [
  { actor: '\u0430nna' },
  { actor: '\u0410nna' },
  { actor: 'ann\u0430' },
  { actor: '\u03b1nna' },
  { actor: 'robot-3', person: '\u0430nna' },
];
const OTHERS: readonly Spelling[] = [{ actor: 'berta' }, { actor: 'annab' }, { actor: 'hanna' }, { actor: 'robot-4' }];
const titled = (all: readonly Spelling[]) => all.map((one) => [JSON.stringify(one), one] as const);

const at = (name: string): string => `resource == Path::"/sandbox/${name}.txt"`;
const CONDITIONS = `@id("named")
forbid (principal == Actor::"anna", action, ${at('named')});
@id("spelled")
forbid (principal == Actor::"Anna", action, ${at('spelled')});
@id("in_body")
forbid (principal, action, ${at('body')}) when { [Actor::"anna", Actor::"carl"].contains(principal) };
@id("person")
forbid (principal, action, ${at('person')}) when { principal.person == "Anna" };
@id("group")
forbid (principal, action, ${at('group')}) when { principal in Group::"suspended" };
@id("only_person")
forbid (principal, action, ${at('only')}) unless { principal.person == "anna" };
@id("only_group")
forbid (principal, action, ${at('members')}) unless { principal in Group::"suspended" };
@id("twice")
forbid (principal, action == Action::"WRITE_FILE", ${at('counted')}) when { context.counters.writes >= 2 };
`;
const COUNTERS = `version: v1
contract_version: v1
last_updated: 2026-01-05
counters:
  - { name: writes, over: actor, counts: [{ action: WRITE_FILE }] }
`;

let server: DecisionServer;
let bench: Bench;
beforeAll(async () => {
  server = await DecisionServer.start();
  const point = { name: 'x', protocol: 'authzen', url: server.url, actions: ['DELETE_FILE'], timeout_ms: 5_000 };
  const edit: NonNullable<BenchOptions['edit']> = (name, text) => {
    if (name === 'roles') return `${text}\ngroups:\n  - { group: suspended, persons: [anna] }\n`;
    return name === 'actions' ? `${text}\ndecision_points: ${JSON.stringify([point])}\n` : text;
  };
  bench = await Bench.open({ edit, conditions: CONDITIONS, counters: COUNTERS });
});
afterAll(async () => {
  await server.close();
  await bench.close();
});

const write = (name: string): string =>
  JSON.stringify(proposal('WRITE_FILE', { path: `/sandbox/${name}.txt`, content: 'x' }));

/** The rule that denies each file to this actor; null: none. */
async function deniedFiles(spelling: Spelling, names: readonly string[]): Promise<Record<string, string | null>> {
  const agent = await bench.turnpike.startAgent(spelling);
  const found: Record<string, string | null> = {};
  for (const name of names) {
    await agent.submit(write(name));
    found[name] = null;
    for await (const { type, body } of bench.turnpike.ledger.entries(agent.root_run_id))
      if (type === 'step_trace') found[name] = body.rule_id ?? null;
  }
  await agent.end();
  return found;
}

const NAMES = ['named', 'spelled', 'body', 'person', 'group', 'only', 'members'];
const FORBIDDEN = { named: 'named', spelled: 'spelled', body: 'in_body', person: 'person', group: 'group' };

/** First, while no actor has written anything. */
describe('counters over an actor', () => {
  test('S4-31 C87: all spellings and look-alikes share one', async () => {
    expect(await deniedFiles({ actor: 'anna' }, ['counted', 'a'])).toEqual({ counted: null, a: null });
    for (const spelling of [...SAME, ...ALIKE])
      expect([spelling, await deniedFiles(spelling, ['counted'])]).toEqual([spelling, { counted: 'twice' }]);
    for (const spelling of OTHERS)
      expect([spelling, await deniedFiles(spelling, ['counted'])]).toEqual([spelling, { counted: null }]);
  });

  test('C87: a name that can be read as two names has no value', async () => {
    // Capital nu looks like N, and small nu like v.
    expect(await deniedFiles({ actor: 'a\u039da' }, ['counted'])).toEqual({ counted: 'condition.error' });
  });
});

describe('conditions', () => {
  test.each(titled(SAME))('S4-31 C87: %s is anna', async (_title, spelling) => {
    expect(await deniedFiles(spelling, NAMES)).toEqual({ ...FORBIDDEN, only: null, members: null });
  });

  test.each(titled(ALIKE))(
    'S4-31 C87: %s is denied as anna, and is not permitted as anna',
    async (_title, spelling) => {
      expect(await deniedFiles(spelling, NAMES)).toEqual({ ...FORBIDDEN, only: 'only_person', members: 'only_group' });
    },
  );

  test.each(titled(OTHERS))('%s is another person', async (_title, spelling) => {
    const nothing = { named: null, spelled: null, body: null, person: null, group: null };
    expect(await deniedFiles(spelling, NAMES)).toEqual({ ...nothing, only: 'only_person', members: 'only_group' });
  });
});

test('C87: decision points get the same person for all spellings, and the same look for look-alikes', async () => {
  for (const spelling of [...SAME, ...ALIKE, ...OTHERS]) {
    bench.put('a.txt', 'x');
    const agent = await bench.turnpike.startAgent(spelling);
    await agent.submit(JSON.stringify(proposal('DELETE_FILE', { path: '/sandbox/a.txt' })));
    await agent.end();
  }
  const subjects = server.asked.map(({ body }) => {
    const { subject } = JSON.parse(body) as { subject: { properties: { person: string; look: string } } };
    return subject.properties;
  });
  expect(subjects).toHaveLength(SAME.length + ALIKE.length + OTHERS.length);
  expect(new Set(subjects.slice(0, SAME.length).map(({ person }) => person))).toEqual(new Set(['anna']));
  expect(new Set(subjects.slice(0, SAME.length + ALIKE.length).map(({ look }) => look))).toEqual(new Set(['anna']));
  expect(subjects.slice(SAME.length + ALIKE.length).filter(({ look }) => look === 'anna')).toEqual([]);
});

describe('the overlay and votes compare the same', () => {
  const subject = { role_id: null, lane_id: null, action: null, tool: null, table: null, case_id: null, run_id: null };
  const anna = asPerson('anna');

  test.each(titled([...SAME, ...ALIKE]))('C87: %s is denied by the overlay, and cannot approve', (_title, spelling) => {
    const { actor, person = actor } = spelling;
    const rule = { rule_id: 'deny-1', reason: 'x', actor_id: 'anna', person: anna };
    const denied = overlayVerdict(
      { epoch: 1, rules: [rule] },
      { ...subject, actor_id: actor, person: asPerson(person) },
    );
    expect(denied?.rule_id).toBe('overlay.deny-1');
    const approver = { actor: { actor_type: 'human', actor_id: actor }, role_id: 'R', person: asPerson(person) };
    const entry = { requested_by: 'anna', requester: anna, votes: [] } as unknown as ApprovalEntry;
    expect(checkAgainstRequester(entry, approver as ApprovalBallot['approver'])).not.toBeNull();
  });

  test.each(titled(OTHERS))('%s is another person', (_title, { actor }) => {
    const rule = { rule_id: 'deny-1', reason: 'x', actor_id: 'anna', person: anna };
    const facts = { ...subject, actor_id: actor, person: asPerson(actor) };
    expect(overlayVerdict({ epoch: 1, rules: [rule] }, facts)).toBeNull();
  });
});
