// Bags made to cause harm: they change while they are read, grow without end, or are damaged at random.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { AuditEvent } from '../../../src/core/contract/run/audit-event.js';
import { canonicalJson } from '../../../src/core/contract/json.js';
import { BagError } from '../../../src/core/errors.js';
import { ExportBagFindings } from '../../../src/features/exports/verify/bag-report.js';
import { EXPORT_BAG_LIMITS } from '../../../src/features/exports/bag-format.js';
import { verifyExportBag } from '../../../src/features/exports/verify/verify-export-bag.js';
import { sized } from '../../fixtures/campaign.js';
import { all, AUDIT, check, event, goodBundle, inMemory, lines, manifest, MANIFEST, RUNS } from './bundle-changes.js';
import { place, rulesOf, sealed, TREE, type Files } from './material.js';

const { at, remove } = place();
afterAll(remove);
let good: Files;
beforeAll(async () => {
  good = await goodBundle(at('good'));
});

describe('hostile bags', () => {
  test('a file that changes between two reads is found', async () => {
    for (const path of [MANIFEST, RUNS, AUDIT]) {
      const files = inMemory(good);
      const reads = new Map<string, number>();
      const read = (name: string) => {
        reads.set(name, (reads.get(name) ?? 0) + 1);
        const again = name === path && reads.get(name)! > 1;
        return again
          ? inMemory({ [name]: Buffer.from(good[name]!.toString().replace('v1', 'v2')) }).read(name)
          : files.read(name);
      };
      const report = await verifyExportBag({ ...files, read });
      expect(rulesOf(report)).toContain('bundle.file_changed');
      expect(report.valid).toBe(false);
    }
  });

  test('a file that cannot be read again, or is endless, is a finding', async () => {
    const files = inMemory(good);
    let reads = 0;
    const failing = async function* (path: string) {
      if (path === AUDIT && (reads += 1) > 1) throw new BagError({ code: 'BAG_HOSTILE', message: 'gone' });
      yield* files.read(path);
    };
    expect(rulesOf(await verifyExportBag({ ...files, read: failing }))).toEqual([
      'bundle.events_differ',
      'bundle.file_changed',
    ]);
    reads = 0;
    const endless = async function* (path: string) {
      yield* files.read(path);
      for (reads += path === RUNS ? 1 : 0; path === RUNS && reads > 1;)
        yield await Promise.resolve(Buffer.alloc(1_000, 32));
    };
    expect(rulesOf(await verifyExportBag({ ...files, read: endless }))).toContain('bundle.file_changed');
  });

  test('findings and their messages are bounded', async () => {
    const many = Object.fromEntries(Array.from({ length: 1_500 }, (_, i) => [`data/more/${i}`, Buffer.from('')]));
    const report = await check(sealed({ ...good, ...many }));
    expect(report.findings.length).toBe(EXPORT_BAG_LIMITS.findings_max);
    expect(report.findings_dropped).toBe(500);
    expect(report.valid).toBe(false);
    const long = await check(
      sealed(
        all(
          event('"tool_call"', (e) => (e.run_id = `run_${'x'.repeat(110)}`)),
          manifest(({ contents }) => (contents.artifacts[0]!.artifact_id = 'x'.repeat(120))),
        )(good),
      ),
    );
    for (const { message } of long.findings) expect(message.length).toBeLessThan(300);
  });

  test('an error beyond the limit of findings is counted as an error', () => {
    const findings = new ExportBagFindings(1);
    findings.add('bundle.reference_absent', null, 'a warning');
    findings.add('bundle.status', null, 'an error');
    expect([findings.errors, findings.dropped, findings.list().length]).toEqual([1, 1, 1]);
  });

  test('a run whose events have too many references is a finding', async () => {
    const refs = Array.from({ length: 64 }, (_, i) => ({
      artifact_id: `sha256:${i}`,
      artifact_kind: 'result',
      hash_sha256: String(i).padStart(64, '0'),
    }));
    const ids = Array.from({ length: 129 }, (_, i) => `${TREE}:${1_000 + i}`);
    const more = lines(AUDIT, (l) => {
      const last = JSON.parse(l.find((line) => line.includes('"tool_call"'))!) as AuditEvent;
      const events = ids.map((event_id, i) => ({ ...last, event_id, sequence: 1_000 + i, output_artifacts: refs }));
      return [...l, ...events.map(canonicalJson)];
    });
    const named = manifest((m) => m.audit!.audit_event_ids.push(...ids));
    expect(rulesOf(await check(sealed(all(more, named)(good))))).toEqual(['bundle.limit']);
  });

  test('random changes of bytes never throw; in a manifest they are always found, elsewhere nearly always', async () => {
    let seed = 7;
    const next = (below: number): number => (seed = (seed * 48_271) % 2_147_483_647) % below;
    const paths = [MANIFEST, RUNS, AUDIT, 'bag-info.txt'];
    const found: number[] = [];
    for (let i = 0; i < sized(60, 150); i += 1) {
      const path = paths[next(paths.length)]!;
      const content = Buffer.from(good[path]!);
      const from = next(content.length);
      const changed = [
        () => content.fill(next(256), from, from + 1 + next(4)),
        () => content.subarray(0, from),
        () => Buffer.concat([content.subarray(0, from), content]),
        () => Buffer.concat([content.subarray(0, from), content.subarray(from + 1 + next(20))]),
      ][next(4)]!();
      if (changed.equals(good[path]!)) continue;
      const report = await check(sealed({ ...good, [path]: Buffer.from(changed) }));
      // Only a person could notice some changes, such as another name of an actor; no rule can find them.
      if (path === MANIFEST) expect({ i, valid: report.valid }).toEqual({ i, valid: false });
      if (path === RUNS || path === AUDIT) found.push(report.valid ? 0 : 1);
    }
    expect(found.reduce((sum, one) => sum + one, 0)).toBeGreaterThan(found.length * 0.9);
  });
});
