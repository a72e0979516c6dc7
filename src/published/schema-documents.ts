// All documents that are published as JSON Schema (policies/contract/v1/schemas), of core and of features. Those files
// are generated from this list; a test detects drift.

import {
  inputDocument,
  SCHEMA_DOCUMENTS as CORE_DOCUMENTS,
  type SchemaDocument,
} from '../core/contract/core-schema-documents.js';
import { FEATURE_DOCUMENTS, FEATURE_INPUTS } from '../features/feature-documents.js';

export const SCHEMA_DOCUMENTS: readonly SchemaDocument[] = [
  ...CORE_DOCUMENTS.map((document) => (document.name === 'input' ? inputDocument(FEATURE_INPUTS) : document)),
  ...FEATURE_DOCUMENTS,
];
