// Who gave each text of an entry: every text of every schema, and trees in which agents and people write words
// of their own.

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { ACTION_NAMES, ACTIONS } from '../../../../src/core/contract/policy/catalogue.js';
import { ARTIFACT_KINDS } from '../../../../src/core/contract/artifact-ref.js';
import { type EntryType } from '../../../../src/core/contract/run/entry.js';
import { PHASES } from '../../../../src/core/contract/run/phase.js';
import { ENTRY_BODIES, ENTRY_TYPES } from '../../../fixtures/features.js';
import { toJsonLines } from '../../../../src/interfaces/inspector/page/text/json-lines.js';
import {
  authorOfContent,
  authorOfField,
  authorOfRequest,
  contentLines,
  entryLines,
  PLATFORM_NAMES,
  requestLines,
  responseLines,
} from '../../../../src/interfaces/inspector/page/text/text-authors.js';
import { GovernedTree, governedPolicy } from '../../../fixtures/governed.js';
import { randomTree } from '../../../fixtures/random-tree.js';
import { AGENT, type TreeDriver } from '../../../fixtures/tree.js';

interface Schema {
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly patternProperties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
}

/** A text of a body: its path, and the same with `*` for free names and places. */
interface Leaf {
  readonly path: string;
  readonly field: string;
  readonly value: string;
}

const HASH = 'ab'.repeat(32);

/** All texts that bodies of a schema can have, each with a value of its form. */
function textsOf(schema: Schema, path = '', field = ''): readonly Leaf[] {
  const { anyOf = [], const: only, enum: words = [], pattern, type, properties = {}, patternProperties = {} } = schema;
  const join = (at: string, name: string): string => (at === '' ? name : `${at}.${name}`);
  const below = (one: Schema, name: string, as = name) => textsOf(one, join(path, name), join(field, as));
  const free = pattern === undefined ? 'a text' : pattern.includes('64}') ? HASH : 'x';
  const values = only !== undefined ? [only] : words.length > 0 || type !== 'string' ? words : [free];
  return [
    ...anyOf.flatMap((one) => textsOf(one, path, field)),
    ...values.filter((value) => typeof value === 'string').map((value) => ({ path, field, value })),
    ...(schema.items === undefined ? [] : below(schema.items, '0', '*')),
    ...Object.entries(properties).flatMap(([name, one]) => below(one, name)),
    ...Object.values(patternProperties).flatMap((one, at) => below(one, `name${at}`, '*')),
  ];
}

/** `sender`: the caller of a session. `target`: of a tool or table. `phase`: an agent, until a phase has checked it. */
type Given = 'agent' | 'caller' | 'request' | 'sender' | 'target' | 'phase';

/** Every text that someone else than the platform gives, by type of entry. */
const GIVEN: Readonly<Record<EntryType, Readonly<Record<string, Given>>>> = {
  input: {
    'scope.*': 'caller',
    reason: 'caller',
    note: 'caller',
    spec_file: 'caller',
    idempotency_key: 'caller',
    'command.reason': 'sender',
    'command.reason_detail': 'sender',
    'command.spec_file': 'sender',
    'command.step_id': 'sender',
    'command.phase_id': 'sender',
    'command.acknowledge.gate_attempt_id': 'sender',
  },
  run_created: { 'scope.*': 'caller', 'request.name': 'request' },
  audit_event: { notes: 'caller', 'target.name': 'target' },
  step_trace: { 'args_summary.*': 'agent', 'args_summary.keys.*': 'agent', action: 'phase' },
  session_event: {},
};

interface Body {
  readonly by?: { readonly actor: { readonly actor_type: string } };
  readonly target?: { readonly target_type: string };
  readonly phase_failed_at?: string | null;
}

/** Bodies with every member that decides about an author. */
const BODIES: readonly Body[] = [
  ...['agent', 'human', 'service'].map((actor_type) => ({ by: { actor: { actor_type } } })),
  ...['tool', 'table', 'file', 'run'].map((target_type) => ({ target: { target_type } })),
  ...[null, ...PHASES].map((phase_failed_at) => ({ phase_failed_at })),
];

/** The author that the table and the other members of the body give. */
function expectedAuthor(given: Given | undefined, { by, target, phase_failed_at = null }: Body): string {
  switch (given) {
    case undefined:
      return 'platform';
    case 'sender':
      return by?.actor.actor_type === 'agent' ? 'agent' : 'caller';
    case 'target':
      return ['tool', 'table'].includes(target?.target_type ?? '') ? 'request' : 'platform';
    case 'phase':
      return phase_failed_at !== null && /^(?:RECEIVE|PARSE|VALIDATE_(?:SCHEMA|ACTION))$/.test(phase_failed_at)
        ? 'agent'
        : 'platform';
    default:
      return given;
  }
}

describe('the author of a field', () => {
  test.each(ENTRY_TYPES)('%s: only an agent’s text is an agent’s, for every text of the schema', (type) => {
    const texts = textsOf(ENTRY_BODIES[type]);
    expect(texts.length).toBeGreaterThan(2);
    for (const body of BODIES) {
      const authors = texts.map(({ path, field, value }) => [field, authorOfField(type, body, { path, value })]);
      // A hash in the place of a text is the platform's.
      const expected = texts.map(({ field, value }) => [
        field,
        value === HASH ? 'platform' : expectedAuthor(GIVEN[type][field], body),
      ]);
      expect(authors).toEqual(expected);
    }
    expect(texts.map(({ field }) => field)).toEqual(expect.arrayContaining(Object.keys(GIVEN[type])));
  });

  test('a reason is a code of the platform, also that of a cancellation', () => {
    const author = (outcome_reason: string) =>
      authorOfField('audit_event', { outcome_reason }, { path: 'outcome_reason', value: outcome_reason });
    const reasons = ['running', 'denied:approval.required', 'failed:IO_ERROR', 'cancelled:by_caller'];
    expect(reasons.map(author)).toEqual(Array(reasons.length).fill('platform'));
  });

  test('the tools and tables of the platform’s own actions are its names', () => {
    const names = ACTION_NAMES.flatMap((name) => [ACTIONS[name].tool, ACTIONS[name].write?.table ?? null]);
    expect([...new Set(['export_bundle', ...names.filter((name) => name !== null)])].sort()).toEqual(PLATFORM_NAMES);
  });

  test('an entry of an unknown type, or without members, has no foreign text and throws nothing', () => {
    for (const [type, body] of [
      ['toString', {}],
      ['input', null],
      ['input', 7],
      ['step_trace', []],
    ] as const)
      expect(authorOfField(type, body, { path: 'time', value: 'x' })).toBe('platform');
  });
});

/** Words that only the agents of a test use, and words that only its people use. */
const [OF_AGENT, OF_PERSON] = ['zqagent', 'zqperson'];

/** The texts of all entries, with the label that the page gives them. */
const labelled = (driver: TreeDriver) =>
  driver.entries.flatMap(({ entry: { type, body } }) => {
    const author = entryLines(type, body);
    const { lines } = toJsonLines(body, 10_000);
    return lines
      .filter(({ kind }) => kind === 'text')
      .map((line) => ({ type, path: line.path, value: line.value ?? '', label: author(line) }));
  });

test('in trees with words of agents and of people, the label of each text names who wrote it', () => {
  const policies = governedPolicy('', { actions: [['on_child_failure: fail', 'on_child_failure: continue']] });
  const d = new GovernedTree(policies);
  d.open({ scope: { promotion_ticket_id: `T-${OF_PERSON}` } });
  d.startAgent({ role_id: 'CASE_AGENT', lane_id: 'CASE_WORK' });
  d.act('READ_FILE', { path: `/sandbox/${OF_AGENT}.txt` });
  d.done(`${AGENT}.1`, { content: 'a' });
  d.act('WRITE_FILE', { path: `/sandbox/${OF_AGENT}.md`, content: OF_AGENT });
  d.act('READ_FILE', { path: 7, [OF_AGENT]: OF_AGENT });
  d.act(OF_AGENT.toUpperCase(), { path: OF_AGENT });
  d.call(`${OF_AGENT}.tool`, { [OF_AGENT]: OF_AGENT });
  d.call('billing.charge', { amount: 1, [OF_AGENT]: 1 });
  d.act('READ_RECORDS', { target: OF_AGENT });
  d.call('slow.tool');
  d.tree.pending.slice(0, 1).forEach(({ run_id }) => d.result(run_id, { status: 'unknown' }));
  d.cancel(AGENT, `Because of ${OF_PERSON}`);
  const texts = labelled(d);
  const isOf = (value: string, word: string): boolean => value.toLowerCase().includes(word);
  // Each word of theirs is labelled as theirs.
  const isMarked = ({ path, label }: (typeof texts)[number]): boolean =>
    label === (['request.name', 'target.name'].includes(path) ? 'request' : 'agent');
  expect(texts.filter((text) => isOf(text.value, OF_AGENT) && !isMarked(text))).toEqual([]);
  expect(texts.filter(({ value, label }) => isOf(value, OF_PERSON) !== (label === 'caller'))).toEqual([]);
  // And only what an agent sent is labelled as an agent's: its words, and the names of its arguments.
  const sent = ['path', 'tool', 'input'];
  const isSent = (value: string): boolean => isOf(value, OF_AGENT) || sent.includes(value);
  expect(texts.filter(({ value, label }) => label === 'agent' && !isSent(value))).toEqual([]);
  expect(new Set(texts.map(({ label }) => label))).toEqual(new Set(['agent', 'caller', 'request', null]));
});

test('in generated trees, a text with an agent’s label is in one of the payloads of the agents', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 100_000 }), (seed) => {
      const driver = randomTree(seed);
      const payloads = driver.inputs.flatMap(({ materials }) =>
        materials.filter(({ kind }) => kind === 'raw_payload').map(({ bytes }) => Buffer.from(bytes).toString()),
      );
      for (const { value, label } of labelled(driver)) {
        if (label !== 'agent') continue;
        expect(payloads.some((payload) => payload.includes(JSON.stringify(value).slice(1, -1)))).toBe(true);
      }
    }),
    { numRuns: 12 },
  );
});

describe('the author of a content', () => {
  test('every kind has one, and only payloads and reports of agents are an agent’s', () => {
    const agents = ARTIFACT_KINDS.filter((kind) => authorOfContent(kind) === 'agent');
    expect(agents).toEqual(['raw_payload', 'session_report', 'raw_payload_prefix']);
    expect(ARTIFACT_KINDS.filter((kind) => authorOfContent(kind) === null)).toEqual(['policy', 'machines']);
    expect([authorOfContent('note'), authorOfContent('result'), authorOfContent('toString')]).toEqual([
      'caller',
      'result',
      'toString',
    ]);
  });

  test('of a payload, only terms of the contract in their form are not marked', () => {
    const author = contentLines('agent');
    expect(author({ path: 'action', value: 'READ_FILE' })).toBe(null);
    expect(author({ path: 'action', value: 'Approved by the administrator' })).toBe('agent');
    expect(author({ path: 'reasoning', value: 'x' })).toBe('agent');
    expect(contentLines('caller')({ path: 'action', value: 'export' })).toBe('caller');
    expect(contentLines(null)({ path: 'x', value: 'x' })).toBe(null);
    expect(responseLines({ path: 'result.content', value: 'x' })).toBe('result');
    expect(responseLines({ path: 'outcome', value: 'DENIED' })).toBe(null);
  });

  test('a request is its requester’s: a person’s export is not an agent’s text', () => {
    expect(['export', 'promotion', 'CALL_TOOL'].map(authorOfRequest)).toEqual(['caller', 'caller', 'agent']);
    expect(requestLines('export')({ path: 'args.reason', value: 'x' })).toBe('caller');
    expect(requestLines('CALL_TOOL')({ path: 'action', value: 'CALL_TOOL' })).toBe(null);
  });
});
