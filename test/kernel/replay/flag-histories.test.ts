// What golden histories of single subjects contain.

import { describe, expect, test } from '@jest/globals';
import type { Entry } from '../../../src/core/contract/run/entry.js';
import { OUTCOME_RESOLVED } from '../../../src/core/contract/run/run-context.js';
import type { LedgerReader } from '../../../src/runtime/ledger/ledger-reader.js';
import { readGolden } from '../../fixtures/golden-history.js';

async function entriesIn(reader: LedgerReader): Promise<readonly Entry[]> {
  const entries: Entry[] = [];
  for await (const { text } of reader.log()) entries.push(JSON.parse(text) as Entry);
  return entries;
}

describe('the golden history words-and-findings', () => {
  test('U-06: contains codes of cancels, findings, hashes of names, and what runs were given', async () => {
    const entries = await readGolden('words-and-findings', entriesIn);
    const audit = entries.flatMap(({ type, body }) => (type === 'audit_event' ? [body] : []));
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
});

describe('the golden history explained-failures', () => {
  test('U-06: contains explained faults and requests that are repeated', async () => {
    const entries = await readGolden('explained-failures', entriesIn);
    const exposures = entries.flatMap(({ type, body }) =>
      type === 'run_created' && body.exposure !== null ? [[body.run_id, body.exposure]] : [],
    );
    expect(exposures.map(([, exposure]) => exposure)).toEqual(['explained', 'detailed', 'decision']);
    const traces = entries.flatMap(({ type, body }) => (type === 'step_trace' ? [body] : []));
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
});

describe('the golden history finish-rules', () => {
  test('U-06: contains FINISH with a pending request under each rule', async () => {
    const entries = await readGolden('finish-rules', entriesIn);
    const traces = entries.flatMap(({ type, body }) => (type === 'step_trace' ? [body] : []));
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
});

describe('the golden history required-cases', () => {
  test('U-06 S4-34: contains runs with and without the case that their lane requires', async () => {
    const entries = await readGolden('required-cases', entriesIn);
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
});

describe('the golden history record-outputs', () => {
  test('U-06 S4-61: contains references to written records', async () => {
    const entries = await readGolden('record-outputs', entriesIn);
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
});

describe('the golden history caller-runs', () => {
  test('U-06 U-10: contains each outcome of actions that the caller executes', async () => {
    const entries = await readGolden('caller-runs', entriesIn);
    const external = entries.flatMap(({ type, body }) =>
      type === 'run_created' && body.executor === 'caller' ? [body.run_id] : [],
    );
    const audit = entries.flatMap(({ type, body }) => (type === 'audit_event' ? [body] : []));
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
});

describe('the golden history call-rules', () => {
  test('0061: contains a decision of each kind by call rules', async () => {
    const entries = await readGolden('call-rules', entriesIn);
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
});

describe('the golden history conditions', () => {
  test('0069: contains a decision of each kind by conditions', async () => {
    const entries = await readGolden('conditions', entriesIn);
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
});

describe('the golden history counters', () => {
  test('0070: contains values that conditions compare, and what was given back', async () => {
    const entries = await readGolden('counters', entriesIn);
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
    const traces = entries.flatMap(({ type, body }) => (type === 'step_trace' ? [body.rule_id] : []));
    expect(traces.filter((rule) => rule === 'three_files_a_day')).toHaveLength(1);
    expect(traces.filter((rule) => rule === 'approval.required')).toHaveLength(1);
  });
});

describe('the golden history exact-calls', () => {
  test('0077: contains decisions by what the client executes', async () => {
    const entries = await readGolden('exact-calls', entriesIn);
    const traces = entries.flatMap(({ type, body }) => (type === 'step_trace' ? [body.rule_id] : []));
    expect(traces).toEqual([
      ...[null, 'call.not_allowed', null, null, 'call.denied.outside', 'call.denied.outside', null],
      ...['call.unreadable', 'call.unreadable', null, 'call.denied.secrets', null, 'call.unreadable', null],
    ]);
  });
});

describe('the golden history principals', () => {
  test('U-06: contains conditions and counters that compare persons', async () => {
    const entries = await readGolden('principals', entriesIn);
    const traces = entries.flatMap(({ type, body }) => (type === 'step_trace' ? [body] : []));
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
});
