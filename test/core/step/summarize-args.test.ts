import { describe, expect, test } from '@jest/globals';
import Type from 'typebox';
import { Compile } from 'typebox/compile';
import { ACTIONS, type ActionDefinition } from '../../../src/core/contract/policy/catalogue.js';
import { type Json, canonicalJson } from '../../../src/core/contract/json.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import { ArgsSummary } from '../../../src/core/contract/run/step-trace.js';
import { summarizeArgs } from '../../../src/core/step/check-phases.js';

const summarySchema = Compile(ArgsSummary);
const digest = (text: string) => ({ sha256: sha256(text), bytes: Buffer.byteLength(text) });

describe('args_summary', () => {
  test.each<readonly [keyof typeof ACTIONS, Json, unknown]>([
    ['THINK', {}, {}],
    ['FINISH', { response: 'sécret' }, { response: digest('sécret') }],
    ['READ_FILE', { path: '/sandbox/a.txt' }, { path: '/sandbox/a.txt' }],
    ['LIST_FILES', { path: '/sandbox/' }, { path: '/sandbox/' }],
    ['WRITE_FILE', { path: '/sandbox/a', content: 'sécret' }, { path: '/sandbox/a', content: digest('sécret') }],
    ['CREATE_DIRECTORY', { path: '/sandbox/d' }, { path: '/sandbox/d' }],
    ['DELETE_FILE', { path: '/sandbox/a.txt' }, { path: '/sandbox/a.txt' }],
    [
      'RENAME_FILE',
      { source: '/sandbox/a', destination: '/sandbox/b' },
      { source: '/sandbox/a', destination: '/sandbox/b' },
    ],
  ])('S0-61: for %s, has paths as they are, and only hash and length of content', (name, args, expected) => {
    const summary = summarizeArgs(ACTIONS[name], args);
    expect(summary).toEqual(expected);
    expect(summarySchema.Check(summary)).toBe(true);
    expect(JSON.stringify(summary)).not.toContain('sécret');
  });

  test('S0-61: has only the names of arguments that were not validated', () => {
    expect(summarizeArgs(null, { path: 'secret', content: 'secret' })).toEqual({ keys: ['path', 'content'] });
    expect(summarizeArgs(null, {})).toEqual({ keys: [] });
  });

  test('has at most 16 names of at most 64 characters', () => {
    const args = Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`${'k'.repeat(62)}${index + 10}`, 1]));
    expect(summarizeArgs(null, args)).toEqual({ keys: Object.keys(args).slice(0, 16) });
    expect(summarizeArgs(null, { ['k'.repeat(65)]: 1 })).toEqual({ keys: ['k'.repeat(64)] });
  });

  test('truncates no name in the middle of a character, so that the trace can be written', () => {
    const summary = summarizeArgs(null, { [`${'k'.repeat(63)}😀`]: 1 });
    expect(summary).toEqual({ keys: ['k'.repeat(63)] });
    expect(() => canonicalJson(summary)).not.toThrow();
  });

  test.each([undefined, null, 'text', 7, true, []])('is absent for arguments that are not an object: %j', (args) => {
    expect(summarizeArgs(null, args)).toBeNull();
    expect(summarizeArgs(ACTIONS.THINK, args)).toBeNull();
  });

  test('has the hash of the canonical text for an argument that is not a string, and omits unknown arguments', () => {
    const fields = { path: Type.String(), options: Type.Unknown(), note: Type.Optional(Type.String()) };
    const definition: ActionDefinition = { ...ACTIONS.READ_FILE, args: Type.Object(fields) };
    const args = { path: '/sandbox/a', options: { b: 1, a: [2] }, unknown: 'secret' };
    expect(summarizeArgs(definition, args)).toEqual({ path: '/sandbox/a', options: digest('{"a":[2],"b":1}') });
  });
});
