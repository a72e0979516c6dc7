// What golden histories of single subjects contain. All of them are verified and replayed in histories.test.ts.

import { expect, test } from '@jest/globals';
import type { Entry } from '../../../src/core/contract/run/entry.js';
import { OUTCOME_RESOLVED } from '../../../src/core/contract/run/run-context.js';
import { readKeyHistory } from '../../../src/core/ledger/proof/key-history.js';
import { readRestoreHistory, restoreTreeId } from '../../../src/engine/restore-history.js';
import { caseRotationTreeId } from '../../../src/home/keys/rotate-case-keys.js';
import { rotationTreeId } from '../../../src/home/keys/rotate-ledger-key.js';
import { toEventRow } from '../../../src/interfaces/inspector/contract/event-row.js';
import { readGolden } from '../../fixtures/golden-history.js';

const entriesOf = (name: string): Promise<readonly Entry[]> =>
  readGolden(name, async (reader) => {
    const entries: Entry[] = [];
    for await (const { text } of reader.log()) entries.push(JSON.parse(text) as Entry);
    return entries;
  });

const auditIn = (entries: readonly Entry[]) =>
  entries.flatMap((entry) => (entry.type === 'audit_event' ? [entry.body] : []));
const tracesIn = (entries: readonly Entry[]) =>
  entries.flatMap((entry) => (entry.type === 'step_trace' ? [entry.body] : []));
const inputsIn = (entries: readonly Entry[]) =>
  entries.flatMap((entry) => (entry.type === 'input' ? [{ tree_id: entry.tree_id, body: entry.body }] : []));
const rulesIn = (entries: readonly Entry[]) => tracesIn(entries).map(({ rule_id }) => rule_id);
const votesIn = (entries: readonly Entry[]) =>
  auditIn(entries).flatMap(({ target, authz }) => (target?.name === 'approval' ? [authz?.rule_id] : []));
/** The labels of the entries in the inspector. */
const labelsOf = (name: string): Promise<readonly string[]> =>
  readGolden(name, async (reader) => {
    const labels: string[] = [];
    for await (const { text, log_index, leaf_hash } of reader.log())
      labels.push(toEventRow(text, log_index, leaf_hash).label);
    return labels;
  });
/** What is recorded about the restores of a ledger. */
const restoresIn = (entries: readonly Entry[]) =>
  inputsIn(entries).flatMap(({ tree_id, body }) => (body.kind === 'restore' ? [{ tree_id, body }] : []));

test('U-06: the golden history words-and-findings contains codes of cancels, findings, hashes of names, and what runs were given', async () => {
  const entries = await entriesOf('words-and-findings');
  const audit = auditIn(entries);
  const reasons = new Set(audit.map(({ outcome_reason = '' }) => outcome_reason));
  // A cancel with free text is recorded as a code, in a session as well, and no cancel has paused one.
  expect([...reasons]).toEqual(
    expect.arrayContaining([
      'cancelled:by_caller',
      'cancelled:shutdown',
      'denied:prohibition.client_identity',
      'denied:prohibition.privileged_notes',
    ]),
  );
  const sessions = entries.flatMap(({ type, body }) => (type === 'session_event' ? [body] : []));
  expect(sessions.filter(({ event }) => event === 'pause')).toHaveLength(1);
  // Findings are recorded.
  const found = entries.flatMap(({ type, body }) =>
    type === 'input' && body.kind === 'start_run'
      ? [body.facts.artifact_flags.filter((flag) => flag.includes(':'))]
      : [],
  );
  expect(found).toEqual([['found:birth_date'], ['found:email'], ['found:privilege_mark']]);
  // Unknown names are hashes.
  const text = JSON.stringify(entries);
  for (const name of ['NO_SUCH_ACTION', 'unknown_argument', 'no.such_tool', 'withdrawn', 'lunch', 'that was all']) {
    expect(text.includes(name)).toBe(false);
  }
  // What runs were given, and have produced.
  const kinds = new Set(
    audit.flatMap(({ input_artifacts = [] }) => input_artifacts.map(({ artifact_kind }) => artifact_kind)),
  );
  expect([...kinds]).toEqual(
    expect.arrayContaining(['policy', 'machines', 'session_spec', 'step_packet', 'prompt', 'note']),
  );
});

test('U-06: the golden history explained-failures contains explained faults and requests that are repeated', async () => {
  const entries = await entriesOf('explained-failures');
  const exposures = entries.flatMap(({ type, body }) =>
    type === 'run_created' && body.exposure !== null ? [[body.run_id, body.exposure]] : [],
  );
  expect(exposures.map(([, exposure]) => exposure)).toEqual(['explained', 'detailed', 'decision']);
  const traces = tracesIn(entries);
  for (const [run_id, exposure] of exposures) {
    const own = traces.filter((trace) => trace.run_id === run_id);
    // Fields and constraints, under every exposure.
    expect(own.map(({ cause, explanation = null }) => [cause, explanation]).slice(0, 6)).toEqual([
      ['ARGUMENT', 'args.input.amount: must be <= 100'],
      ['ARGUMENT', 'args.input.amount: is missing'],
      ['ARGUMENT', 'args.input: has 1 unknown field'],
      ['PATH', 'args.path: must begin with "/sandbox/"'],
      ['PATH', 'args.path: must not have an empty segment'],
      [null, 'args: must be an object'],
    ]);
    // Errors of an idempotent tool.
    const causes = own.map(({ cause }) => cause).slice(6);
    expect(causes).toEqual(['REFUSED', 'FAILED', 'REPEATABLE', 'REPEATABLE', null, null, null]);
    const words = own.filter(({ explanation_ref }) => explanation_ref !== undefined).map(({ cause }) => cause);
    expect(words).toEqual(exposure === 'explained' ? ['REFUSED', 'FAILED'] : []);
  }
  const text = JSON.stringify(entries);
  for (const words of ['a word of the agent', 'The account is closed.', 'The bank says no.', 'fetch failed']) {
    expect(text.includes(words)).toBe(false);
  }
});

test('U-06: the golden history finish-rules contains FINISH with a pending request under each rule', async () => {
  const entries = await entriesOf('finish-rules');
  const traces = tracesIn(entries);
  const runs = [...new Set(traces.map(({ run_id }) => run_id))];
  const rules = runs.map((run_id) => traces.filter((trace) => trace.run_id === run_id).map(({ rule_id }) => rule_id));
  expect(rules).toEqual([
    // cancel, deny
    ['approval.required', null],
    ['approval.required', 'finish.request_pending', null],
    // wait: for a rejection, an approval, and the end of the run
    ['approval.required', null],
    ['approval.required', 'finish.request_approved', null, null],
    ['approval.required', 'lifecycle.run_ending'],
  ]);
});

test('U-06 S4-34: the golden history required-cases contains runs with and without the case that their lane requires', async () => {
  const entries = await entriesOf('required-cases');
  const runs = entries.flatMap(({ type, body }) =>
    type === 'run_created' && ['agent', 'export'].includes(body.run_kind) ? [body] : [],
  );
  const decisions = runs.map(({ run_id, root_run_id, case_id }) => {
    const event = entries.find(({ type, body }) => type === 'audit_event' && body.run_id === run_id);
    const authz = event?.type === 'audit_event' ? event.body.authz : undefined;
    return [case_id === `case-of-${root_run_id}` ? 'its own' : case_id, authz?.decision, authz?.rule_id];
  });
  expect(decisions).toEqual([
    [null, 'deny', 'scope.missing.case_id'],
    ['case-0001', 'allow', 'agent.lane_granted'],
    ['its own', 'allow', 'agent.lane_granted'],
    [null, 'deny', 'scope.missing.case_id'],
  ]);
});

test('U-06 S4-61: the golden history record-outputs contains references to written records', async () => {
  const entries = await entriesOf('record-outputs');
  const outputs = entries.flatMap(({ type, body }) =>
    type === 'audit_event' && body.action_type === 'db_write' ? [body.output_artifacts ?? []] : [],
  );
  const kinds = ['transcript', 'entity', 'fact'];
  expect(outputs.map((refs) => refs.map(({ artifact_kind }) => artifact_kind))).toEqual(kinds.map((kind) => [kind]));
  const ended = entries.flatMap(({ type, body }) =>
    type === 'audit_event' && body.outcome_reason?.startsWith('completed') === true
      ? [body.output_artifacts ?? []]
      : [],
  );
  expect(ended.filter((refs) => refs.length === kinds.length)).toEqual([outputs.flat(), outputs.flat()]);
});

test('U-06 U-10: the golden history caller-runs contains each outcome of actions that the caller executes', async () => {
  const entries = await entriesOf('caller-runs');
  const external = entries.flatMap(({ type, body }) =>
    type === 'run_created' && body.executor === 'caller' ? [body.run_id] : [],
  );
  const audit = auditIn(entries);
  const outcomes = external.map((run_id) => {
    const called = audit.find((event) => event.run_id === run_id && event.action_type === 'tool_call');
    return [called?.outcome, called?.error?.error_code ?? null, called?.reported?.match ?? null];
  });
  expect(outcomes).toEqual([
    ['success', null, 'ambiguous'],
    // No report by the deadline.
    ['failure', 'OUTCOME_UNKNOWN', null],
    ['failure', 'FAILED', 'exact'],
    ['failure', 'OUTCOME_UNKNOWN', 'exact'],
    // The agent run ended before a report.
    ['failure', 'OUTCOME_UNKNOWN', null],
    // Denied.
    [undefined, null, null],
  ]);
  const reasons = audit.map(({ outcome_reason = '' }) => outcome_reason);
  expect(reasons).toContain(`${OUTCOME_RESOLVED}not_executed`);
  expect(reasons.filter((reason) => reason === 'INVALID_STATE_TRANSITION')).toHaveLength(1);
});

test('0061: the golden history call-rules contains a decision of each kind by call rules', async () => {
  const entries = await entriesOf('call-rules');
  const rules = entries.flatMap(({ type, body }) =>
    type === 'audit_event' && body.action_type === 'authz_decision' && body.run_id.split('.').length > 2
      ? [body.authz?.rule_id]
      : [],
  );
  expect(rules).toEqual([
    'lane.granted',
    'call.denied.secrets',
    'call.not_allowed',
    'call.unreadable',
    'approval.required',
    'lane.granted',
    'approval.consumed',
  ]);
});

test('0069: the golden history conditions contains a decision of each kind by conditions', async () => {
  const entries = await entriesOf('conditions');
  const rules = entries.flatMap(({ type, body }) =>
    type === 'audit_event' && body.action_type === 'authz_decision' && body.authz?.decision === 'deny'
      ? [body.authz.rule_id]
      : [],
  );
  expect(rules).toEqual(['secret_files', 'condition.error', 'approval.required', 'approval.consumed']);
  const votes = entries.flatMap(({ type, body }) => (type === 'input' && body.kind === 'vote' ? [body] : []));
  expect(votes).toHaveLength(4);
  const ended = entries.flatMap(({ type, body }) =>
    type === 'audit_event' && body.target?.operation === 'finalize' ? [body.outcome] : [],
  );
  expect(ended).toEqual(['success']);
});

test('0070: the golden history counters contains values that conditions compare, and what was given back', async () => {
  const entries = await entriesOf('counters');
  const values = entries.flatMap(({ type, body }) =>
    type === 'input' && body.kind === 'facts'
      ? [(body.counters ?? []).map(({ name, used, adds }) => [name, used, adds] as const)]
      : [],
  );
  const [today, run] = ['files_today', 'writes'];
  expect(values).toEqual([
    ...[0, 1, 2, 3].map((used) => [
      [today, used, 1],
      [run, used, 1],
    ]),
    [[today, 3, -1]],
    [[today, 3, -1]],
    [
      [today, 2, 1],
      [run, 3, 1],
    ],
    [[today, 3, -1]],
    [
      [today, 2, 1],
      [run, 4, 1],
    ],
  ]);
  const traces = rulesIn(entries);
  expect(traces.filter((rule) => rule === 'three_files_a_day')).toHaveLength(1);
  expect(traces.filter((rule) => rule === 'approval.required')).toHaveLength(1);
});

test('0077: the golden history exact-calls contains decisions by what the client executes', async () => {
  const entries = await entriesOf('exact-calls');
  const traces = rulesIn(entries);
  expect(traces).toEqual([
    ...[null, 'call.not_allowed', null, null, 'call.denied.outside', 'call.denied.outside', null],
    ...['call.unreadable', 'call.unreadable', null, 'call.denied.secrets', null, 'call.unreadable', null],
  ]);
});

test('U-06: the golden history principals contains conditions and counters that compare persons', async () => {
  const entries = await entriesOf('principals');
  const traces = tracesIn(entries);
  const runs = [...new Set(traces.map(({ run_id }) => run_id))];
  const rules = runs.map((run_id) => traces.filter((trace) => trace.run_id === run_id).map(({ rule_id }) => rule_id));
  const moved = ['decision_point.denied', 'execute.file_not_found'];
  expect(rules).toEqual([
    // anna; `Anna `; a robot of anna; a name that looks like anna; berta.
    ['named', null, null, 'decision_point.denied', null],
    ['named', 'twice', 'twice', ...moved],
    ['named', 'twice', 'twice', ...moved],
    ['named', 'group', 'twice', ...moved],
    [null, null, 'twice', ...moved],
  ]);
  // Each answer is about one of two paths.
  const answers = entries.flatMap(({ type, body }) =>
    type === 'input' && body.kind === 'facts' ? [(body.decisions ?? []).map(({ answer }) => answer)] : [],
  );
  expect(answers.filter((each) => each.length === 2)).toContainEqual(['permit', 'deny']);
});

test('C100: the golden history rotated-case contains the rotations of case keys', async () => {
  const entries = await entriesOf('rotated-case');
  const rotations = inputsIn(entries).flatMap(({ tree_id, body }) =>
    body.kind === 'rotate_key' && body.rotation.purpose === 'case' ? [{ tree_id, ...body.rotation }] : [],
  );
  for (const { tree_id, case_id, key_no, contents } of rotations) {
    expect(contents).toBeGreaterThan(0);
    expect(tree_id).toBe(caseRotationTreeId(case_id, key_no));
  }
  expect(rotations.map(({ case_id, key_no }) => `${case_id}.${key_no}`)).toEqual([
    'case-0001.1',
    'case-0001.2',
    'case-0002.1',
  ]);
  const events = auditIn(entries).filter(({ outcome_reason }) => outcome_reason === 'KEY_ROTATED');
  expect(events).toHaveLength(3);
  expect(events[1]?.notes).toMatch(/^key 3 replaces key 2 of case-0001, which then had \d+ contents$/);
  const labels = ['case key rotation case-0002.1', 'KEY_ROTATED'];
  expect(await labelsOf('rotated-case')).toEqual(expect.arrayContaining(labels));
});

test('U-06: the golden history rotated contains the rotations of the ledger key', async () => {
  const entries = await entriesOf('rotated');
  const rotations = inputsIn(entries).flatMap(({ tree_id, body }) =>
    body.kind === 'rotate_key' && body.rotation.purpose === 'ledger' ? [{ tree_id, note: body.rotation.note }] : [],
  );
  expect(rotations.map(({ tree_id }) => tree_id)).toEqual([rotationTreeId(1), rotationTreeId(2)]);
  const history = readKeyHistory(rotations.map(({ note }) => note));
  expect(history).toMatchObject({ rotations: [{ number: 1 }, { number: 2 }] });
  const events = auditIn(entries).filter(({ outcome_reason }) => outcome_reason === 'KEY_ROTATED');
  expect(events).toHaveLength(2);
  expect(events[0]?.notes).toMatch(/^the key turnpike\/\S+ replaces turnpike\/\S+, and both have signed that$/);
  const labels = ['ledger key rotation 1', 'ledger key rotation 2', 'KEY_ROTATED'];
  expect(await labelsOf('rotated')).toEqual(expect.arrayContaining(labels));
});

test.each([
  [
    'restored',
    [
      [1, 'restored', true, false, null],
      [1, 'acknowledged', true, false, [0, []]],
      [2, 'restored', true, true, null],
      [2, 'acknowledged', true, true, [0, []]],
    ],
  ],
  [
    'lost-entries',
    [
      [1, 'restored', true, true, null],
      [1, 'acknowledged', true, true, [1, ['writes']]],
      [2, 'restored', false, true, null],
      [2, 'acknowledged', false, true, [1, ['writes']]],
    ],
  ],
] as const)('U-06: the golden history %s contains restores, and what was confirmed', async (name, expected) => {
  const history = await readGolden(name, (_reader, store) => readRestoreHistory(store));
  expect(history).toEqual({ restores: 2, unacknowledged: null });
  const restores = restoresIn(await entriesOf(name));
  const found = restores.map(({ tree_id, body: { event, backup_sha256, lost, confirmed } }) => {
    const counts = confirmed === undefined ? null : [confirmed.approvals.length, confirmed.counters];
    return [tree_id, event, backup_sha256 !== null, lost !== null, counts];
  });
  expect(found).toEqual(expected.map(([lineage, ...rest]) => [restoreTreeId(lineage), ...rest]));
  const digests = new Set(restores.flatMap(({ body }) => body.confirmed?.approvals ?? []));
  expect(digests.size).toBe(name === 'restored' ? 0 : 1);
});

test('S4-76 C85: the golden history everything names an export by its locator, and by no path of the host', async () => {
  await readGolden('everything', async (reader, store) => {
    const found: string[] = [];
    let text = '';
    for await (const entry of reader.log()) {
      text += entry.text;
      found.push(...(entry.text.match(/"storage_locator":"[^"]*"/g) ?? []));
      for (const artifact of await store.artifactsOf(entry))
        if ('bytes' in artifact) text += Buffer.from(artifact.bytes).toString();
    }
    expect(new Set(found)).toEqual(new Set(['"storage_locator":"bag"']));
    expect(text).toContain('"package_locator":"bag"');
    expect(text).not.toMatch(/"(?:destination|package_locator|storage_locator)":"\//);
  });
});

test('C101: the golden history operator-acts contains acts that were denied, approved and allowed', async () => {
  const events = auditIn(await entriesOf('operator-acts')).flatMap(({ target, outcome, authz }) =>
    /^ledger\./.test(target?.name ?? '') ? [`${target?.name ?? ''} ${outcome} ${authz?.rule_id ?? 'reported'}`] : [],
  );
  expect(events).toEqual([
    'ledger.rotate_keys deny hold',
    'ledger.rotate_keys allow approval.required',
    'ledger.rotate_keys allow operator.not_limited',
    'ledger.rotate_keys success reported',
    'ledger.rotate_keys allow operator.not_limited',
    'ledger.rotate_keys success reported',
    'ledger.archive allow operator.not_limited',
    'ledger.archive failure reported',
  ]);
});

test('U-06: votes of look-alikes, unreadable names and rounded numbers replay as recorded', async () => {
  const entries = await entriesOf('look-alike-voters');
  expect(votesIn(entries)).toEqual([
    'approval.look_alike',
    'approval.accepted',
    'approval.already_voted',
    'approval.look_alike',
    'approval.granted',
  ]);
  const rules = rulesIn(entries);
  expect(rules).toEqual([null, 'path.invisible_character', 'path.invisible_character', 'json.number_not_exact']);
});

test('U-06: names that need a change of case and a look-alike replay as recorded', async () => {
  const entries = await entriesOf('look-in-either-case');
  // The requester and the first voter in other spellings; that voter while another name is suspended, and their own.
  expect(votesIn(entries)).toEqual([
    'approval.look_alike',
    'approval.accepted',
    'approval.look_alike',
    'approval.already_voted',
    'approval.accepted',
    'approval.role_unknown',
    'approval.accepted',
    'approval.granted',
  ]);
  expect(rulesIn(entries)).toEqual([null, 'overlay.deny-3']);
  const persons = entries.flatMap((entry) =>
    entry.type === 'input' && entry.body.kind === 'vote' ? [entry.body.approver.person?.looks] : [],
  );
  expect(persons).toHaveLength(8);
  expect(persons).not.toContain(undefined);
});

test('U-06 C80 C81 C82: the golden history storage-limits contains a prefix, reservations and their effects', async () => {
  const entries = await entriesOf('storage-limits');
  const inputs = inputsIn(entries).map(({ body }) => body);
  expect(inputs.filter((input) => input.kind === 'proposal' && input.prefix !== undefined)).toHaveLength(2);
  expect(inputs.filter((input) => input.kind === 'facts' && input.reserved !== undefined)).not.toEqual([]);
  const rules = ['quota.bytes', 'payload.bytes_max', 'payload.blank'];
  expect(rulesIn(entries)).toEqual(expect.arrayContaining(rules));
  const reasons = auditIn(entries).map(({ outcome_reason }) => outcome_reason);
  expect(reasons).toContain('failed:INVALID_PROPOSALS');
});

test('U-06 C98: the golden history verified-voters contains each rule about the authentication of voters', async () => {
  const votes = auditIn(await entriesOf('verified-voters')).flatMap(({ target, actor, identity, authz }) =>
    target?.name === 'approval' ? [[actor.actor_id, identity?.source ?? 'none', authz?.rule_id]] : [],
  );
  expect(votes).toEqual([
    ['anna', 'none', 'approval.not_verified'],
    ['anna', 'token', 'approval.not_verified'],
    ['anna', 'oidc', 'approval.not_verified'],
    ['anna', 'oidc', 'approval.step_up_required'],
    ['anna', 'oidc', 'approval.step_up_required'],
    ['anna', 'oidc', 'approval.step_up_required'],
    ['anna', 'oidc', 'approval.step_up_required'],
    ['anna', 'oidc', 'approval.accepted'],
    ['otto', 'oidc', 'approval.already_voted'],
    ['a.berg', 'oidc', 'approval.already_voted'],
    ['requester', 'oidc', 'approval.by_requester'],
    ['a person', 'oidc', 'approval.by_requester'],
    ['otto', 'oidc', 'approval.accepted'],
    ['carla', 'oidc', 'approval.role_unknown'],
    ['dora', 'oidc', 'approval.granted'],
    ['anna', 'oidc', 'approval.accepted'],
    ['otto', 'oidc', 'approval.person_unmapped'],
    ['berta', 'none', 'approval.person_unmapped'],
    ['berta', 'token', 'approval.person_unmapped'],
    ['berta', 'token', 'approval.accepted'],
    ['dora', 'oidc', 'approval.granted'],
  ]);
});
