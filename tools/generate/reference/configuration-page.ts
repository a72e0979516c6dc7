// docs/reference/configuration.md and turnpike.schema.json: every key of turnpike.yaml.

import { configurationKeys } from '../../../src/interfaces/cli/configuration/read-configuration.js';
import { COMMANDS } from '../../../src/interfaces/cli/turnpike-command.js';
import {
  describeType,
  keyText,
  variableOf,
  type ConfigurationKey,
} from '../../../src/host/configuration/configuration-key.js';
import { configurationSchema } from '../../../src/host/configuration/configuration-schema.js';
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
