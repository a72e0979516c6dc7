// The JSON Schema of turnpike.yaml, for editors.

import type { JsonObject } from '../../core/contract/json.js';
import { variableOf, type ConfigurationKey, type ConfigurationType } from './configuration-key.js';

/** The schema of a file with these keys; unknown keys are not valid. */
export function configurationSchema(keys: readonly ConfigurationKey[]): JsonObject {
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
