// S4-19, S4-39: every effect that an agent can reach, with the runs that mediate it, and no others.

import { afterEach, expect, test } from '@jest/globals';
import Type from 'typebox';
import { openSandbox } from '../../src/sandbox/files/file-sandbox.js';
import { ACTION_NAMES } from '../../src/core/contract/policy/catalogue.js';
import { CapabilityError } from '../../src/core/errors.js';
import { commandRunner } from '../../src/sandbox/commands/walled-command-runner.js';
import { ephemeralKey } from '../../src/stores/keys/session-key.js';
import { CheckEffects } from '../../src/features/sessions/checks/check-effects.js';
import { CallLog } from '../../src/runtime/effects/call-log.js';
import { BoundedCalls } from '../../src/runtime/effects/bounded-calls.js';
import { catalogueFrom, defineAction } from '../../src/runtime/effects/define-effects.js';
import { ExportEffects } from '../../src/features/exports/export-effects.js';
import { httpDecisionService } from '../../src/system/network/http-decision-service.js';
import { DecisionPoints } from '../../src/features/decision-points/ask-decision-points.js';
import { EffectGateway } from '../../src/host/effect-gateway.js';
import type { EffectExecutor } from '../../src/runtime/host-feature.js';
import { RecordEffects } from '../../src/runtime/effects/record-effects.js';
import { memoryStore } from '../../src/stores/memory/memory-ledger-store.js';
import { winstonLog } from '../../src/system/winston-log.js';
import type { Effect } from '../../src/core/contract/run/effect.js';
import type { JsonObject } from '../../src/core/contract/json.js';
import { Bench, type BenchOptions } from '../fixtures/bench.js';
import { ManualClock } from '../fixtures/manual-clock.js';
import { service, serviceEdit } from '../fixtures/service.js';
import { proposal } from '../fixtures/tree.js';

let bench: Bench | null = null;
afterEach(async () => {
  await bench?.close();
  bench = null;
});

const note = defineAction({
  name: 'SEND_NOTE',
  risk: 'write',
  args: Type.Object({}, { additionalProperties: false }),
  needs: { tool: 'mail.send' },
  run: () => ({}),
});

/** One lane for all effects, so that one agent can reach each of them. */
const edit: NonNullable<BenchOptions['edit']> = (name, text) => {
  const edited = serviceEdit(name, text);
  if (name === 'actions')
    return edited.replace('  - action: CALL_TOOL', '  - action: SEND_NOTE\n  - action: CALL_TOOL');
  if (name !== 'lanes') return edited;
  const sandbox = ACTION_NAMES.slice(2).map((action) => `sandbox.${action.toLowerCase()}`);
  return edited
    .replace('tools: [billing.charge', `tools: [${sandbox.join(', ')}, billing.charge`)
    .replace(
      '        - { table: facts, mode: append }\n        - { table: entities',
      `        - { table: facts, mode: append }\n        - { table: sandbox_files, mode: upsert }\n        - { table: entities`,
    );
};

const REACHABLE: readonly (readonly [string, JsonObject, readonly string[]])[] = [
  ['THINK', {}, []],
  ['CREATE_DIRECTORY', { path: '/sandbox/d/' }, ['tool_gateway', 'db_write']],
  ['WRITE_FILE', { path: '/sandbox/a.txt', content: 'x' }, ['tool_gateway', 'db_write']],
  ['READ_FILE', { path: '/sandbox/a.txt' }, ['tool_gateway']],
  ['LIST_FILES', { path: '/sandbox/' }, ['tool_gateway']],
  ['RENAME_FILE', { source: '/sandbox/a.txt', destination: '/sandbox/b.txt' }, ['tool_gateway', 'db_write']],
  ['DELETE_FILE', { path: '/sandbox/b.txt' }, ['tool_gateway', 'db_write']],
  ['CALL_TOOL', { tool: 'billing.charge', input: { amount: 1 } }, ['tool_gateway']],
  ['WRITE_RECORD', { target: 'facts', mode: 'append', record: { id: '1', text: 'x' } }, ['db_write']],
  ['READ_RECORDS', { target: 'facts' }, ['db_read']],
  ['SEND_NOTE', {}, ['tool_gateway']],
  ['FINISH', { response: 'Done.' }, []],
];

test('S4-16 S4-19 S4-39: every action runs only in these kinds of runs', async () => {
  const made = service();
  bench = await Bench.open({ edit, tools: made.tools, targets: made.targets, actions: [note] });
  const catalogue = catalogueFrom({ tools: made.tools, targets: made.targets, actions: [note] });
  expect(REACHABLE.map(([action]) => action).sort()).toEqual(catalogue.actions.map(({ name }) => name).sort());
  const agent = await bench.turnpike.startAgent({ lane: 'CASE_WORK', role: 'CASE_AGENT' });
  for (const [action, args] of REACHABLE) {
    expect(await agent.submit(JSON.stringify(proposal(action, args)))).toMatchObject({ action, outcome: 'SUCCESS' });
  }
  const entries = await bench.entries();
  const mediated = entries.flatMap((entry) => (entry.type === 'step_trace' ? [entry.body.mediated_run_id] : []));
  const kinds = mediated.map((run_id) =>
    entries.flatMap((entry) => {
      if (entry.type !== 'run_created' || run_id === null) return [];
      return entry.body.run_id === run_id || entry.body.run_id.startsWith(`${run_id}.`) ? [entry.body.run_kind] : [];
    }),
  );
  expect(kinds).toEqual(REACHABLE.map(([, , through]) => through));
});

const executorOf = (actions: readonly string[], executor: EffectExecutor) => ({
  has: ({ action }: Effect) => actions.includes(action),
  changesSandbox: false,
  run: (effect: Effect) => executor.run(effect),
  settle: (effect: Effect) => executor.settle(effect),
});

test('S4-19 S4-81: an executor does nothing for an effect without an allow', () => {
  bench = null;
  const made = service();
  const sandbox = openSandbox({ root: '.' });
  const log = winstonLog('silent');
  const calls = new BoundedCalls(new ManualClock(), new CallLog(log, () => Promise.resolve(null)));
  const commands = commandRunner({ root: '.', wall: 'off' });
  const store = memoryStore();
  const gateway = new EffectGateway({
    sandbox,
    calls,
    records: new RecordEffects(null, made.targets),
    decisionPoints: new DecisionPoints(httpDecisionService, new ManualClock(), log),
    features: [
      executorOf(['EXPORT_BUNDLE'], new ExportEffects({ store, log, engine: store, signer: () => null, exports: '.' })),
      executorOf(
        ['RUN_VERIFICATION', 'REVIEW_PHASE'],
        new CheckEffects({ commands, review: null, calls, secrets: ephemeralKey(), log }),
      ),
    ],
    observer: null,
    registrations: { tools: made.tools, targets: made.targets, actions: [note] },
  });
  const byThePlatform = ['EXPORT_BUNDLE', 'RUN_VERIFICATION', 'REVIEW_PHASE'].map((name) => [name, {}, []] as const);
  for (const [action, args] of [...REACHABLE, ...byThePlatform]) {
    const effect: Effect = {
      action,
      args,
      case_id: 'case-0001',
      run_id: 'run_forged.1.1',
      idempotency_key: 'run_forged.1.1',
      request_hash: '0'.repeat(64),
      before: [],
      partial_outputs: false,
      limits: { read_bytes_max: 1_000, list_entries_max: 1_000 },
    };
    for (const executor of [gateway, sandbox]) {
      const attempt = () => ('run' in executor ? executor.run(effect, false) : executor.perform(effect));
      expect(attempt).toThrow(CapabilityError);
      expect(() => executor.settle(effect)).toThrow(CapabilityError);
    }
  }
  expect(made.world.calls).toEqual([]);
  sandbox.close();
});
