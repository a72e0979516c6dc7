import { afterEach, describe, expect, test } from '@jest/globals';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Type from 'typebox';
import type { JsonObject } from '../../../src/core/contract/json.js';
import { jsonSchemaOf, SCHEMA_DOCUMENTS } from '../../../src/core/contract/core-schema-documents.js';
import type { AgentSchemas } from '../../../src/engine/ports/agent-exchange.js';
import { agentSchemas, instructionsFor } from '../../../src/features/models/agent-schemas.js';
import { defineAction, type Action } from '../../../src/runtime/effects/define-effects.js';
import { Bench, type BenchOptions } from '../../fixtures/bench.js';
import { CASE_AGENT, service, serviceEdit } from '../../fixtures/service.js';
import { proposal } from '../../fixtures/tree.js';

let bench: Bench | null = null;
afterEach(async () => {
  await bench?.close();
  bench = null;
});

async function offered(options: BenchOptions, agent: Parameters<Bench['turnpike']['startAgent']>[0]) {
  bench = await Bench.open(options);
  const run = await bench.turnpike.startAgent(agent);
  return { run, schemas: await agentSchemas(bench.turnpike.ledger, run) };
}

const names = (schemas: AgentSchemas): readonly string[] => schemas.actions.map(({ action }) => action);
const published = (name: string) => jsonSchemaOf(SCHEMA_DOCUMENTS.find((document) => document.name === name)!);
const LIMITS = { maxSteps: 20, maxDenials: 3, maxInvalid: 2, maxTokens: null };

const archive = (): Action =>
  defineAction({
    name: 'ARCHIVE_NOTE',
    summary: 'Archive a note.',
    risk: 'write',
    args: Type.Object({ id: Type.String() }, { additionalProperties: false }),
    needs: { tool: 'notes.archive' },
    run: () => ({}),
  });
const withArchive: NonNullable<BenchOptions['edit']> = (name, text) => {
  const edited = serviceEdit(name, text);
  return name === 'actions'
    ? edited.replace('  - action: CALL_TOOL', '  - action: ARCHIVE_NOTE\n  - action: CALL_TOOL')
    : edited;
};

test('S1-03 S1-05: the sandbox lane offers the eight actions with their published schemas and endings', async () => {
  const { schemas } = await offered({}, {});
  expect(names(schemas)).toEqual([
    ...['THINK', 'FINISH', 'READ_FILE', 'WRITE_FILE', 'DELETE_FILE', 'RENAME_FILE', 'LIST_FILES', 'CREATE_DIRECTORY'],
  ]);
  for (const { action, args } of schemas.actions) expect(args).toEqual(published(`args_${action.toLowerCase()}`));
  expect(schemas.actions.find(({ action }) => action === 'DELETE_FILE')?.extensions).toEqual({ path: ['.txt', '.md'] });
  expect(schemas.proposal['properties']).toMatchObject({ action: { enum: names(schemas) } });
  expect(schemas.response).toEqual(published('response_detailed'));
  expect(schemas.limits).toMatchObject({ payload_bytes_max: 65_536 });
});

test('S4-33: a lane of tools and records offers those that it lists and that are registered', async () => {
  const { tools, targets } = service();
  const { schemas } = await offered(
    { edit: withArchive, tools, targets, actions: [archive()] },
    { ...CASE_AGENT, exposure: 'decision' },
  );
  // The lane lists more tools, which are not registered, but not the one that ARCHIVE_NOTE needs.
  expect(names(schemas)).toEqual(['THINK', 'FINISH', 'CALL_TOOL', 'WRITE_RECORD', 'READ_RECORDS']);
  expect(schemas.tools).toEqual([
    {
      name: 'billing.charge',
      summary: 'Charge an amount.',
      input: {
        type: 'object',
        required: ['amount'],
        properties: { amount: { type: 'integer', minimum: 1 } },
        additionalProperties: false,
      },
    },
  ]);
  expect(schemas.targets.map(({ name, key, modes, readable }) => ({ name, key, modes, readable }))).toEqual([
    { name: 'facts', key: ['id'], modes: ['append'], readable: true },
    { name: 'entities', key: ['id'], modes: ['upsert'], readable: true },
    // S4-85: only promotions write data that all cases share.
    { name: 'shared_playbooks', key: ['id'], modes: [], readable: true },
  ]);
  expect(schemas.targets[0]?.record).toMatchObject({ properties: { text: { maxLength: 400 } } });
  expect(schemas.response).toEqual(published('response_decision'));
});

test('a registered action is offered with its own schema if the lane lists what it needs', async () => {
  const { tools, targets } = service();
  const edit: BenchOptions['edit'] = (name, text) =>
    withArchive(name, text).replace('tools: [billing.charge,', 'tools: [notes.archive,');
  const { schemas } = await offered({ edit, tools, targets, actions: [archive()] }, CASE_AGENT);
  expect(names(schemas)).toEqual(['THINK', 'FINISH', 'ARCHIVE_NOTE', 'WRITE_RECORD', 'READ_RECORDS']);
  expect(schemas.actions[2]?.args).toMatchObject({ properties: { id: { type: 'string' } } });
});

test('D1: the schemas come from the pinned policy of the tree, not from the present files', async () => {
  const { run, schemas } = await offered({}, {});
  writeFileSync(join(bench!.contract, 'policy/actions.yaml'), 'version: changed\n');
  expect(await agentSchemas(bench!.turnpike.ledger, run)).toEqual(schemas);
});

test('a run that was denied at its creation has no lane, and an unknown run has no schemas', async () => {
  bench = await Bench.open({ unpinned: true });
  const run = await bench.turnpike.startAgent();
  expect(names(await agentSchemas(bench.turnpike.ledger, run))).toEqual(['THINK', 'FINISH']);
  const missing = agentSchemas(bench.turnpike.ledger, { ...run, run_id: `${run.root_run_id}.7` });
  await expect(missing).rejects.toMatchObject({ code: 'RUN_UNKNOWN' });
});

describe('S4-33: offered actions are allowed, and others are denied', () => {
  const ARGS: Readonly<Record<string, JsonObject>> = {
    THINK: {},
    READ_FILE: { path: '/sandbox/a.md' },
    WRITE_FILE: { path: '/sandbox/b.md', content: 'b' },
    CREATE_DIRECTORY: { path: '/sandbox/d/' },
    LIST_FILES: { path: '/sandbox/' },
    DELETE_FILE: { path: '/sandbox/a.md' },
    RENAME_FILE: { source: '/sandbox/b.md', destination: '/sandbox/c.md' },
    CALL_TOOL: { tool: 'billing.charge', input: { amount: 1 } },
    WRITE_RECORD: { target: 'facts', mode: 'append', record: { id: 'f1', text: 'x' } },
    READ_RECORDS: { target: 'facts' },
    FINISH: { response: '' },
  };
  test.each([
    ['the lane of the sandbox', {}],
    ['a lane of tools and records', CASE_AGENT],
  ])('in %s', async (_lane, agent) => {
    const { tools, targets } = service();
    const { run, schemas } = await offered({ edit: serviceEdit, tools, targets }, agent);
    bench!.put('a.md', 'a');
    for (const [action, args] of Object.entries(ARGS)) {
      const response = await run.submit(JSON.stringify(proposal(action, args)));
      const outcome = names(schemas).includes(action) ? 'SUCCESS' : 'DENIED';
      expect({ action, response }).toMatchObject({ action, response: { outcome } });
    }
  });
});

describe('the instructions', () => {
  test('describe the form of a proposal, the offered actions, and the limits of the loop', async () => {
    const { schemas } = await offered({}, {});
    const text = instructionsFor(schemas, LIMITS);
    for (const member of Object.keys(schemas.proposal['properties'] as object)) expect(text).toContain(`  ${member} `);
    for (const action of names(schemas)) expect(text).toContain(`\n  ${action}: `);
    expect(text).toContain('at most 20 proposals. You are stopped after 3 denials, and after\n2 proposals in a row');
    expect(text).toContain('Its path ends in .txt or .md.');
    expect(text).toContain('/sandbox/');
    expect(instructionsFor(schemas, LIMITS)).toBe(text);
  });

  test('name tools and tables, and no sandbox folder for a lane without one', async () => {
    const { tools, targets } = service();
    const { schemas } = await offered({ edit: serviceEdit, tools, targets }, CASE_AGENT);
    const text = instructionsFor(schemas, LIMITS);
    expect(text).toContain('\n  billing.charge: Charge an amount.');
    expect(text).toContain('\n  facts: ');
    expect(text).not.toContain('/sandbox/');
  });
});
