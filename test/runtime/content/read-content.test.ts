// A reader of content: the ledger records the reading before the reader gets the content.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { sha256 } from '../../../src/core/contract/hash.js';
import { CONTENT_READ } from '../../../src/core/contract/run/run-context.js';
import type { Entry } from '../../../src/core/contract/run/entry.js';
import { Bench } from '../../fixtures/bench.js';
import { proposal } from '../../fixtures/tree.js';

const raw = JSON.stringify(proposal('WRITE_FILE', { path: '/sandbox/a.txt', content: 'in confidence' }));
const AUDITOR = { actor: 'an auditor', role: 'auditor' };
let bench: Bench;

beforeEach(async () => {
  bench = await Bench.open();
});
afterEach(() => bench.close());

/** An agent that wrote a file. @returns its run, and the log index of its payload */
async function worked(): Promise<{ readonly run_id: string; readonly at: number }> {
  const run = await bench.turnpike.startAgent();
  await run.submit(raw);
  await run.end();
  const at = (await bench.entries()).findIndex((entry) => entry.type === 'input' && entry.body.kind === 'proposal');
  return { run_id: run.run_id, at };
}

const reads = (entries: readonly Entry[]) =>
  entries.flatMap((entry) =>
    entry.type === 'audit_event' && entry.body.outcome_reason === CONTENT_READ ? [entry.body] : [],
  );

describe('reads are audited', () => {
  test('a reader gets the bytes, and the ledger records the case, the reader and the content', async () => {
    const { run_id, at } = await worked();
    const record = await bench.turnpike.ledger.run(run_id);
    const hash = sha256(raw);
    const bytes = await bench.turnpike.readContent({ log_index: at, sha256: hash, ...AUDITOR });
    expect(Buffer.from(bytes ?? []).toString()).toBe(raw);
    expect(reads(await bench.entries())).toEqual([
      expect.objectContaining({
        run_id,
        actor: { actor_type: 'human', actor_id: 'an auditor' },
        role_id: 'auditor',
        target: expect.objectContaining({
          name: 'raw_payload',
          artifact_ref: { artifact_id: `sha256:${hash}`, artifact_kind: 'raw_payload', hash_sha256: hash },
        }),
      }),
    ]);
    // The run has ended and is unchanged: only its audit has grown.
    const { audit, ...rest } = (await bench.turnpike.ledger.run(run_id)) ?? { audit: { audit_event_ids: [] } };
    expect(rest).toEqual({ ...record, audit: undefined });
    expect(audit.audit_event_ids).toHaveLength((record?.audit.audit_event_ids.length ?? 0) + 1);
  });

  test('a request for missing content gets null and records nothing', async () => {
    const { at } = await worked();
    const size = (await bench.entries()).length;
    const other = { ...AUDITOR, sha256: sha256('something else') };
    expect(await bench.turnpike.readContent({ ...other, log_index: at })).toBeNull();
    expect(await bench.turnpike.readContent({ ...AUDITOR, sha256: sha256(raw), log_index: size })).toBeNull();
    expect(await bench.turnpike.readContent({ ...AUDITOR, sha256: sha256(raw), log_index: at + 1 })).toBeNull();
    expect(await bench.entries()).toHaveLength(size);
  });

  test('policies and machines belong to the platform: every reader of the ledger may read them', async () => {
    await worked();
    const [first] = await bench.entries();
    const [policy] = await bench.turnpike.ledger.artifactsOf(first!);
    if (policy === undefined || !('bytes' in policy)) throw new Error('no policy');
    const size = (await bench.entries()).length;
    const given = await bench.turnpike.readContent({ log_index: 0, sha256: sha256(policy.bytes), ...AUDITOR });
    expect(given).toEqual(policy.bytes);
    expect(await bench.entries()).toHaveLength(size);
  });

  test('content of an erased case is gone, and nothing is recorded', async () => {
    const { at } = await worked();
    await bench.turnpike.erase({ case: 'case-local', actor: 'a person' });
    const size = (await bench.entries()).length;
    expect(await bench.turnpike.readContent({ log_index: at, sha256: sha256(raw), ...AUDITOR })).toBeNull();
    expect(await bench.entries()).toHaveLength(size);
  });
});
