// All documents that are published as JSON Schema (policies/contract/v1/schemas), of core and of features. Those files
// are generated from this list; a test detects drift.

import {
  inputDocument,
  SCHEMA_DOCUMENTS as CORE_DOCUMENTS,
  type SchemaDocument,
} from '../core/contract/core-schema-documents.js';
import { SessionEvent } from '../features/sessions/contract/session-event.js';
import { OpenSessionInput, SessionInput } from '../features/sessions/contract/session-input.js';
import { SessionSpec } from '../features/sessions/contract/session-spec.js';

export const SCHEMA_DOCUMENTS: readonly SchemaDocument[] = [
  ...CORE_DOCUMENTS.map((document) =>
    document.name === 'input' ? inputDocument([OpenSessionInput, SessionInput]) : document,
  ),
  {
    name: 'session_event',
    title: 'Ledger entry body: one thing that happened in a session',
    schema: SessionEvent,
  },
  {
    name: 'session_spec',
    title: 'What a session works through: phases of tasks, verifications and gates',
    schema: SessionSpec,
  },
];
