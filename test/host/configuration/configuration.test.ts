// turnpike.yaml and TURNPIKE_* variables: which source wins, and what is refused.

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { configurationKeys } from '../../../src/interfaces/cli/configuration/read-configuration.js';
import { COMMANDS } from '../../../src/interfaces/cli/turnpike-command.js';
import { toYaml } from '../../../src/core/policy/files/strict-yaml.js';
import { mergeConfiguration } from '../../../src/host/configuration/configuration.js';
import {
  keyText,
  variableOf,
  type ConfigurationKey,
  type ConfigurationType,
  type ConfigurationValue,
} from '../../../src/host/configuration/configuration-key.js';

const KEYS = configurationKeys(COMMANDS);
const PATH = '/etc/turnpike/turnpike.yaml';

const fileOf = (text: string) => ({ path: PATH, bytes: new TextEncoder().encode(text) });
const merge = (text: string | null, environment: Readonly<Record<string, string>> = {}) =>
  mergeConfiguration(KEYS, { file: text === null ? null : fileOf(text), environment });
const messageOf = (run: () => unknown): string => {
  try {
    run();
  } catch (error) {
    return (error as Error).message;
  }
  return 'did not throw';
};

/** A valid value of a type, and its text in a variable. */
function sampleOf(type: ConfigurationType, number: number): { value: ConfigurationValue; text: string } {
  switch (type.kind) {
    case 'text':
      return { value: `text-${number}`, text: `text-${number}` };
    case 'path':
      return { value: `/path/${number}`, text: `/path/${number}` };
    case 'list':
      return { value: [`a${number}`, 'b'], text: `a${number}, b` };
    case 'flag':
      return { value: number % 2 === 0, text: String(number % 2 === 0) };
    case 'integer':
      return { value: type.min + number, text: String(type.min + number) };
    case 'choice': {
      const value = type.choices[number % type.choices.length] ?? '';
      return { value, text: value };
    }
  }
}

const nest = ({ section, name }: ConfigurationKey, value: unknown): object =>
  section === null ? { [name]: value } : { [section]: { [name]: value } };

test('the keys of all options are unique, and so are their variables', () => {
  expect(new Set(KEYS.map(keyText)).size).toBe(KEYS.length);
  expect(new Set(KEYS.map(variableOf)).size).toBe(KEYS.length);
  expect(KEYS.map(keyText)).toEqual(expect.arrayContaining(['home', 'serve.port', 'mcp.address']));
});

describe.each(KEYS.map((key) => [keyText(key), key] as const))('%s', (name, key) => {
  const [one, other] = [sampleOf(key.type, 0), sampleOf(key.type, 1)];

  test('can be set in the file, and by a variable, which wins', () => {
    const file = toYaml(nest(key, one.value));
    expect(merge(file).values.get(name)).toEqual({
      value: one.value,
      origin: { kind: 'file', path: PATH, line: key.section === null ? 1 : 2 },
    });
    expect(merge(file, { [variableOf(key)]: other.text }).values.get(name)).toEqual({
      value: other.value,
      origin: { kind: 'environment', variable: variableOf(key) },
    });
  });

  test('refuses a value of another type, in the file and in a variable, and names both', () => {
    const wrong = key.type.kind === 'flag' || key.type.kind === 'integer' ? 'many' : { a: 1 };
    expect(messageOf(() => merge(toYaml(nest(key, wrong))))).toMatch(`"${name}" takes `);
    const bad = key.type.kind === 'list' ? 'a,,b' : key.type.kind === 'text' || key.type.kind === 'path' ? '' : 'many';
    expect(messageOf(() => merge(null, { [variableOf(key)]: bad }))).toMatch(`${variableOf(key)} takes `);
  });

  test('is not known under a misspelt name, and the message suggests the right one', () => {
    const misspelt = { ...key, name: `${key.name.slice(0, -1)}q` };
    const said = messageOf(() => merge(toYaml(nest(misspelt, one.value))));
    expect(said).toMatch(`${PATH}:`);
    expect(said).toMatch('is not a key');
    if (key.name.length > 3) {
      expect(said).toMatch('did you mean ');
      expect(messageOf(() => merge(null, { [variableOf(misspelt)]: 'x' }))).toMatch('did you mean TURNPIKE_');
    }
  });
});

test('a relative path of the file belongs to the folder of the file, one of a variable to the working directory', () => {
  expect(merge('home: data/home').values.get('home')?.value).toBe('/etc/turnpike/data/home');
  expect(merge(null, { TURNPIKE_HOME: 'data/home' }).values.get('home')?.value).toBe('data/home');
});

test('all problems of all sources are listed at once', () => {
  const said = messageOf(() =>
    merge('hom: a\nserve:\n  prot: 1\n', { TURNPIKE_SERVE_PORT: 'x', TURNPIKE_MCP_NO: '1' }),
  );
  expect(said.split('\n')).toEqual([
    'the configuration is invalid:',
    '/etc/turnpike/turnpike.yaml:1: "hom" is not a key; did you mean home?',
    '/etc/turnpike/turnpike.yaml:3: "serve.prot" is not a key; did you mean serve.port?',
    'TURNPIKE_MCP_NO names no key of mcp',
    'TURNPIKE_SERVE_PORT takes a whole number from 0 to 65535',
  ]);
});

test('variables that a container platform sets for a service named turnpike are ignored', () => {
  const environment = {
    TURNPIKE_SERVICE_HOST: '10.0.0.1',
    TURNPIKE_SERVICE_PORT: '7391',
    TURNPIKE_PORT: 'tcp://10.0.0.1:7391',
    TURNPIKE_PORT_7391_TCP_ADDR: '10.0.0.1',
  };
  expect(merge(null, environment)).toEqual({ file: null, values: new Map(), ignored: Object.keys(environment).sort() });
});

test('any bytes as a file give values or one error with the problems, and nothing else', () => {
  const pieces = fc.constantFrom(
    'home',
    ': ',
    'serve',
    '\n',
    '  ',
    '- ',
    '{',
    '}',
    '"',
    '1',
    '&a',
    '*a',
    '!!',
    '\u0000',
  );
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 30 }), (parts) => {
      const said = messageOf(() => merge(parts.join('')));
      expect(said === 'did not throw' || said.startsWith('the configuration is invalid:')).toBe(true);
    }),
    { numRuns: 300 },
  );
});
