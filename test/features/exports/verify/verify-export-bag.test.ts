// Every rule that a bag can violate: real bags with one change, made valid BagIt bags again.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { BAG_RULES } from '../../../../src/features/exports/bagit/bag-finding.js';
import { EXPORT_BAG_RULES } from '../../../../src/features/exports/verify/bag-report.js';
import { AUDIT, bytes, check, goodBundle, info, MANIFEST, RUNS } from '../bundle-changes.js';
import { BUNDLE_CASES } from '../bundle-cases.js';
import { place, rulesOf, RULES_OF_PROOFS, sealed, type Files } from '../material.js';

const { at, remove } = place();
afterAll(remove);
let good: Files;
beforeAll(async () => {
  good = await goodBundle(at('good'));
});

describe('S4-77: the content of a valid BagIt bag is verified', () => {
  test.each(BUNDLE_CASES)('%s', async (_title, change, broken) => {
    const report = await check(sealed(change(good)));
    expect(rulesOf(report)).toEqual([...broken].sort());
    expect(report.valid).toBe(broken.every((rule) => EXPORT_BAG_RULES[rule] === 'warning'));
    expect(report.findings.filter(({ rule_id }) => rule_id in BAG_RULES)).toEqual([]);
  });
});

describe('RFC 8493: it is verified as a bag first', () => {
  test.each(['data/artifacts', AUDIT, RUNS, MANIFEST, 'data/policies', 'data/machines', 'bag-info.txt'])(
    'a changed byte of %s is found by its digests',
    async (start) => {
      const path = Object.keys(good).find((name) => name.startsWith(start))!;
      const content = Buffer.from(good[path]!);
      content[3] = content[3]! ^ 1;
      const report = await check({ ...good, [path]: content });
      expect(report.valid).toBe(false);
      expect(rulesOf(report)).toEqual(
        expect.arrayContaining([path === 'bag-info.txt' ? 'tag.digest_mismatch' : 'payload.digest_mismatch']),
      );
    },
  );

  test('a bag that does not declare itself as one of Turnpike is verified only as a bag', async () => {
    const plain = sealed(info('Turnpike-Bag-Format: 1\n', '')(bytes('data/more.txt', 'x')(good)));
    expect(await check(plain)).toMatchObject({ valid: true, findings: [], bundle: null });
    const empty = { 'bagit.txt': good['bagit.txt']!, 'data/a': Buffer.from('a') };
    expect(await check(empty)).toMatchObject({ valid: false, bundle: null });
  });

  test('a bag without SHA-256 is rejected', async () => {
    const weak = Object.fromEntries(
      Object.entries(sealed(good)).filter(([path]) => !path.endsWith('manifest-sha256.txt')),
    );
    const report = await check(weak);
    expect(rulesOf(report)).toEqual(expect.arrayContaining(['bundle.file_missing', 'bundle.artifact_differs']));
    expect(report.valid).toBe(false);
  });
});

test('every rule is violated by some case', () => {
  const violated = new Set<string>([
    ...BUNDLE_CASES.flatMap(([, , found]) => found),
    'bundle.file_changed',
    ...RULES_OF_PROOFS,
  ]);
  expect([...violated].sort()).toEqual(Object.keys(EXPORT_BAG_RULES).sort());
});
