// What can be registered, what cannot, and that a definition cannot be changed.

import { expect, test } from '@jest/globals';
import Type, { type TObject } from 'typebox';
import { catalogueFrom, defineAction, defineTarget, defineTool } from '../../../src/runtime/effects/define-effects.js';

const closed = { additionalProperties: false } as const;
const none = Type.Object({}, closed);
const tool = (name: string, input: TObject = none) => defineTool({ name, input, output: none, run: () => ({}) });
const record = Type.Object({ id: Type.String() }, closed);
const action = (name: string, table: string) =>
  defineAction({ name, risk: 'write', args: none, needs: { write: { table, mode: 'append' } }, run: () => ({}) });
const shared = defineTarget({ name: 'playbooks', record, key: ['id'], plane: 'shared' });

test('registrations in another order give the same pin', () => {
  const [one, other] = [tool('a.one'), tool('b.other')];
  expect(catalogueFrom({ tools: [other, one] }).registrations).toEqual(
    catalogueFrom({ tools: [one, other] }).registrations,
  );
});

test.each([
  ['a tool with the name of a platform tool', { tools: [tool('sandbox.write_file')] }, 'sandbox.write_file'],
  [
    'a table with the name of a platform table',
    { targets: [defineTarget({ name: 'sandbox_files', record, key: ['id'] })] },
    'sandbox_files',
  ],
  ['a repeated name', { tools: [tool('a.one'), tool('a.one')] }, 'a.one is registered twice'],
  ['an open object', { tools: [tool('a.one', Type.Object({}))] }, 'must be closed'],
  ['an open object inside', { tools: [tool('a.one', Type.Object({ x: Type.Object({}) }, closed))] }, 'must be closed'],
  [
    'an unsupported keyword',
    { tools: [tool('a.one', Type.Object({ x: Type.String({ format: 'uuid' }) }, closed))] },
    'format',
  ],
  [
    'an invalid pattern',
    { tools: [tool('a.one', Type.Object({ x: Type.String({ pattern: '(' }) }, closed))] },
    'pattern',
  ],
  ['a key that is not a column', { targets: [defineTarget({ name: 'facts', record, key: ['other'] })] }, 'other'],
  ['S4-14: an action with the name of an export', { actions: [action('EXPORT_BUNDLE', 'bundles')] }, 'EXPORT_BUNDLE'],
  [
    'S4-85: an action that would write shared knowledge',
    { actions: [action('SHARE', 'playbooks')], targets: [shared] },
    'only promotions do',
  ],
  ['a name that no lane can list', { tools: [tool('../x')] }, 'is invalid'],
])('%s is rejected', (_what, registered, told) => {
  expect(() => catalogueFrom(registered)).toThrow(
    expect.objectContaining({ code: 'USAGE', message: expect.stringContaining(told) }),
  );
});

test('schemas that validate answers cannot be changed', () => {
  const { definition } = tool('a.one', Type.Object({ x: Type.String() }, closed));
  const properties = definition.input['properties'] as Record<string, unknown>;
  expect(() => Object.assign(definition, { idempotent: true })).toThrow(TypeError);
  expect(() => Object.assign(properties, { y: {} })).toThrow(TypeError);
});
