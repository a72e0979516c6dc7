// The three built-in actions with a target as an argument. They reach what the embedding service has registered, in
// lanes that list the target, if the actions policy lists the action.

import Type from 'typebox';
import type { ActionDefinition } from './actions.js';
import { WRITE_MODES } from './lanes.js';
import { PolicyName } from './policy-header.js';
import { CaseId, closed, OneOf } from '../shapes.js';

export const RECORDS_PER_READ_MAX = 1_000;
export const RECORDS_PER_READ_DEFAULT = 100;

/** What the schema of an action leaves open is in the schema of the tool or target that its arguments name. */
const anyValue = (description: string) => Type.Object({}, { additionalProperties: true, description });

export const RECORD_ACTIONS = {
  CALL_TOOL: {
    name: 'CALL_TOOL',
    summary: 'Call a tool.',
    risk: 'destructive',
    args: Type.Object({ tool: PolicyName, input: anyValue('What the input schema of the tool says.') }, closed),
    run_kind: 'tool_gateway',
  },
  WRITE_RECORD: {
    name: 'WRITE_RECORD',
    summary: 'Write one record: append a new one, or upsert the one with its key.',
    risk: 'write',
    args: Type.Object(
      { target: PolicyName, mode: OneOf(WRITE_MODES), record: anyValue('What the schema of the target says.') },
      closed,
    ),
    run_kind: 'db_write',
  },
  READ_RECORDS: {
    name: 'READ_RECORDS',
    summary: 'Read records in the order of their keys.',
    risk: 'read',
    args: Type.Object(
      {
        target: PolicyName,
        where: Type.Optional(anyValue('Columns of the target and the values they must have.')),
        after: Type.Optional(anyValue('The key of the last record that was read: only those behind it are.')),
        /** A case other than the run's own; only a lane with `cross_case_reads` may read it (S4-84). */
        case_id: Type.Optional(CaseId),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: RECORDS_PER_READ_MAX })),
      },
      closed,
    ),
    run_kind: 'db_read',
  },
} as const satisfies Record<string, Partial<ActionDefinition>>;
export type RecordActionName = keyof typeof RECORD_ACTIONS;

const ARGUMENT_DEPENDENT = {
  paths: [],
  trailingSlash: false,
  tool: null,
  write: null,
  read: null,
  idempotent: false,
  outside: false,
} as const;

export const RECORD_ACTION_DEFINITIONS: readonly ActionDefinition[] = Object.values(RECORD_ACTIONS).map((action) => ({
  ...action,
  ...ARGUMENT_DEPENDENT,
}));
