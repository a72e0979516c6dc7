// S4-62, C90: free text is stored only in artifacts of its case, so it is gone after the case is erased.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { join } from 'node:path';
import Type from 'typebox';
import { ENTRY_BODIES } from '../../fixtures/features.js';
import { toCancelReason, hashText, isIdentifier, toRecordedScopeValue } from '../../../src/core/contract/free-text.js';
import { isJsonObject } from '../../../src/core/contract/json.js';
import type { SessionSpec } from '../../../src/features/sessions/contract/session-spec.js';
import { defineTool } from '../../../src/runtime/effects/define-effects.js';
import { Bench } from '../../fixtures/bench.js';
import { Canaries } from '../../fixtures/canaries.js';
import { CASE_AGENT, service, serviceEdit } from '../../fixtures/service.js';
import { proposal } from '../../fixtures/tree.js';

const CASE = 'case-gone';
const ANNA = { actor: 'anna', role: 'maintainer' } as const;
const ATTORNEY = { actor: 'anna', role: 'ATTORNEY_ADMIN', case: CASE } as const;

let bench: Bench;
let canaries: Canaries;
beforeEach(async () => {
  canaries = new Canaries();
  const { tools, targets } = service();
  const lost = defineTool({
    name: 'mail.send',
    input: Type.Object({}, { additionalProperties: false }),
    output: Type.Object({}, { additionalProperties: false }),
    run: () => {
      throw new Error(`the answer was lost: ${canaries.text('error of a tool')}`);
    },
  });
  bench = await Bench.open({ edit: serviceEdit, tools: [...tools, lost], targets });
});
afterEach(() => bench.close());

const refused = (over: object): string => JSON.stringify({ ...proposal('THINK', {}), ...over });

/** Payloads that are rejected in each phase, with canaries in every text that an agent can choose. */
function payloads(): readonly string[] {
  const { word, text } = { word: canaries.word.bind(canaries), text: canaries.text.bind(canaries) };
  return [
    text('no JSON'),
    JSON.stringify({ [word('member of a payload')]: 1 }),
    refused({ id: word('id that is no UUID') }),
    refused({ schema_version: word('schema version') }),
    refused({ schema_version: `9.9.9${'9'.repeat(20)}` }),
    refused({ action: word('unknown action') }),
    refused({ action: text('action that is no name') }),
    refused({ reasoning: text('reasoning') }),
    refused({ args: { [word('argument of THINK')]: 1 } }),
    refused({ action: 'WRITE_RECORD', args: { [text('argument of WRITE_RECORD')]: 1, target: 'facts' } }),
    refused({ action: word('unknown action with arguments'), args: { [word('argument of an unknown action')]: 1 } }),
    refused({ action: 'CALL_TOOL', args: { tool: word('unknown tool'), input: { [word('input of a tool')]: 1 } } }),
    refused({ action: 'READ_RECORDS', args: { target: word('unknown table') } }),
    refused({ action: 'READ_RECORDS', args: { target: 'facts', where: { [word('unknown column')]: 1 } } }),
    refused({
      action: 'WRITE_RECORD',
      args: { target: word('unknown target'), mode: 'append', record: { [word('member of a record')]: text('value') } },
    }),
    refused({
      action: 'WRITE_RECORD',
      args: { target: 'shared_playbooks', mode: 'append', record: { id: word('key of a row'), text: text('row') } },
    }),
    refused({ action: 'FINISH', args: { response: text('last word') } }),
  ];
}

async function agents(): Promise<void> {
  const scope = { note: canaries.text('scope'), ticket: '' };
  const prompts = [canaries.text('prompt')];
  // Each in a run of its own, because denials end a run.
  for (const payload of payloads()) {
    const agent = await bench.turnpike.startAgent({ ...CASE_AGENT, case: CASE, scope, prompts });
    await agent.submit(payload, { inputId: canaries.text('input id'), prompt: canaries.text('prompt of a proposal') });
    await agent.end();
  }
  for (const reason of [canaries.text('cancel'), canaries.word('cancel in one word')]) {
    const agent = await bench.turnpike.startAgent({ ...CASE_AGENT, case: CASE });
    expect(await agent.cancel(reason)).toMatchObject({ state: 'cancelled', reason: 'by_caller' });
  }
}

async function people(): Promise<void> {
  const agent = await bench.turnpike.startAgent({ ...CASE_AGENT, case: CASE });
  const lost = JSON.stringify(proposal('CALL_TOOL', { tool: 'mail.send', input: {} }));
  expect(await agent.submit(lost)).toMatchObject({ outcome: 'EXECUTION_ERROR' });
  await agent.end();
  const note = canaries.text('note of an outcome');
  await bench.turnpike.resolve({
    run: `${agent.run_id}.1`,
    outcome: 'done',
    actor: 'anna',
    role: 'ATTORNEY_ADMIN',
    note,
  });
  const record = { id: 'p-1', text: canaries.text('promoted record') };
  const lesson = { target: 'shared_heuristics', ticket: canaries.text('ticket'), record };
  await (
    await bench.turnpike.promote({ ...ATTORNEY, ...lesson, scope: { signoff: canaries.text('scope of a promotion') } })
  ).finished;
  await (
    await bench.turnpike.promote({
      ...ATTORNEY,
      ticket: 'T-1',
      target: canaries.word('target of a promotion'),
      record: {},
    })
  ).finished;
  const reason = canaries.text('reason of an export');
  await (
    await bench.turnpike.export({ ...ATTORNEY, role: 'MAPPING_AGENT', reason, destination: join(bench.folder, 'bag') })
  ).finished;
}

function spec(): SessionSpec {
  return {
    spec_version: 1,
    id: 'small',
    title: canaries.text('title of a spec'),
    phases: [
      {
        id: 'only',
        title: canaries.text('title of a phase'),
        gate: { reviewer: 'manual', instruction: canaries.text('instruction of a gate') },
        tasks: [
          { id: 'one', title: canaries.text('title of a task'), instruction: canaries.text('instruction of a task') },
        ],
      },
    ],
  };
}

async function sessions(): Promise<void> {
  const { sessions: calls } = bench.turnpike;
  const scope = { why: canaries.text('scope of a session') };
  const started = await calls.start({ spec: spec(), case: CASE, scope, by: ANNA, allowGateWaiver: true });
  const id = started.data?.session_id ?? '';
  const answer = await calls.next(id, { context_usage_pct: 1 }, ANNA);
  const step = answer.data?.next_step;
  const about = { step_id: step?.step_id, step_type: step?.type, step_proof: step?.step_proof, task_id: step?.task_id };
  const report = { ...about, outcome: 'failure', note: canaries.text('note of a report') };
  const odd = { ...report, [canaries.word('member of a report')]: 1, step_id: canaries.word('step id of a report') };
  await calls.next(id, { last_step_result: odd, context_usage_pct: 2 }, ANNA);
  await calls.verify(id, { step_id: canaries.text('step id of a verification') }, ANNA);
  await calls.review(
    id,
    { phase_id: canaries.word('phase of a review'), step_id: canaries.word('step of a review') },
    ANNA,
  );
  await calls.next(id, { last_step_result: report, context_usage_pct: 2 }, ANNA);
  expect(await calls.pause(id, { reason: canaries.text('reason of a pause') }, ANNA)).toMatchObject({ success: true });
  const override = { reason_code: 'testing', reason_detail: canaries.text('detail of a waiver') } as const;
  expect(await calls.waive(id, { ...override, phase_id: 'only' }, ANNA)).toMatchObject({ success: true });
  const acknowledge = { gate_attempt_id: canaries.word('attempt of an acknowledgement'), decision: 'pass' } as const;
  await calls.resume(id, { acknowledge }, ANNA);
  await calls.waive(id, { ...override, phase_id: canaries.word('phase of a waiver') }, ANNA);
  const ended = { ...override, reason_detail: canaries.text('detail of an end') };
  expect(await calls.end(id, ended, ANNA)).toMatchObject({ success: true });
}

describe('S4-62 C90: free text', () => {
  test('is gone everywhere after an erasure', async () => {
    await agents();
    await people();
    await sessions();
    expect(canaries.places.length).toBeGreaterThan(50);
    await bench.turnpike.erase({ case: CASE, actor: 'anna' });
    await bench.turnpike.close();
    expect(canaries.foundIn(bench.home)).toEqual([]);
  });

  test('the search finds a planted canary: in an entry, in base64, and in plain text', async () => {
    const agent = await bench.turnpike.startAgent({ case: CASE, correlation: canaries.word('correlation') });
    await agent.submit(JSON.stringify(proposal('THINK', {})), {
      inputId: Buffer.from(canaries.word('base64')).toString('base64'),
    });
    await agent.end();
    await bench.turnpike.erase({ case: CASE, actor: 'anna' });
    await bench.turnpike.close();
    const found = canaries.foundIn(bench.home);
    expect(found.some((line) => line.startsWith('correlation:'))).toBe(true);
    expect(found.some((line) => line.startsWith('base64:'))).toBe(true);
  });

  test('of a cancel is in its note, and the run names the caller', async () => {
    const agent = await bench.turnpike.startAgent({ case: CASE });
    await agent.cancel('The client has withdrawn.');
    const cancels = (await bench.entries()).flatMap(({ type, body }) =>
      type === 'input' && body.kind === 'cancel' ? [body] : [],
    );
    expect(cancels).toMatchObject([{ reason: 'by_caller', note_ref: { artifact_kind: 'note', case_id: CASE } }]);
    expect(await bench.turnpike.ledger.run(agent.root_run_id)).toMatchObject({ outcome: 'cancelled:by_caller' });
    const other = await bench.turnpike.startAgent({ case: CASE });
    expect(await other.cancel('shutdown')).toMatchObject({ reason: 'shutdown' });
  });

  test('as a request id deduplicates the request: the ledger stores its hash', async () => {
    const agent = await bench.turnpike.startAgent({ case: CASE });
    const options = { inputId: 'the first request of Ms Quill' };
    const payload = JSON.stringify(proposal('THINK', {}));
    const first = await agent.respond(payload, options);
    expect(await agent.respond(payload, options)).toBe(first);
    await agent.end();
    expect(await bench.turnpike.respond(agent.run_id, payload, options)).toBe(first);
  });
});

describe('C90: the permitted values of an entry', () => {
  test('codes and identifiers are recorded, all other text as a hash', () => {
    expect([toCancelReason('shutdown'), toCancelReason('Shutdown'), toCancelReason('')]).toEqual([
      'shutdown',
      'by_caller',
      'by_caller',
    ]);
    expect(['T-17', 'a@b:c/d', '', 'two words', 'ä', '-x', 'x'.repeat(121)].map(isIdentifier)).toEqual([
      true,
      true,
      false,
      false,
      false,
      false,
      false,
    ]);
    expect(['T-17', ' ', 'two words'].map(toRecordedScopeValue)).toEqual(['T-17', '', hashText('two words')]);
  });

  test('every text member of an entry is classified: a new unbounded member must be added to this list', () => {
    const found = Object.entries(ENTRY_BODIES).flatMap(([type, schema]) => textsIn(schema, type));
    expect([...new Set(found)].sort()).toEqual(Object.keys(CLASSIFIED).sort());
  });
});

/** Text members without a pattern or an enum, by the last two names of their path. */
function textsIn(schema: unknown, path: string): readonly string[] {
  if (!isJsonObject(schema)) return [];
  const { type, pattern, properties, items, anyOf, patternProperties, enum: listed, const: only } = schema;
  // An artifact reference has a hash and a kind, and no free text.
  if (isJsonObject(properties) && 'artifact_id' in properties) return [];
  const isOpen = pattern === undefined || (typeof pattern === 'string' && pattern.startsWith('^.'));
  const own = type === 'string' && isOpen && listed === undefined && only === undefined;
  return [
    ...(own ? [path.split('.').slice(-2).join('.')] : []),
    ...Object.entries(isJsonObject(properties) ? properties : {}).flatMap(([name, part]) =>
      textsIn(part, `${path}.${name}`),
    ),
    ...Object.values(isJsonObject(patternProperties) ? patternProperties : {}).flatMap((part) =>
      textsIn(part, `${path}.*`),
    ),
    ...textsIn(items, path),
    ...(Array.isArray(anyOf) ? (anyOf as readonly unknown[]).flatMap((part) => textsIn(part, path)) : []),
  ];
}

/** The value of each of them in the recorded tree. */
const CLASSIFIED: Readonly<Record<string, string>> = {
  'acknowledge.gate_attempt_id': "an id of the session's own, or a hash",
  'actor.actor_id': 'a name that operators give',
  'actor.agent_name': 'not written',
  'actor.user_display': 'not written',
  'args_summary.*': 'a path of the sandbox',
  'args_summary.keys': 'an argument that the action has, or a hash',
  'audit_event.event_id': 'an id of the platform',
  'audit_event.notes': 'not written',
  'audit_event.outcome_reason': 'a code',
  'authz.policy_ref': 'versions',
  'authz.rule_id': 'a code',
  'command.reason': 'null',
  'command.reason_detail': 'null, or a code of the platform',
  'command.spec_file': 'a path that operators give',
  'command.step_id': "an id of the session's own, or a hash",
  'counters.key': 'an id of a run, tree, case, actor or role',
  'error.error_code': 'a code',
  'error.message': 'a constant of its code',
  'facts.artifact_flags': 'codes',
  'input.artifact_kind': 'a code',
  'input.input_id': 'an id, or a hash',
  'input.note': 'empty',
  'input.reason': 'a code',
  'input.spec_file': 'a path that operators give',
  'issue.step_id': 'an id of the platform',
  'paths.inode': 'digits',
  'paths.mtime_ns': 'digits',
  'person.alike_to': 'a name that the pinned policy has',
  'person.canonical_id': 'made of a name that operators give',
  'person.looks': 'made of a name that operators give',
  'person.same_as': 'a name that the pinned policy has',
  'person.skeletons': 'made of a name that operators give',
  'request.name': 'a tool or table that is registered, or a hash',
  'retry.reason': 'a code',
  'rotation.new_key': 'a public key',
  'rotation.note': 'a signed note of the key, without free text',
  'rotation.old_key': 'a public key',
  'rules.actor_id': 'a name that operators give',
  'rules.reason': 'a hash',
  'scope.*': 'an identifier, or a hash',
  'session_event.phase_id': 'a name of the spec',
  'session_event.step_id': 'an id of the platform',
  'session_event.task_id': 'a name of the spec',
  'step_trace.action': 'an action that is known, or a hash',
  'step_trace.cause': 'a code',
  'step_trace.explanation': 'names and limits of a schema; test/core/step/explanation/explain-fault.test.ts',
  'step_trace.proposal_id': 'a UUID',
  'step_trace.rule_id': 'a code',
  'step_trace.schema_version': 'three numbers, or a hash',
  'target.name': 'a tool or table that is registered, a run, or a hash',
  'target.operation': 'a code',
  'taxonomy_versions.coa': 'an identifier',
  'taxonomy_versions.entities': 'an identifier',
  'taxonomy_versions.tags': 'an identifier',
};
