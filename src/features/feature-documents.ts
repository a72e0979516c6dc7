// The inputs and documents that features publish as JSON Schema. To remove a feature that is listed here, remove its
// name here too.

import type { TSchema } from 'typebox';
import type { SchemaDocument } from '../core/contract/core-schema-documents.js';
import { SESSION_DOCUMENTS, SESSION_INPUTS } from './sessions/contract/session-records.js';

/** Inputs, which are part of the document of all inputs. */
export const FEATURE_INPUTS: readonly TSchema[] = [...SESSION_INPUTS];

export const FEATURE_DOCUMENTS: readonly SchemaDocument[] = [...SESSION_DOCUMENTS];
