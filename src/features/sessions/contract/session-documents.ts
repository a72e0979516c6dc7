// What sessions publish as JSON Schema.

import type { TSchema } from 'typebox';
import type { SchemaDocument } from '../../../core/contract/core-schema-documents.js';
import { SessionEvent } from './session-event.js';
import { OpenSessionInput, SessionInput } from './session-input.js';
import { SessionSpec } from './session-spec.js';

/** Inputs, which are part of the document of all inputs. */
export const SESSION_INPUTS: readonly TSchema[] = [OpenSessionInput, SessionInput];

export const SESSION_DOCUMENTS: readonly SchemaDocument[] = [
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
