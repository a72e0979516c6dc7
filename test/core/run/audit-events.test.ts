import { describe, expect, test } from '@jest/globals';
import { artifactRef } from '../../../src/core/contract/artifact-ref.js';
import { OUTCOME_REASON_CHARS_MAX, type AuditEvent } from '../../../src/core/contract/run/audit-event.js';
import { canonicalJson } from '../../../src/core/contract/json.js';
import type { RunCreated } from '../../../src/core/contract/run/entry.js';
import type { RunContext } from '../../../src/core/contract/run/run-context.js';
import { isEntryBody } from '../../../src/core/contract/validators.js';
import { referencesOf } from '../../../src/core/contract/run/input.js';
import {
  actionEvent,
  authzEvent,
  NO_DECISION_SUBJECT,
  endEvent,
  illegalTransitionEvent,
  runningEvent,
} from '../../../src/core/run/audit-events.js';
import { sized } from '../../fixtures/campaign.js';
import { randomTree, SECRET } from '../../fixtures/random-tree.js';
import { AGENT, TreeDriver } from '../../fixtures/tree.js';

/** Random trees, each run to its end. */
const TREES = sized(140, 300);
const trees = Array.from({ length: TREES }, (_, i) => randomTree(4_001 + i, { close: true }));

/** The events of one run, in ledger order. */
interface Life {
  readonly run: RunCreated;
  readonly events: readonly AuditEvent[];
}

const isRefusal = (event: AuditEvent): boolean => event.outcome_reason === 'INVALID_STATE_TRANSITION';

/** Every run of a tree, without its rejected inputs. */
const livesOf = (d: TreeDriver): Life[] =>
  d.bodies('run_created').map((run) => ({
    run,
    events: d.audit(run.run_id).filter((event) => !isRefusal(event)),
  }));

const stepsOf = ({ events }: Life): string[] =>
  events.map(({ action_type, outcome, outcome_reason }) =>
    action_type === 'system'
      ? outcome_reason!.split(':')[0]!
      : action_type === 'authz_decision'
        ? outcome
        : action_type,
  );

describe(`over ${TREES} random trees`, () => {
  test('S4-44 S4-45 S4-46 S4-47 S4-48 S4-11: every run has exactly its required events, in order', () => {
    const seen = new Set<string>();
    for (const life of trees.flatMap(livesOf)) {
      const acted = { tool_gateway: 'tool_call', db_write: 'db_write' }[life.run.run_kind as string];
      const end = '(completed|failed|denied|cancelled)';
      // A mediated run with an allow has acted, unless the write below it was denied.
      const allowed =
        acted === undefined ? `allow running ${end}` : `allow running (${acted} (completed|failed|cancelled)|denied)`;
      expect(stepsOf(life).join(' ')).toMatch(new RegExp(`^(deny denied|${allowed})$`));
      seen.add(`${life.run.run_kind} ${stepsOf(life).join(' ')}`);
    }
    expect([...seen].sort()).toEqual([
      'agent allow running cancelled',
      'agent allow running completed',
      'agent allow running denied',
      'agent allow running failed',
      'agent deny denied',
      'db_write allow running db_write cancelled',
      'db_write allow running db_write completed',
      'db_write allow running db_write failed',
      'db_write deny denied',
      'orchestrator allow running cancelled',
      'orchestrator allow running completed',
      'orchestrator allow running failed',
      'orchestrator deny denied',
      'tool_gateway allow running denied',
      'tool_gateway allow running tool_call cancelled',
      'tool_gateway allow running tool_call completed',
      'tool_gateway allow running tool_call failed',
      'tool_gateway deny denied',
    ]);
  });

  test('S4-46 C48: a terminal event names the reason and the outcome of its state, with an error exactly if the run failed', () => {
    const outcomes = { completed: 'success', failed: 'failure', denied: 'deny', cancelled: 'failure' };
    for (const { events } of trees.flatMap(livesOf)) {
      const end = events.at(-1)!;
      const state = end.outcome_reason!.split(':')[0] as keyof typeof outcomes;
      expect(end).toMatchObject({ action_type: 'system', outcome: outcomes[state] });
      expect(end.error !== undefined).toBe(state === 'failed');
    }
  });

  test('S4-63 S4-64: a failed run records its error code, a bounded message and whether it may be retried', () => {
    const failed = trees
      .flatMap(livesOf)
      .map(({ events }) => events.at(-1)!)
      .filter(({ error }) => error !== undefined);
    expect(failed.length).toBeGreaterThan(50);
    for (const { error, outcome_reason } of failed) {
      expect(outcome_reason).toBe(`failed:${error!.error_code}`);
      expect(error!.message).toMatch(/^.{1,200}$/);
      expect(typeof error!.retryable).toBe('boolean');
    }
  });

  test('S4-54 S4-55 C53: parents are created before their children and end after them', () => {
    for (const d of trees) {
      const story = d.entries.map(({ entry }) => entry);
      const createdAt = (run_id: string | null): number =>
        story.findIndex(({ type, body }) => type === 'run_created' && body.run_id === run_id);
      const ended = (run_id: string): number => {
        const end = d
          .audit(run_id)
          .filter((event) => !isRefusal(event))
          .at(-1)!;
        return end.sequence;
      };
      for (const { run_id, parent_run_id, root_run_id, run_kind } of d.bodies('run_created')) {
        expect(root_run_id).toBe(d.tree_id);
        expect(parent_run_id === null).toBe(run_kind === 'orchestrator');
        if (parent_run_id === null) continue;
        expect(createdAt(parent_run_id)).toBeGreaterThanOrEqual(0);
        expect(createdAt(parent_run_id)).toBeLessThan(createdAt(run_id));
        expect(ended(parent_run_id)).toBeGreaterThan(ended(run_id));
      }
    }
  });

  test('S4-51 S4-06 S4-03: event ids and sequence numbers are the places of the entries; run ids are unique and known', () => {
    for (const d of trees) {
      for (const [seq, { entry }] of d.entries.entries()) {
        expect(entry.seq).toBe(seq);
        if (entry.type !== 'audit_event') continue;
        expect(entry.body).toMatchObject({ event_id: `${d.tree_id}:${seq}`, sequence: seq });
      }
      const ids = d.bodies('run_created').map(({ run_id }) => run_id);
      expect(new Set(ids).size).toBe(ids.length);
      expect(d.audit().filter(({ run_id }) => !ids.includes(run_id))).toEqual([]);
      expect(d.traces.filter(({ run_id }) => !ids.includes(run_id))).toEqual([]);
    }
  });

  test('S4-01 S4-51 S4-10: every entry conforms to its schema', () => {
    for (const { entry } of trees.flatMap(({ entries }) => entries)) {
      expect(isEntryBody(entry.type, entry.body)).toBe(true);
    }
  });

  test('S4-52 S4-53 S4-56 S4-57 S4-04 S4-05 U-03: every event has the pins, correlation id and root id of its tree', () => {
    for (const d of trees) {
      const runs = new Map(d.bodies('run_created').map((run) => [run.run_id, run]));
      const root = runs.get(d.tree_id)!;
      for (const run of runs.values()) {
        const { contract_version, policy_versions, correlation_id, taxonomy_versions, scope } = root;
        expect(run).toMatchObject({ contract_version, policy_versions, correlation_id, taxonomy_versions, scope });
        if (run.lane_id !== 'SANDBOX_READ') expect(run.case_id).toBe(root.case_id);
      }
      for (const event of d.audit()) {
        const { contract_version, policy_versions, correlation_id, root_run_id, actor, role_id, ...own } = runs.get(
          event.run_id,
        )!;
        expect(event).toMatchObject({ contract_version, policy_versions, correlation_id, root_run_id, actor, role_id });
        expect(event.parent_run_id ?? null).toBe(own.parent_run_id);
        expect(event.case_id ?? null).toBe(own.case_id);
        expect(event.lane_id ?? null).toBe(own.lane_id);
        expect(event.taxonomy_versions ?? null).toEqual(own.taxonomy_versions);
      }
    }
  });

  test('S4-25 S4-26 S4-29 S4-04: a run that enters running has every pin', () => {
    const running = trees.flatMap((d) => d.audit().filter(({ outcome_reason }) => outcome_reason === 'running'));
    expect(running.length).toBeGreaterThan(sized(300, 500));
    for (const { contract_version, policy_versions } of running) {
      expect(contract_version).toBe('v1');
      expect(policy_versions).toEqual({
        lanes: 'a'.repeat(40),
        roles: 'a'.repeat(40),
        actions: 'a'.repeat(40),
        machines: expect.stringMatching(/^[0-9a-f]{64}$/) as unknown,
      });
    }
  });

  test('S4-58 S4-62 S0-66 C36 C37: no entry contains content, reasoning, final answers or data that was read', () => {
    const kindsWithSecret = new Set<string>();
    for (const d of trees) {
      for (const { text } of d.entries) expect(text).not.toContain(SECRET);
      for (const { artifacts } of d.decisions) {
        for (const { kind, bytes } of artifacts) if (Buffer.from(bytes).includes(SECRET)) kindsWithSecret.add(kind);
      }
    }
    expect([...kindsWithSecret].sort()).toEqual(['raw_payload', 'response', 'result']);
  });

  test('S4-58 S4-59 S0-17: entries name the content of inputs, configuration and policies only by reference', () => {
    for (const { entries, artifacts } of trees.flatMap(({ decisions }) => decisions)) {
      const [first] = entries;
      if (first?.entry.type !== 'input') throw new Error('an input comes first');
      expect(referencesOf(first.entry.body)).toEqual(artifacts.map(artifactRef));
    }
  });

  test('S4-40 S4-41 S4-42 S4-60: an action event has the request hash and the lane, and the output if it succeeded', () => {
    const actions = trees.flatMap((d) =>
      d.audit().filter(({ action_type }) => /^(tool_call|db_write)$/.test(action_type)),
    );
    expect(actions.length).toBeGreaterThan(sized(100, 200));
    const answers = trees
      .flatMap(({ decisions }) => decisions.flatMap(({ artifacts }) => artifacts))
      .filter(({ kind }) => kind === 'result')
      .map((artifact) => artifactRef(artifact).hash_sha256);
    for (const { outcome, output_artifacts, response_hash_sha256, request_hash_sha256, ...event } of actions) {
      expect(request_hash_sha256).toMatch(/^[0-9a-f]{64}$/);
      expect(event.lane_id).toBeDefined();
      expect(event.input_artifacts).toMatchObject([{ artifact_kind: 'raw_payload' }]);
      expect(output_artifacts?.length ?? 0).toBe(outcome === 'success' ? 1 : 0);
      if (outcome === 'success') expect(answers).toContain(response_hash_sha256);
      else expect(response_hash_sha256).toBeUndefined();
    }
  });
});

test('S4-07 S4-60 S4-61: equal requests have equal hashes regardless of reasoning; outputs are named by their hashes', () => {
  const write = (content: string, reasoning: string) => {
    const d = new TreeDriver().ready();
    d.propose({
      schema_version: '1.0.0',
      id: crypto.randomUUID(),
      reasoning,
      action: 'WRITE_FILE',
      args: { path: '/sandbox/a.txt', content },
    });
    d.facts({ paths: [{ status: 'absent' }], usage: { bytes: 0, files: 0 } });
    d.done(`${AGENT}.1.1`, { bytes_written: 1 });
    return d.audit(`${AGENT}.1.1`).find(({ action_type }) => action_type === 'db_write')!;
  };
  const [one, same, other] = [write('a', 'first'), write('a', 'second'), write('b', 'first')];
  expect(same.request_hash_sha256).toBe(one.request_hash_sha256);
  expect(other.request_hash_sha256).not.toBe(one.request_hash_sha256);
  expect(same.output_artifacts?.[0]?.hash_sha256).toBe(one.output_artifacts?.[0]?.hash_sha256);
  expect(one.output_artifacts).toMatchObject([{ artifact_kind: 'file_content', scope: 'case', byte_size: 1 }]);
});

describe('a single event', () => {
  const RUN: RunContext = new TreeDriver().ready().tree.run(AGENT)!.context;

  test('S4-36: a decision names its rule and the versions of the policy behind it', () => {
    const { authz, outcome, severity } = authzEvent(
      RUN,
      { decision: 'deny', rule_id: 'lane.unknown' },
      NO_DECISION_SUBJECT,
    );
    const sha = 'a'.repeat(40);
    expect({ outcome, severity, authz }).toEqual({
      outcome: 'deny',
      severity: 'warn',
      authz: { decision: 'deny', rule_id: 'lane.unknown', policy_ref: `lanes@${sha} roles@${sha} actions@${sha}` },
    });
  });

  test('S4-52 S4-53: omits the fields that the run does not have', () => {
    const event = runningEvent({ ...RUN, case_id: null, lane_id: null, parent_run_id: null, taxonomy_versions: null });
    for (const key of ['case_id', 'lane_id', 'parent_run_id', 'taxonomy_versions'])
      expect(JSON.parse(canonicalJson(event))).not.toHaveProperty(key);
  });

  test.each([
    [OUTCOME_REASON_CHARS_MAX, 0],
    [OUTCOME_REASON_CHARS_MAX + 1, 1],
  ])('a reason of %i characters loses %i', (length, lost) => {
    const reason = 'x'.repeat(length - 'cancelled:'.length);
    const { outcome_reason } = endEvent(RUN, 'cancelled', { reason, error: null });
    expect(outcome_reason).toBe(`cancelled:${reason}`.slice(0, length - lost));
  });

  test('C29: an action is critical if its caller says so, otherwise according to its outcome', () => {
    const action = {
      type: 'tool_call',
      target: { target_type: 'tool', name: 't' },
      request_hash: '',
      inputs: [],
      response: null,
      output: null,
    } as const;
    const end = { reason: 'IO_ERROR', error: { error_code: 'IO_ERROR', message: 'm', retryable: true } };
    expect(actionEvent(RUN, { ...action, end, critical: true }).severity).toBe('critical');
    expect(actionEvent(RUN, { ...action, end, critical: false }).severity).toBe('error');
    expect(actionEvent(RUN, { ...action, end: null, critical: false }).severity).toBe('info');
  });

  test('C50: an illegal transition is recorded for the run, with the request and the addressed run', () => {
    expect(illegalTransitionEvent(RUN, 'run_nobody', 'cancel')).toMatchObject({
      run_id: AGENT,
      outcome_reason: 'INVALID_STATE_TRANSITION',
      target: { target_type: 'system', name: 'run_nobody', operation: 'cancel' },
    });
  });
});
