// docs/reference compared with the code: the generated pages. TURNPIKE_WRITE_REFERENCE=1 regenerates them.

import { beforeAll, describe, expect, test } from '@jest/globals';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isConforming } from '../../src/core/contract/validators.js';
import { ROOT, textOf } from '../sources.js';
import { commandsPage } from './reference/commands-page.js';
import { configurationPage, configurationSchemaFile } from './reference/configuration-page.js';
import { httpApiPage } from './reference/http-api-page.js';
import { POLICY_FILES } from './reference/policy-files.js';
import { exampleAt, policyFieldsOf, policyFilesPage } from './reference/policy-files-page.js';

const PAGES = [
  ['docs/reference/policy-files.md', policyFilesPage],
  ['docs/reference/commands.md', commandsPage],
  ['docs/reference/http-api.md', httpApiPage],
  ['docs/reference/configuration.md', configurationPage],
  ['docs/reference/turnpike.schema.json', configurationSchemaFile],
] as const;

describe('the generated reference', () => {
  beforeAll(() => {
    if (process.env['TURNPIKE_WRITE_REFERENCE'] !== '1') return;
    for (const [path, page] of PAGES) {
      mkdirSync(dirname(join(ROOT, path)), { recursive: true });
      writeFileSync(join(ROOT, path), page());
    }
  });

  // If this fails: TURNPIKE_WRITE_REFERENCE=1 regenerates the page.
  test.each(PAGES)('%s is what the code generates', (path, page) => {
    expect(textOf(path).split('\n')).toEqual(page().split('\n'));
  });
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
