// Every rule that a bundle can break: real bundles, changed in one thing, and made good bags again.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { BAG_RULES } from '../../../../src/bagit/bag-finding.js';
import { EXPORT_BAG_RULES } from '../../../../src/runtime/export/verify/bag-report.js';
import { AUDIT, bytes, check, goodBundle, info, MANIFEST, rules, RUNS, type BundleCase } from '../bundle-changes.js';
import { CONTENT_CASES } from '../content-cases.js';
import { EVENT_CASES } from '../event-cases.js';
import { MANIFEST_CASES } from '../manifest-cases.js';
import { place, RULES_OF_PROOFS, sealed, type Files } from '../material.js';
import { RUN_CASES } from '../run-cases.js';

const { at, remove } = place();
afterAll(remove);
let good: Files;
beforeAll(async () => {
  good = await goodBundle(at('good'));
});

const CASES: readonly BundleCase[] = [...CONTENT_CASES, ...MANIFEST_CASES, ...RUN_CASES, ...EVENT_CASES];

describe('S4-77: a bundle that is a good bag is looked at further', () => {
  test.each(CASES)('%s', async (_title, change, broken) => {
    const report = await check(sealed(change(good)));
    expect(rules(report)).toEqual([...broken].sort());
    expect(report.valid).toBe(broken.every((rule) => EXPORT_BAG_RULES[rule] === 'warning'));
    expect(report.findings.filter(({ rule_id }) => rule_id in BAG_RULES)).toEqual([]);
  });
});

describe('RFC 8493: first of all it is a bag', () => {
  test.each(['data/artifacts', AUDIT, RUNS, MANIFEST, 'data/policies', 'data/machines', 'bag-info.txt'])(
    'a byte of %s that was changed is found by its digests',
    async (start) => {
      const path = Object.keys(good).find((name) => name.startsWith(start))!;
      const content = Buffer.from(good[path]!);
      content[3] = content[3]! ^ 1;
      const report = await check({ ...good, [path]: content });
      expect(report.valid).toBe(false);
      expect(rules(report)).toEqual(
        expect.arrayContaining([path === 'bag-info.txt' ? 'tag.digest_mismatch' : 'payload.digest_mismatch']),
      );
    },
  );

  test('a bag that does not say that it is a bundle is judged as a bag only', async () => {
    const plain = sealed(info('Turnpike-Bundle: 1\n', '')(bytes('data/more.txt', 'x')(good)));
    expect(await check(plain)).toMatchObject({ valid: true, findings: [], bundle: null });
    const empty = { 'bagit.txt': good['bagit.txt']!, 'data/a': Buffer.from('a') };
    expect(await check(empty)).toMatchObject({ valid: false, bundle: null });
  });

  test('a bundle without SHA-256 has nothing that vouches for it', async () => {
    const weak = Object.fromEntries(
      Object.entries(sealed(good)).filter(([path]) => !path.endsWith('manifest-sha256.txt')),
    );
    const report = await check(weak);
    expect(rules(report)).toEqual(expect.arrayContaining(['bundle.file_missing', 'bundle.artifact_differs']));
    expect(report.valid).toBe(false);
  });
});

test('every rule is broken by some case', () => {
  const broken = new Set<string>([...CASES.flatMap(([, , found]) => found), 'bundle.file_changed', ...RULES_OF_PROOFS]);
  expect([...broken].sort()).toEqual(Object.keys(EXPORT_BAG_RULES).sort());
});
