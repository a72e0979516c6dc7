// docs/reference/configuration.md and turnpike.schema.json: every key of turnpike.yaml.

import type { JsonObject } from '../../../src/core/contract/json.js';
import { configurationKeys } from '../../../src/interfaces/cli/configuration/read-configuration.js';
import { COMMANDS } from '../../../src/interfaces/cli/turnpike-command.js';
import {
  describeType,
  keyText,
  variableOf,
  type ConfigurationKey,
  type ConfigurationType,
} from '../../../src/host/configuration/configuration-key.js';
import { code, markdownTable } from './schema-fields.js';

const KEYS = configurationKeys(COMMANDS);

export const configurationSchemaFile = (): string => `${JSON.stringify(configurationSchema(KEYS), null, 2)}\n`;

export function configurationPage(): string {
  const sections = [...new Set(KEYS.map(({ section }) => section))];
  return [
    '# Configuration',
    'Every key of `turnpike.yaml` and every variable. A test generates this page and the\n' +
      '[JSON Schema](turnpike.schema.json) from the options themselves.',
    '[The guide](../how-to/configure-a-service.md) says which source wins.',
    ...sections.flatMap((section) => [
      section === null ? '## Top level' : `## ${code(section)}`,
      markdownTable(['Key', 'Variable', 'Value', 'Meaning'], KEYS.filter((key) => key.section === section).map(rowOf)),
    ]),
    '',
  ]
    .join('\n\n')
    .replace(/\n+$/, '\n');
}

const rowOf = (key: ConfigurationKey): string[] => [
  code(keyText(key)),
  code(variableOf(key)),
  describeType(key.type),
  key.help,
];

/** The schema of a file with these keys; unknown keys are not valid. */
function configurationSchema(keys: readonly ConfigurationKey[]): JsonObject {
  const sections = [...new Set(keys.flatMap(({ section }) => section ?? []))];
  const top = keys.filter(({ section }) => section === null);
  const members = sections.map((name) => [name, objectOf(keys.filter(({ section }) => section === name))] as const);
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: 'urn:turnpike:configuration',
    title: 'turnpike.yaml',
    ...objectOf(top, Object.fromEntries(members)),
  };
}

const objectOf = (keys: readonly ConfigurationKey[], sections: JsonObject = {}): JsonObject => ({
  type: 'object',
  additionalProperties: false,
  properties: { ...Object.fromEntries(keys.map((key) => [key.name, schemaOf(key)])), ...sections },
});

const schemaOf = (key: ConfigurationKey): JsonObject => ({
  description: `${key.help} (variable ${variableOf(key)})`,
  ...typeSchema(key.type),
});

function typeSchema(type: ConfigurationType): JsonObject {
  switch (type.kind) {
    case 'text':
    case 'path':
      return { type: 'string', minLength: 1, maxLength: 4096 };
    case 'list':
      return { type: 'array', maxItems: 256, items: { type: 'string', minLength: 1, maxLength: 4096 } };
    case 'flag':
      return { type: 'boolean' };
    case 'integer':
      return { type: 'integer', minimum: type.min, maximum: type.max };
    case 'choice':
      return { enum: [...type.choices] };
  }
}
