// The label of a case in a promotion, while an agent at another worker reads confidential data of the same case.

import { afterAll, describe, expect, test } from '@jest/globals';
import { join } from 'node:path';
import Type from 'typebox';
import { manifestPolicySource } from '../../../src/home/policy/manifest-policy-source.js';
import { createPostgresStore, openPostgresStore } from '../../../src/stores/postgres/index.js';
import { winstonLog } from '../../../src/system/winston-log.js';
import type { Entry } from '../../../src/core/contract/run/entry.js';
import { sharedEngine } from '../../../src/engine/shared.js';
import type { SharedBatch, SharedLedgerStore } from '../../../src/engine/ports/ledger/shared-store.js';
import { defineTool } from '../../../src/runtime/effects/define-effects.js';
import { openStorageEnvironment } from '../../../src/host/storage-environment.js';
import { openTurnpikeIn, type Turnpike } from '../../../src/host/turnpike.js';
import { writeContract } from '../../fixtures/bench.js';
import { FaultySharedStore } from '../../fixtures/faulty-shared-store.js';
import { startPostgres } from '../../fixtures/postgres.js';
import { CASE_AGENT, serviceEdit } from '../../fixtures/service.js';
import { tempFolder } from '../../fixtures/temp-folder.js';
import { proposal } from '../../fixtures/tree.js';
import { ledgerPlace, type LedgerPlace } from './postgres-harness.js';

const CASE = 'case-1';
const closed = { additionalProperties: false } as const;
const clinic = defineTool({
  name: 'mail.send',
  input: Type.Object({}, closed),
  output: Type.Object({}, closed),
  confidentiality: ['contains_phi'],
  run: () => ({}),
});

const server = await startPostgres({ isDurable: true });
afterAll(() => server?.stop());

/** Another worker commits while the first append with a label is on its way to the server. */
class WithInterruption extends FaultySharedStore {
  interrupt: (() => Promise<void>) | null = null;
  attempts = 0;

  override commitTrees: SharedLedgerStore['commitTrees'] = async (batch) => {
    if (batch.trees.some(({ label }) => label?.version != null)) {
      this.attempts += 1;
      const interrupt = this.interrupt;
      this.interrupt = null;
      await interrupt?.();
    }
    return this.inner.commitTrees(this.change(batch));
  };

  change(batch: SharedBatch): SharedBatch {
    return batch;
  }
}

/** A planted fault: the label is that of the log when the promotion was prepared. */
class WithLabelOfLog extends WithInterruption {
  override change(batch: SharedBatch): SharedBatch {
    return {
      ...batch,
      trees: batch.trees.map((append) => ({
        ...append,
        label: append.label === null ? null : { ...append.label, version: null },
      })),
    };
  }
}

/** Two workers of one ledger. */
class Workers {
  readonly #folder = tempFolder('labels');
  readonly #place: LedgerPlace;
  readonly #opened: { readonly turnpike: Turnpike; readonly store: SharedLedgerStore }[] = [];

  constructor(place: LedgerPlace) {
    this.#place = place;
    writeContract(join(this.#folder, 'contract'), { edit: serviceEdit });
  }

  async open(store: SharedLedgerStore): Promise<Turnpike> {
    const turnpike = await openTurnpikeIn(
      { ...(await openStorageEnvironment(store, {})), store, engine: sharedEngine },
      {
        store,
        sandbox: join(this.#folder, 'sandbox'),
        log: winstonLog('silent'),
        control: false,
        tools: [clinic],
        policies: manifestPolicySource(join(this.#folder, 'contract')),
      },
    );
    this.#opened.push({ turnpike, store });
    return turnpike;
  }

  async entries(): Promise<readonly Entry[]> {
    const store = await openPostgresStore({ ...this.#place, readOnly: true });
    const entries: Entry[] = [];
    for await (const { tree_id } of store.trees())
      for await (const { text } of store.tree(tree_id)) entries.push(JSON.parse(text) as Entry);
    await store.close();
    return entries;
  }

  async close(): Promise<void> {
    for (const { turnpike, store } of this.#opened) {
      await turnpike.close();
      await store.close();
    }
    await this.#place.remove();
  }
}

async function act(turnpike: Turnpike, action: string, args: object): Promise<void> {
  const agent = await turnpike.startAgent({ ...CASE_AGENT, case: CASE });
  expect(await agent.submit(JSON.stringify(proposal(action, args)))).toMatchObject({ outcome: 'SUCCESS' });
  await agent.end();
}

/** @returns the labels of the recorded promotions, and how often one was sent */
async function promoteDuring(
  url: string,
  wrap: (store: SharedLedgerStore) => WithInterruption,
  interrupt: (other: Turnpike) => Promise<void>,
) {
  const place = ledgerPlace(url);
  await (await createPostgresStore(place)).close();
  const workers = new Workers(place);
  const store = wrap(await openPostgresStore(place));
  const one = await workers.open(store);
  const other = await workers.open(await openPostgresStore(place));
  await act(other, 'THINK', {});
  store.interrupt = () => interrupt(other);
  const options = { actor: 'anna', role: 'ATTORNEY_ADMIN', case: CASE, ticket: 'T-1', target: 'shared_playbooks' };
  const { finished } = await one.promote({ ...options, record: { id: 'p-1', text: 'Ask first.' } });
  await finished;
  const entries = await workers.entries();
  await workers.close();
  const starts = entries.flatMap(({ type, body }) => (type === 'input' && body.kind === 'start_run' ? [body] : []));
  return { labels: starts.map(({ facts }) => facts.label.flags), attempts: store.attempts };
}

(server === null ? describe.skip : describe)('a promotion while its case reads other data at another worker', () => {
  const { url } = server ?? { url: '' };
  const readPhi = (other: Turnpike): Promise<void> => act(other, 'CALL_TOOL', { tool: 'mail.send', input: {} });

  test('S4-72: records the label of everything that was committed before it', async () => {
    const found = await promoteDuring(url, (store) => new WithInterruption(store), readPhi);
    expect(found).toEqual({ labels: [['contains_phi']], attempts: 2 });
  });

  test('S4-72: is not prepared again if the label of its case stays the same', async () => {
    const think = (other: Turnpike): Promise<void> => act(other, 'THINK', {});
    const found = await promoteDuring(url, (store) => new WithInterruption(store), think);
    expect(found).toEqual({ labels: [[]], attempts: 1 });
  });

  test('S4-72: the check finds a worker that takes the label from the log', async () => {
    const found = await promoteDuring(url, (store) => new WithLabelOfLog(store), readPhi);
    expect(found).toEqual({ labels: [[]], attempts: 1 });
  });
});
