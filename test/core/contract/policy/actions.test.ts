import { describe, expect, test } from '@jest/globals';
import { ACTION_NAMES, ACTIONS, findAction } from '../../../../src/core/contract/policy/catalogue.js';

// Name, risk, path arguments, tool, writes; as literals.
const CATALOGUE = [
  ['THINK', 'none', [], null, false],
  ['FINISH', 'none', [], null, false],
  ['READ_FILE', 'read', ['path'], 'sandbox.read_file', false],
  ['LIST_FILES', 'read', ['path'], 'sandbox.list_files', false],
  ['WRITE_FILE', 'write', ['path'], 'sandbox.write_file', true],
  ['CREATE_DIRECTORY', 'write', ['path'], 'sandbox.create_directory', true],
  ['DELETE_FILE', 'destructive', ['path'], 'sandbox.delete_file', true],
  ['RENAME_FILE', 'destructive', ['source', 'destination'], 'sandbox.rename_file', true],
] as const;

test('S0-36 the catalogue has the eight actions', () => {
  expect(ACTION_NAMES).toEqual(CATALOGUE.map(([name]) => name));
});

describe.each(CATALOGUE)('%s', (name, risk, paths, tool, writes) => {
  const definition = ACTIONS[name];

  test(`S1-19 is of risk class ${risk}`, () => {
    expect(definition.risk).toBe(risk);
  });

  test('S4-33 requires a tool exactly if it has an effect, and a write exactly if it changes something', () => {
    expect(definition.tool).toBe(tool);
    expect(definition.write).toEqual(writes ? { table: 'sandbox_files', mode: 'upsert' } : null);
  });

  test('lists its path arguments', () => {
    const declared = Object.entries(definition.args.properties as Record<string, { pattern?: string }>);
    expect(declared.filter(([, { pattern }]) => pattern === '^/sandbox/').map(([argument]) => argument)).toEqual(paths);
    expect(definition.paths).toEqual(paths);
  });
});

test('S0-37 an action is found by its exact name only', () => {
  expect(findAction('THINK')).toBe(ACTIONS.THINK);
  for (const name of ['think', 'THINK ', '', 'EXECUTE_SHELL', 'constructor', '__proto__', 'toString']) {
    expect(findAction(name)).toBeUndefined();
  }
});
