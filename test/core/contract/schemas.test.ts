// The published JSON Schemas are those of the contract. After a deliberate change of the contract,
// `npm run generate -- schemas` writes them.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { ACTION_NAMES } from '../../../src/core/contract/policy/catalogue.js';
import { ENTRY_TYPES } from '../../fixtures/features.js';
import { jsonSchemaOf } from '../../../src/core/contract/core-schema-documents.js';
import { SCHEMA_DOCUMENTS } from '../../../src/published/schema-documents.js';
import { readStrictYaml } from '../../../src/core/policy/files/strict-yaml.js';
import { schemaFiles } from '../../../tools/generate/schemas.js';
import { CONTRACT_DIR } from '../../fixtures/shipped-policy.js';

const SCHEMAS = join(CONTRACT_DIR, 'schemas');
const generated = schemaFiles();

test.each([...generated.keys()])('S4-02 the published schema equals the contract, byte for byte: %s', (file) => {
  expect(readFileSync(join(SCHEMAS, file), 'utf8')).toBe(generated.get(file));
});

test('S4-02 there are no other published schemas', () => {
  expect(readdirSync(SCHEMAS).toSorted()).toEqual([...generated.keys()].toSorted());
});

test('S4-02 they include the documents that the run lifecycle names', () => {
  const names = SCHEMA_DOCUMENTS.map(({ name }) => name);
  for (const name of ['run_record', 'audit_event', 'artifact_ref', 'export_bundle', 'lanes', 'roles']) {
    expect(names).toContain(name);
  }
});

test('every action and every ledger entry has a schema, and names are unique', () => {
  const names = SCHEMA_DOCUMENTS.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(ACTION_NAMES.map((action) => `args_${action.toLowerCase()}`)));
  expect(names).toEqual(expect.arrayContaining([...ENTRY_TYPES]));
  expect(new Set(names).size).toBe(names.length);
});

test.each(SCHEMA_DOCUMENTS)('$name has a draft, an id and a title, and is plain JSON', (document) => {
  const schema = jsonSchemaOf(document);
  expect(schema['$schema']).toBe('https://json-schema.org/draft/2020-12/schema');
  expect(schema['$id']).toBe(`urn:turnpike:contract:v1:${document.name}`);
  expect(schema['title']).toBe(document.title);
  expect(JSON.parse(JSON.stringify(schema))).toEqual(schema);
});

test.each([...generated])('the YAML of %s reads back as the schema', (file, text) => {
  const { document, problems } = readStrictYaml(new TextEncoder().encode(text), {
    bytes_max: 1 << 20,
    parts_max: 100_000,
  });
  expect(problems).toEqual([]);
  const source = SCHEMA_DOCUMENTS.find(({ name }) => `${name}.schema.yaml` === file)!;
  expect(JSON.parse(JSON.stringify(document!.data))).toEqual(jsonSchemaOf(source));
});

test('S1-02 no object in a published schema accepts unknown members, except these', () => {
  const open = SCHEMA_DOCUMENTS.flatMap((document) => openObjects(jsonSchemaOf(document), document.name));
  expect(open.toSorted()).toEqual([
    // The registered schema of a tool or target decides this one.
    'args_call_tool/properties/input',
    'args_read_records/properties/after',
    'args_read_records/properties/where',
    'args_write_record/properties/record',
    // `args` has a phase and a schema of its own; so have the results of actions.
    'proposal/properties/args',
    'response_decision/properties/result/anyOf/0',
    'response_detailed/properties/result/anyOf/0',
    'response_explained/properties/result/anyOf/0',
  ]);
});

test('S1-02 maps restrict their keys', () => {
  const maps = SCHEMA_DOCUMENTS.flatMap((document) => keyPatterns(jsonSchemaOf(document), document.name));
  // `.` does not match a line feed, so a map of `^.*$` does not restrict the value under such a key. The policy loader
  // rejects extensions under any name that is not a path argument.
  expect(maps).toEqual([
    'run_record/properties/tool_versions ^.*$',
    'run_record/properties/metadata ^.*$',
    'export_bundle/properties/contents/properties/filters ^.*$',
    'export_bundle/properties/redaction ^.*$',
    'input/anyOf/0/properties/scope ^.*$',
    'input/anyOf/16/properties/scope ^.*$',
    'run_created/properties/scope ^.*$',
    'step_trace/properties/args_summary/anyOf/0/anyOf/0 ^.*$',
    'lanes/properties/lanes/items/properties/content_checks/properties/names ^[A-Za-z][A-Za-z0-9_.]*$',
    'actions/properties/actions/items/properties/extensions ^[a-z_]{1,40}$',
    'identities/properties/issuers/items/properties/mappings/items/properties/claims ^[!-~]{1,200}$',
    'session_event/properties/detail ^.*$',
  ]);
});

interface Node {
  readonly type?: unknown;
  readonly additionalProperties?: unknown;
  readonly patternProperties?: Readonly<Record<string, unknown>>;
}

/** Every place in a schema for which `look` reports something. */
function walk(schema: unknown, at: string, look: (node: Node, at: string) => readonly string[]): string[] {
  if (typeof schema !== 'object' || schema === null) return [];
  const inside = Object.entries(schema).flatMap(([key, member]) => walk(member, `${at}/${key}`, look));
  return [...look(schema, at), ...inside];
}

const openObjects = (schema: unknown, name: string): string[] =>
  walk(schema, name, ({ type, additionalProperties, patternProperties }, at) =>
    type === 'object' && additionalProperties !== false && patternProperties === undefined ? [at] : [],
  );

const keyPatterns = (schema: unknown, name: string): string[] =>
  walk(schema, name, ({ patternProperties = {} }, at) => Object.keys(patternProperties).map((key) => `${at} ${key}`));
