// Builds the request that the policy decides for an action: the tool, the table, and the case that owns it. Three
// actions name their target in an argument. The catalogue defines that target; the agent supplies only its name.

import {
  columnsOf,
  type Catalogue,
  type TargetDefinition,
  type ActionDefinition,
} from '../../contract/policy/catalogue.js';
import { rejectWith, type CheckedValue } from '../../contract/fault.js';
import { isJsonObject, type Json, type JsonObject } from '../../contract/json.js';
import { CONFIDENTIALITY_FLAGS, type Label } from '../../contract/policy/labels.js';
import type { WriteMode } from '../../contract/policy/lanes.js';
import { isSchemaInstance } from '../../contract/policy/registered-schema.js';
import type { RunContext } from '../../contract/run/run-context.js';
import { createLabel } from '../../policy/authorize-run.js';
import type { PrivilegedRequest } from '../../policy/privileged-request.js';

/** The request of one action by the mediated run `run`. */
export function privilegedRequest(
  definition: ActionDefinition,
  args: JsonObject,
  run: RunContext,
  catalogue: Catalogue,
  label: Label,
): PrivilegedRequest {
  switch (definition.name) {
    case 'CALL_TOOL': {
      const tool = textOf(args['tool']);
      const known = catalogue.tool(tool);
      const own = ownRequest(definition, run, label);
      const destination = known?.outside === true ? 'outside' : own.destination;
      const unregistered = known === undefined ? 'tool.not_registered' : null;
      const input = args['input'];
      return { ...own, tool, destination, unregistered, ...(isJsonObject(input) ? { input } : {}) };
    }
    case 'WRITE_RECORD':
      return writeRequest(args, ownRequest(definition, run, label), catalogue);
    case 'READ_RECORDS':
      return readRequest(args, ownRequest(definition, run, label), catalogue);
    default:
      return ownRequest(definition, run, label);
  }
}

/**
 * Validates the arguments against the schema of the tool or target, after the schema of the action. A target that is
 * not registered has no schema: AUTHORIZE denies it.
 * @returns the rejection, or null
 */
export function checkRegisteredArgs(
  definition: ActionDefinition,
  args: JsonObject,
  catalogue: Catalogue,
): CheckedValue<never> | null {
  switch (definition.name) {
    case 'CALL_TOOL': {
      const tool = catalogue.tool(textOf(args['tool']));
      if (tool === undefined || isSchemaInstance(tool.input, args['input'])) return null;
      return rejectWith('INVALID_ARGS', 'args.tool_input');
    }
    case 'WRITE_RECORD': {
      const target = catalogue.target(textOf(args['target']));
      if (target === undefined || isSchemaInstance(target.record, args['record'])) return null;
      return rejectWith('INVALID_ARGS', 'args.record');
    }
    case 'READ_RECORDS': {
      const target = catalogue.target(textOf(args['target']));
      if (target === undefined) return null;
      if (!hasValidColumns(target, args['where'])) return rejectWith('INVALID_ARGS', 'args.where');
      return isWholeKey(target, args['after']) ? null : rejectWith('INVALID_ARGS', 'args.after');
    }
    default:
      return null;
  }
}

/** Whether the effect runs inside the ledger's transaction: before its commit, so that both commit together. */
export function isInCommit(definition: ActionDefinition, args: JsonObject, catalogue: Catalogue): boolean {
  if (definition.run_kind === 'tool_gateway') return definition.risk === 'read' && definition.paths.length > 0;
  return RECORD_ACTION_NAMES.includes(definition.name) && catalogue.target(textOf(args['target']))?.place === 'ledger';
}

/** Whether a second execution with the same key has no further effect. Record stores deduplicate by key. */
export function isIdempotent(definition: ActionDefinition, args: JsonObject, catalogue: Catalogue): boolean {
  if (definition.name === 'CALL_TOOL') return catalogue.tool(textOf(args['tool']))?.idempotent === true;
  return definition.idempotent || RECORD_ACTION_NAMES.includes(definition.name);
}

/**
 * The time within which the caller of an agent must report the outcome of an action that it executes itself, in
 * milliseconds; null for an action that the platform executes (U-08).
 */
export function reportTimeout({ name }: ActionDefinition, args: JsonObject, catalogue: Catalogue): number | null {
  if (name !== 'CALL_TOOL') return null;
  const tool = catalogue.tool(textOf(args['tool']));
  return tool?.external === true ? tool.timeout_ms : null;
}

/** The label that the result of the action adds to the run (information flow); null if the result adds none. */
export function resultLabel(
  definition: ActionDefinition,
  args: JsonObject,
  { target_case_id }: PrivilegedRequest,
  catalogue: Catalogue,
): Label | null {
  const { name, risk, run_kind } = definition;
  if (name === 'CALL_TOOL') {
    return createLabel(target_case_id, catalogue.tool(textOf(args['tool']))?.confidentiality ?? CONFIDENTIALITY_FLAGS);
  }
  if (name === 'READ_RECORDS') {
    return createLabel(
      target_case_id,
      catalogue.target(textOf(args['target']))?.confidentiality ?? CONFIDENTIALITY_FLAGS,
    );
  }
  const own = catalogue.registrations.actions.find((action) => action.name === name);
  if (own !== undefined) return createLabel(target_case_id, own.confidentiality);
  return risk === 'read' && run_kind !== null ? createLabel(target_case_id, []) : null;
}

const RECORD_ACTION_NAMES = ['WRITE_RECORD', 'READ_RECORDS'];

/** Lists every member instead of spreading, because every step builds this object. */
const ownRequest = (
  { tool, write, read, outside }: ActionDefinition,
  run: RunContext,
  label: Label,
): PrivilegedRequest => ({
  tool,
  write,
  read,
  target_case_id: run.case_id,
  destination: outside ? 'outside' : 'platform',
  plane: 'case',
  artifact_flags: NO_ARTIFACT_FLAGS,
  unregistered: null,
  promotes: false,
  label,
});

const NO_ARTIFACT_FLAGS: readonly string[] = [];

function writeRequest(args: JsonObject, own: PrivilegedRequest, catalogue: Catalogue): PrivilegedRequest {
  const table = textOf(args['target']);
  const mode: WriteMode = args['mode'] === 'upsert' ? 'upsert' : 'append';
  const target = catalogue.target(table);
  const unregistered =
    target === undefined ? 'target.not_registered' : target.modes.includes(mode) ? null : 'target.mode_not_registered';
  return { ...withTargetPlane(own, target), write: { table, mode }, unregistered };
}

function readRequest(args: JsonObject, own: PrivilegedRequest, catalogue: Catalogue): PrivilegedRequest {
  const read = textOf(args['target']);
  const target = catalogue.target(read);
  const requestedCase = args['case_id'];
  const onTargetPlane = withTargetPlane(own, target);
  return {
    ...onTargetPlane,
    read,
    target_case_id:
      typeof requestedCase === 'string' && onTargetPlane.plane === 'case'
        ? requestedCase
        : onTargetPlane.target_case_id,
    unregistered: target === undefined ? 'target.not_registered' : null,
  };
}

/** A row of a shared target belongs to no case. */
const withTargetPlane = (own: PrivilegedRequest, target: TargetDefinition | undefined): PrivilegedRequest =>
  target?.plane === 'shared' ? { ...own, plane: 'shared', target_case_id: null } : own;

function hasValidColumns(target: TargetDefinition, where: Json | undefined): boolean {
  if (where === undefined) return true;
  if (!isJsonObject(where)) return false;
  const columns = columnsOf(target);
  return Object.entries(where).every(([name, value]) => {
    const schema = Object.hasOwn(columns, name) ? columns[name] : undefined;
    return schema !== undefined && isSchemaInstance(schema, value);
  });
}

/** Whether `after`, the position behind which a read continues, has exactly the key columns of the target. */
const isWholeKey = (target: TargetDefinition, after: Json | undefined): boolean =>
  after === undefined ||
  (hasValidColumns(target, after) &&
    isJsonObject(after) &&
    Object.keys(after).length === target.key.length &&
    target.key.every((name) => Object.hasOwn(after, name)));

const textOf = (value: Json | undefined): string => (typeof value === 'string' ? value : '');
