// The published JSON Schemas, generated from the contract.

import { jsonSchemaOf } from '../../src/core/contract/core-schema-documents.js';
import { toYaml } from '../../src/core/policy/files/strict-yaml.js';
import { SCHEMA_DOCUMENTS } from '../../src/published/schema-documents.js';

const HEADER = '# Generated from src/core/contract: `npm run generate -- schemas`. Do not edit.\n';

/** The text of each file below `policies/contract/v1/schemas`, by its name. */
export const schemaFiles = (): ReadonlyMap<string, string> =>
  new Map(
    SCHEMA_DOCUMENTS.map((document) => [`${document.name}.schema.yaml`, HEADER + toYaml(jsonSchemaOf(document))]),
  );
