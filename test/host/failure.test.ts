import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { LedgerModel } from '../fixtures/ledger-model/ledger-model.js';
import { modelStore } from '../fixtures/ledger-model/model-store.js';
import { homePaths, openHead } from '../../src/home/home.js';
import type { Sandbox } from '../../src/engine/ports/effects/sandbox.js';
import { granted } from '../fixtures/granted.js';
import { openSandbox } from '../../src/sandbox/files/file-sandbox.js';
import { Bench } from '../fixtures/bench.js';
import { FaultyStore, type Breakage } from '../fixtures/faulty-store.js';
import { tempFolder } from '../fixtures/temp-folder.js';
import { proposal } from '../fixtures/tree.js';

const json = (value: object): string => JSON.stringify(value);

let folder: string;
let sandbox: Sandbox & { close(): void };
beforeEach(() => {
  folder = tempFolder('failure');
  mkdirSync(join(folder, 'case-local'));
  sandbox = openSandbox({ root: folder });
});
afterEach(() => {
  sandbox.close();
  rmSync(folder, { recursive: true, force: true });
});

const BREAKAGES: readonly Breakage[] = ['fails, not written', 'fails, but written'];

describe.each(BREAKAGES)('when a commit %s', (breakage) => {
  test('S0-68 C35 D2: a change whose intent cannot be recorded is not executed; the response is AUDIT_FAILURE', async () => {
    const state = new LedgerModel();
    const store = new FaultyStore(modelStore(state));
    const bench = await Bench.open({ store, sandbox });
    const agent = await bench.turnpike.startAgent();
    store.breakage = breakage;
    const write = proposal('WRITE_FILE', { path: '/sandbox/a.txt', content: 'x' });
    const read = await agent.submit(json(write));
    expect(read).toEqual({
      proposal_id: write['id'],
      action: 'WRITE_FILE',
      outcome: 'EXECUTION_ERROR',
      result: null,
      error: { error_code: 'AUDIT_FAILURE', message: 'The step could not be recorded; the run has stopped' },
    });
    expect(list()).toMatchObject({ status: 'done', result: { entries: [] } });
    await expect(agent.finished).resolves.toMatchObject({ state: 'failed', reason: 'AUDIT_FAILURE' });
    await expect(agent.submit('{}')).rejects.toMatchObject({ code: 'RUN_ENDED' });
    await expect(bench.turnpike.startAgent()).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE' });
    await bench.close();
    await checkReopened(state);
  });

  test('C35: a read that cannot be recorded shows nothing of the file', async () => {
    writeFileSync(join(folder, 'case-local', 'a.txt'), 'secret');
    const state = new LedgerModel();
    const store = new FaultyStore(modelStore(state));
    const bench = await Bench.open({ store, sandbox });
    const agent = await bench.turnpike.startAgent();
    store.breakage = breakage;
    const response = await agent.respond(json(proposal('READ_FILE', { path: '/sandbox/a.txt' })));
    expect(response).not.toContain('secret');
    expect(JSON.parse(response)).toMatchObject({ error: { error_code: 'AUDIT_FAILURE' } });
    await bench.close();
    await checkReopened(state);
  });

  test('C35 D8: if only the outcome cannot be recorded, the next opening finds it', async () => {
    const state = new LedgerModel();
    const store = new FaultyStore(modelStore(state));
    let commits = 0;
    const bench = await Bench.open({ store, sandbox });
    const agent = await bench.turnpike.startAgent();
    store.before = () => {
      commits += 1;
      if (commits === 2) store.breakage = breakage;
    };
    const response = await agent.submit(json(proposal('WRITE_FILE', { path: '/sandbox/a.txt', content: 'there' })));
    expect(response).toMatchObject({ outcome: 'EXECUTION_ERROR', error: { error_code: 'AUDIT_FAILURE' } });
    await bench.close();
    const reopened = await checkReopened(state);
    const traces = reopened.flatMap((entry) => (entry.type === 'step_trace' ? [entry.body.outcome] : []));
    expect(traces).toEqual(['SUCCESS']);
  });
});

test('D15: a home whose ledger is behind its head file does not open', async () => {
  const bench = await Bench.open();
  await (await bench.turnpike.startAgent()).end();
  await bench.turnpike.close();
  const { externalHeadStore: head } = openHead(homePaths(bench.home), { readOnly: false });
  await head.write({ size: 1_000, root: 'f'.repeat(64) });
  await head.close();
  await expect(Bench.reopen(bench)).rejects.toMatchObject({ code: 'LEDGER_BELOW_HEAD' });
  // A failed opening releases the home: another try gets the same error, and not LEDGER_LOCKED.
  await expect(Bench.reopen(bench)).rejects.toMatchObject({ code: 'LEDGER_BELOW_HEAD' });
  rmSync(bench.folder, { recursive: true, force: true });
});

/** Opens what a failed process left: every run has ended, the ledger verifies and replays. */
async function checkReopened(state: LedgerModel) {
  const bench = await Bench.open({ store: modelStore(state), sandbox });
  const entries = await bench.entries();
  const created = entries.flatMap((entry) => (entry.type === 'run_created' ? [entry.body.run_id] : []));
  const ended = entries.flatMap((entry) =>
    entry.type === 'audit_event' && /^(completed|failed|denied|cancelled)/.test(entry.body.outcome_reason ?? '')
      ? [entry.body.run_id]
      : [],
  );
  expect(new Set(ended)).toEqual(new Set(created));
  expect(await bench.turnpike.ledger.verify()).toMatchObject({ ok: true });
  expect(await bench.turnpike.replay()).toMatchObject({ ok: true });
  await bench.close();
  return entries;
}

const list = () =>
  sandbox.perform(
    granted({
      action: 'LIST_FILES',
      args: { path: '/sandbox/' },
      case_id: 'case-local',
      run_id: 'run_test1.1.1',
      idempotency_key: 'run_test1.1.1',
      before: [],
      partial_outputs: false,
      limits: { read_bytes_max: 1000, list_entries_max: 1000 },
      request_hash: '0'.repeat(64),
    }),
  );
