// docs/reference compared with the code: the generated pages.

import { describe, expect, test } from '@jest/globals';
import { isConforming } from '../../src/core/contract/validators.js';
import { REFERENCE } from '../../tools/generate/generated-files.js';
import { POLICY_FILES } from '../../tools/generate/reference/policy-files.js';
import { exampleAt, policyFieldsOf } from '../../tools/generate/reference/policy-files-page.js';
import { textOf } from '../sources.js';

// If this fails: `npm run generate -- reference` writes the pages anew.
test.each([...REFERENCE])('%s is what the code generates', (path, page) => {
  expect(textOf(path).split('\n')).toEqual(page().split('\n'));
});

describe.each(POLICY_FILES.map((reference) => [reference.file, reference] as const))('%s', (_file, reference) => {
  const fields = policyFieldsOf(reference);

  test('has a default for every optional field, and for no other', () => {
    const optional = fields.filter(({ required }) => required === false).map(({ path }) => path);
    expect(Object.keys(reference.defaults).sort()).toEqual([...optional].sort());
  });

  test('has a valid example with a value for every field', () => {
    expect(isConforming(reference.schema, reference.example)).toBe(true);
    expect(fields.filter(({ path }) => exampleAt(reference.example, path) === undefined)).toEqual([]);
  });
});
