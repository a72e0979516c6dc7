import { describe, expect, test } from '@jest/globals';
import Type from 'typebox';
import {
  createCatalogue,
  type RegisteredAction,
  ACTIONS,
  type ActionDefinition,
  type ActionName,
} from '../../../src/core/contract/policy/catalogue.js';
import { FAULTS } from '../../../src/core/contract/fault.js';
import type { JsonObject } from '../../../src/core/contract/json.js';
import { parse, validateArgs } from '../../../src/core/step/check-phases.js';
import { policyWithExtensions, testPolicy } from '../../fixtures/policy.js';

const policy = testPolicy();

/** Arguments as the scanner makes them, from a literal. */
function argsOf(literal: unknown): JsonObject {
  const parsed = parse(JSON.stringify(literal), testPolicy({ limits: { payload_bytes_max: 1e6 } }));
  if (!parsed.ok) throw new Error('not JSON');
  return parsed.value as JsonObject;
}

const check = (name: ActionName, literal: unknown, under = policy) =>
  validateArgs(ACTIONS[name], argsOf(literal), under);
const INVALID = { ok: false, fault: { code: 'INVALID_ARGS', cause: null } };

const VALID: Readonly<Record<ActionName, JsonObject>> = {
  THINK: {},
  FINISH: { response: 'done' },
  READ_FILE: { path: '/sandbox/a.txt' },
  LIST_FILES: { path: '/sandbox/' },
  WRITE_FILE: { path: '/sandbox/a.txt', content: 'x' },
  CREATE_DIRECTORY: { path: '/sandbox/docs' },
  DELETE_FILE: { path: '/sandbox/a.txt' },
  RENAME_FILE: { source: '/sandbox/a.txt', destination: '/sandbox/b.md' },
};
const NAMES = Object.keys(VALID) as ActionName[];
const withPath = NAMES.filter((name) => ACTIONS[name].paths.length > 0);

describe('the schema of each action', () => {
  test.each(NAMES)('S0-39 S1-03: %s accepts its arguments unchanged', (name) => {
    expect(check(name, VALID[name])).toEqual({ ok: true, value: VALID[name] });
  });

  test.each([
    ['S1-09 THINK', 'THINK', {}],
    ['S1-10 FINISH', 'FINISH', { response: 'string' }],
    ['S1-11 READ_FILE', 'READ_FILE', { path: 'string' }],
    ['S1-12 LIST_FILES', 'LIST_FILES', { path: 'string' }],
    ['S1-13 S1-14 WRITE_FILE', 'WRITE_FILE', { path: 'string', content: 'string' }],
    ['S1-15 CREATE_DIRECTORY', 'CREATE_DIRECTORY', { path: 'string' }],
    ['S1-16 DELETE_FILE', 'DELETE_FILE', { path: 'string' }],
    ['S1-17 S1-18 RENAME_FILE', 'RENAME_FILE', { source: 'string', destination: 'string' }],
  ] as const)(
    'S0-39 S0-45 %s: each argument is required and a string, and no other type is accepted',
    (_title, name, fields) => {
      for (const field of Object.keys(fields)) {
        expect(check(name, { ...VALID[name], [field]: undefined })).toMatchObject(INVALID);
        for (const value of [null, 1, true, {}, [], ['/sandbox/a.txt']]) {
          expect(check(name, { ...VALID[name], [field]: value })).toMatchObject(INVALID);
        }
      }
      expect(Object.keys(VALID[name]).sort()).toEqual(Object.keys(fields).sort());
    },
  );

  test.each(NAMES)('S0-40 S0-45 S1-01 S1-02: %s rejects an unknown argument', (name) => {
    for (const key of ['mode', 'recursive', 'encoding', 'Path', '', 'constructor', 'toString']) {
      for (const value of [null, false, '']) {
        expect(check(name, { ...VALID[name], [key]: value })).toMatchObject(INVALID);
      }
    }
  });

  test('S1-09: THINK accepts only an empty object', () => {
    expect(check('THINK', {})).toMatchObject({ ok: true });
    expect(check('THINK', { thought: 'x' })).toMatchObject(INVALID);
  });

  test('S1-10: the response of FINISH may be empty', () => {
    expect(check('FINISH', { response: '' })).toMatchObject({ ok: true });
  });

  test('S1-14: the content of WRITE_FILE has at least one character, and at most the bytes that policy permits', () => {
    const write = (content: string) => check('WRITE_FILE', { path: '/sandbox/a.txt', content });
    expect(write('')).toMatchObject(INVALID);
    expect(write('\n')).toMatchObject({ ok: true });
    expect(write('x'.repeat(49_152))).toMatchObject({ ok: true });
    expect(write('x'.repeat(49_153))).toMatchObject(INVALID);
    expect(write('é'.repeat(24_576))).toMatchObject({ ok: true });
    expect(write(`${'é'.repeat(24_576)}x`)).toMatchObject(INVALID);
    expect(write('x'.repeat(49_153))).toMatchObject({ fault: { rule_id: 'args.content_bytes_max' } });
  });

  test('a definition is compiled once, and two definitions with one name are distinguished', () => {
    const closed = { additionalProperties: false };
    const one: ActionDefinition = { ...ACTIONS.THINK, args: Type.Object({ a: Type.String() }, closed) };
    const other: ActionDefinition = { ...ACTIONS.THINK, args: Type.Object({ b: Type.String() }, closed) };
    for (let round = 0; round < 2; round++) {
      expect(validateArgs(one, argsOf({ a: '' }), policy)).toMatchObject({ ok: true });
      expect(validateArgs(other, argsOf({ a: '' }), policy)).toMatchObject(INVALID);
    }
  });

  test('a path argument whose schema does not require a string is rejected nevertheless', () => {
    const loose: ActionDefinition = { ...ACTIONS.READ_FILE, args: Type.Object({ path: Type.Unknown() }) };
    expect(validateArgs(loose, argsOf({ path: ['/sandbox/a'] }), policy)).toMatchObject({
      ok: false,
      fault: { code: 'INVALID_ARGS', rule_id: 'args.path_type' },
    });
  });
});

describe('the schemas that a service has registered', () => {
  const amount = (type: string) => ({
    type: 'object',
    properties: { amount: { type } },
    required: ['amount'],
    additionalProperties: false,
  });
  const code = { idempotent: false, timeout_ms: 1_000, result_bytes_max: 100, outside: false, confidentiality: [] };
  const registered = (name: string, args: RegisteredAction['args']): RegisteredAction => ({
    name,
    summary: 'An action.',
    risk: 'read',
    args,
    needs: { tool: 'billing.charge' },
    ...code,
  });
  const charge = { name: 'billing.charge', summary: 'Charge.', input: amount('integer'), output: amount('integer') };
  const servedWith = (args: RegisteredAction['args']) => {
    const actions = [registered('OTHER', amount('boolean')), registered('CHARGE', args)];
    return testPolicy({ catalogue: createCatalogue({ actions, tools: [{ ...charge, ...code }], targets: [] }) });
  };
  const checkNamed = (name: string, args: JsonObject, under: ReturnType<typeof testPolicy>) => {
    const definition = under.catalogue.action(name);
    if (definition === undefined) throw new Error(`no action ${name}`);
    return validateArgs(definition, argsOf(args), under);
  };

  test('S0-39: a registered action accepts what its own schema describes', () => {
    const served = servedWith(amount('integer'));
    expect(checkNamed('CHARGE', { amount: 1 }, served)).toEqual({ ok: true, value: { amount: 1 } });
    for (const args of [{}, { amount: true }, { amount: 1, more: 1 }]) {
      expect(checkNamed('CHARGE', args, served)).toMatchObject({ ok: false, fault: { rule_id: 'args.schema' } });
    }
    expect(checkNamed('OTHER', { amount: true }, served)).toMatchObject({ ok: true });
  });

  test('the schema of a registered action is read at each check, since it is data and never compiled', () => {
    const schema = amount('integer');
    const served = servedWith(schema);
    expect(checkNamed('CHARGE', { amount: 'x' }, served)).toMatchObject(INVALID);
    schema.properties.amount.type = 'string';
    expect(checkNamed('CHARGE', { amount: 'x' }, served)).toMatchObject({ ok: true });
  });

  test('the schema of any other action is compiled at its first check', () => {
    const schema = amount('integer');
    const definition: ActionDefinition = { ...ACTIONS.THINK, args: schema as unknown as ActionDefinition['args'] };
    const served = servedWith(amount('integer'));
    expect(validateArgs(definition, argsOf({ amount: 'x' }), served)).toMatchObject(INVALID);
    schema.properties.amount.type = 'string';
    expect(validateArgs(definition, argsOf({ amount: 'x' }), served)).toMatchObject(INVALID);
  });

  test('S0-39: the input of a tool that does not match the schema of the tool is rejected', () => {
    const served = servedWith(amount('integer'));
    const call = (input: JsonObject) => checkNamed('CALL_TOOL', { tool: 'billing.charge', input }, served);
    expect(call({ amount: 1 })).toMatchObject({ ok: true });
    expect(call({ amount: 'x' })).toMatchObject({ ok: false, fault: { rule_id: 'args.tool_input' } });
  });
});

describe('the paths of each action', () => {
  const withEachPath = (name: ActionName, path: unknown) =>
    ACTIONS[name].paths.map((field) => check(name, { ...VALID[name], [field]: path }));

  test.each(withPath)(
    'S0-41 S0-42 S0-45 S1-11 S1-12 S1-13 S1-15 S1-16 S1-17 S1-18: %s rejects a path that does not start with /sandbox/',
    (name) => {
      for (const path of [
        '/etc/passwd',
        'sandbox/a.txt',
        '/sandbox',
        '/sandbox_evil/x.txt',
        '/Sandbox/a.txt',
        '',
        '/',
        'file:///sandbox/a.txt',
      ]) {
        for (const checked of withEachPath(name, path)) expect(checked).toMatchObject(INVALID);
      }
    },
  );

  test.each(withPath)('S0-43 S0-45: %s rejects a path with an illegal character', (name) => {
    for (const path of [
      '/sandbox/a.txt\0.md',
      '/sandbox/a\n.txt',
      '/sandbox/a\u007f.txt',
      '/sandbox/a\\b.txt',
      '/sandbox/\u0085.txt',
    ]) {
      for (const checked of withEachPath(name, path)) expect(checked).toMatchObject(INVALID);
    }
  });

  test.each(withPath)(
    'S0-44 S0-45: %s rejects a path with a `..` segment, unless policy leaves that to AUTHORIZE',
    (name) => {
      const deferring = testPolicy({ knobs: { dotdot: 'defer' } });
      for (const field of ACTIONS[name].paths) {
        const args = { ...VALID[name], [field]: '/sandbox/a/../b.txt' };
        expect(check(name, args)).toMatchObject(INVALID);
        expect(check(name, args, deferring)).toEqual({ ok: true, value: args });
      }
    },
  );

  test.each(withPath)('%s accepts a trailing slash only if the path means a directory', (name) => {
    const takes = name === 'LIST_FILES' || name === 'CREATE_DIRECTORY';
    for (const checked of withEachPath(name, '/sandbox/a.txt/')) expect(checked.ok).toBe(takes);
    for (const checked of withEachPath(name, '/sandbox/')) expect(checked.ok).toBe(true);
  });

  test('S0-45: every rejection by this phase is a VALIDATION_ERROR', () => {
    expect(FAULTS.INVALID_ARGS).toMatchObject({ outcome: 'VALIDATION_ERROR', phase: 'VALIDATE_ARGS' });
  });
});

describe('extensions', () => {
  const early = testPolicy({ knobs: { extensions_stage: 'validate' } });

  test('are not judged here by default', () => {
    expect(check('WRITE_FILE', { path: '/sandbox/a.sh', content: 'x' })).toMatchObject({ ok: true });
  });

  test.each([
    ['S1-13', 'WRITE_FILE', { path: '/sandbox/a.sh', content: 'x' }],
    ['S1-16', 'DELETE_FILE', { path: '/sandbox/a.sh' }],
    ['S1-18', 'RENAME_FILE', { source: '/sandbox/a.txt', destination: '/sandbox/a.sh' }],
    ['S1-17', 'RENAME_FILE', { source: '/sandbox/a.sh', destination: '/sandbox/a.txt' }],
  ] as const)('%s: if policy requires it, %s is rejected here, as in 001', (_id, name, args) => {
    expect(check(name, args, early)).toMatchObject({ ok: false, fault: { rule_id: 'args.extension_not_allowed' } });
    expect(check(name, VALID[name], early)).toMatchObject({ ok: true });
  });

  test('are judged on the canonical path if policy requires it, and a path outside is left to AUTHORIZE', () => {
    const both = testPolicy({ knobs: { extensions_stage: 'validate', dotdot: 'defer' } });
    expect(check('DELETE_FILE', { path: '/sandbox/a.txt/../b.sh' }, both)).toMatchObject(INVALID);
    expect(check('DELETE_FILE', { path: '/sandbox/../etc/passwd' }, both)).toMatchObject({ ok: true });
  });

  test('do not restrict an action that policy does not list', () => {
    const unlisted = testPolicy({ actions: new Map(), knobs: { extensions_stage: 'validate' } });
    expect(check('DELETE_FILE', { path: '/sandbox/a.sh' }, unlisted)).toMatchObject({ ok: true });
  });

  test('do not restrict an argument that policy does not name', () => {
    const free = { ...policyWithExtensions('WRITE_FILE', null), knobs: early.knobs };
    expect(check('WRITE_FILE', { path: '/sandbox/a.sh', content: 'x' }, free)).toMatchObject({ ok: true });
    expect(check('READ_FILE', { path: '/sandbox/config.json' }, early)).toMatchObject({ ok: true });
  });
});
