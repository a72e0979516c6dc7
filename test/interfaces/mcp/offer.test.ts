// The tools that agents are offered: which ones, in which order, with which schemas.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv';
import type { JsonSchemaType } from '@modelcontextprotocol/sdk/validation/types.js';
import type { Tool } from '@modelcontextprotocol/sdk/types.js';
import Type from 'typebox';
import { Compile } from 'typebox/compile';
import { defineAction, defineTool } from '../../../src/runtime/effects/define-effects.js';
import { Bench } from '../../fixtures/bench.js';
import { CASE_AGENT, service, serviceEdit } from '../../fixtures/service.js';
import { call, clientOf, serviceOn } from './mcp-harness.js';

const closed = { additionalProperties: false } as const;
const none = Type.Object({}, closed);
const named = (name: string, input = none) =>
  defineTool({ name, summary: `${name}.`, input, output: none, run: () => ({}) });

/** Registered tools named like built-in tools or object members, or with arguments named like the added ones. */
const STRANGE = [
  named('task'),
  named('read_file'),
  named('hasOwnProperty'),
  named('mail.send', Type.Object({ reasoning: Type.Integer(), run_id: Type.Integer() }, closed)),
  named('not.listed'),
];
const archive = defineAction({
  name: 'ARCHIVE_NOTE',
  summary: 'Archive a note.',
  risk: 'write',
  args: Type.Object({ note: Type.String() }, closed),
  needs: { tool: 'archive' },
  run: () => ({}),
});

let bench: Bench;
let tools: readonly Tool[];

beforeAll(async () => {
  const made = service();
  const registered = { tools: [...made.tools, ...STRANGE], targets: made.targets, actions: [archive] };
  bench = await Bench.open({
    ...registered,
    edit: (name, text) =>
      serviceEdit(name, text)
        .replace(
          '[billing.charge, mail.send, slow.tool]',
          '[task, read_file, mail.send, hasOwnProperty, billing.charge]',
        )
        .replace('  - action: CALL_TOOL', '  - action: ARCHIVE_NOTE\n  - action: CALL_TOOL'),
  });
  const client = await clientOf(serviceOn(bench, { ...registered, agent: CASE_AGENT }));
  ({ tools } = await client.listTools());
  expect((await client.listTools()).tools).toEqual(tools);
  expect(await call(client, 'mail.send', { reasoning: 7, run_id: 8 })).toMatchObject({ isError: false });
  await client.close();
});
afterAll(() => bench.close());

const tool = (name: string): Tool => tools.find((each) => each.name === name)!;

test('lists built-in tools, then actions in the order of the policy, then tools of the lane; each name once', () => {
  expect(tools.map(({ name }) => name)).toEqual([
    'propose',
    'new_run',
    'task',
    'review',
    'verification',
    'think',
    'finish',
    'read_file',
    'write_file',
    'delete_file',
    'rename_file',
    'list_files',
    'create_directory',
    'archive_note',
    'call_tool',
    'write_record',
    'read_records',
    'billing.charge',
    'hasOwnProperty',
    'mail.send',
  ]);
  expect(tool('task').title).toBe('Task');
  expect(tool('read_file').title).toBe('READ_FILE');
});

test('lists only proposals and actions without sessions and in a lane without tools', async () => {
  const plain = await Bench.open();
  const client = await clientOf(serviceOn(plain, { sessions: null }));
  const { tools: offered } = await client.listTools();
  expect(offered.map(({ name }) => name)).toEqual([
    'propose',
    'new_run',
    'think',
    'finish',
    'read_file',
    'write_file',
    'delete_file',
    'rename_file',
    'list_files',
    'create_directory',
  ]);
  await expect(client.listTools({ cursor: 'more' })).rejects.toMatchObject({ code: -32_602 });
  await client.close();
  await plain.close();
});

describe('schemas', () => {
  const all = () => tools.flatMap(({ inputSchema, outputSchema }) => [inputSchema, outputSchema!]);

  test('are closed, self-contained objects of draft 2020-12', () => {
    for (const { inputSchema } of tools) {
      expect(inputSchema).toMatchObject({ type: 'object', additionalProperties: false });
    }
    for (const schema of all()) {
      expect(schema['$schema']).toBe('https://json-schema.org/draft/2020-12/schema');
      expect(JSON.stringify(schema)).not.toContain('$ref');
    }
  });

  test('mean the same to the validators of TypeBox and of the SDK', () => {
    const ajv = new AjvJsonSchemaValidator();
    const values = [
      {},
      { path: '/sandbox/a.md' },
      { path: '/sandbox/a.md', reasoning: 'Why.', run_id: 'run_000000000000000000001.1' },
      { path: '/etc/passwd' },
      { path: '/sandbox/a.md', more: 1 },
      { action: 'session-step', command: 'next', session_id: 's', last_step_result: { step_id: 's' } },
      { proposal_id: null, action: null, decision: 'DENY', result: null },
      { success: false, data: null, error: null },
    ];
    for (const schema of all()) {
      const [one, other] = [Compile(schema), ajv.getValidator(schema as JsonSchemaType)];
      for (const value of values) expect(one.Check(value)).toBe(other(value).valid);
    }
  });

  test('of an action contain its own arguments, a reason and a run', () => {
    const { inputSchema } = tool('write_file');
    expect(Object.keys(inputSchema.properties ?? {})).toEqual(['path', 'content', 'reasoning', 'run_id']);
    expect(inputSchema.required).toEqual(['path', 'content']);
  });

  test('never confuse an argument of the action with an added one', () => {
    expect(tool('mail.send').inputSchema.properties).toEqual({
      reasoning: { type: 'integer' },
      run_id: { type: 'integer' },
    });
  });
});

test('hints describe the effects of a call', () => {
  const hints = (name: string) => tool(name).annotations;
  const no = { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false };
  expect(hints('read_file')).toEqual({ ...no, readOnlyHint: true, idempotentHint: true });
  expect(hints('write_file')).toEqual({ ...no, destructiveHint: true, idempotentHint: true });
  expect(hints('delete_file')).toEqual({ ...no, destructiveHint: true });
  expect(hints('think')).toMatchObject({ readOnlyHint: true });
  expect(hints('finish')).toMatchObject({ readOnlyHint: false, destructiveHint: false });
  expect(hints('call_tool')).toEqual({ ...no, destructiveHint: true, openWorldHint: true });
  expect(hints('mail.send')).toEqual({ ...no, destructiveHint: true });
});
