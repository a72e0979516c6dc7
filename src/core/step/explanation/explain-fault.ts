// Says of a rejected proposal which field breaks which constraint, for the trace and the log, and for agents whose
// policy has the exposure `explained` (C94). The text names fields of schemas only, and nothing that an agent wrote.

import { columnsOf, type TargetDefinition, type ActionDefinition } from '../../contract/policy/catalogue.js';
import type { ArgumentCause, Fault } from '../../contract/fault.js';
import { isJsonObject, type Json, type JsonObject } from '../../contract/json.js';
import type { JsonSchema } from '../../contract/json-schema.js';
import { explanationText, findSchemaMismatch, type SchemaMismatch } from '../../contract/policy/schema-mismatch.js';
import { Proposal, REASONING_CHARS_MAX } from '../../contract/run/proposal.js';
import type { Policy } from '../../policy/policy.js';
import { checkSandboxPath, pathOptionsOf } from '../../policy/sandbox-path.js';

/** A rejection by VALIDATE_ARGS, with its cause and explanation. */
export function explainArgumentFault(
  fault: Fault,
  definition: ActionDefinition,
  args: JsonObject,
  policy: Policy,
): Fault {
  if (fault.code !== 'INVALID_ARGS') return fault;
  const mismatch = argumentMismatch(fault.rule_id, definition, args, policy);
  const [argument] = mismatch?.path ?? [];
  const cause: ArgumentCause = definition.paths.some((name) => name === argument) ? 'PATH' : 'ARGUMENT';
  return { ...fault, cause, ...(mismatch === null ? {} : { explanation: explanationText('args', mismatch) }) };
}

/** A rejection of the proposal itself by VALIDATE_SCHEMA, with its explanation. */
export function explainProposalFault(fault: Fault, value: Json): Fault {
  if (fault.code !== 'SCHEMA_VIOLATION') return fault;
  const mismatch = findSchemaMismatch(PROPOSAL_SCHEMA, value);
  if (mismatch === null) return fault;
  const [field] = mismatch.path;
  const words = mismatch.constraint === 'is missing' ? undefined : FIELD_WORDS[String(field ?? '')];
  return {
    ...fault,
    explanation: explanationText('', words === undefined ? mismatch : { ...mismatch, constraint: words }),
  };
}

const PROPOSAL_SCHEMA = Proposal as unknown as JsonSchema;

/** Patterns of the fields say less than these words. */
const FIELD_WORDS: Readonly<Record<string, string | undefined>> = {
  schema_version: 'must be 1.x.y',
  id: 'must be a UUID',
  reasoning: `must be a text of 1 to ${REASONING_CHARS_MAX} characters`,
  action: 'must be a text',
  args: 'must be an object',
};

function argumentMismatch(
  rule_id: string,
  definition: ActionDefinition,
  args: JsonObject,
  policy: Policy,
): SchemaMismatch | null {
  const { catalogue, limits } = policy;
  const target = (): TargetDefinition | undefined => catalogue.target(textOf(args['target']));
  switch (rule_id) {
    case 'args.schema':
      return findSchemaMismatch(definition.args as unknown as JsonSchema, args);
    case 'args.tool_input':
      return below('input', findSchemaMismatch(catalogue.tool(textOf(args['tool']))?.input ?? {}, args['input']));
    case 'args.record':
      return below('record', findSchemaMismatch(target()?.record ?? {}, args['record']));
    case 'args.where':
      return below('where', columnMismatch(target(), args['where']));
    case 'args.after':
      return below('after', keyMismatch(target(), args['after']));
    case 'args.content_bytes_max':
      return { path: ['content'], constraint: `must have at most ${limits.content_bytes_max} bytes` };
    default:
      return pathMismatch(rule_id, definition, args, policy);
  }
}

const below = (name: string, mismatch: SchemaMismatch | null): SchemaMismatch | null =>
  mismatch === null ? null : { ...mismatch, path: [name, ...mismatch.path] };

function columnMismatch(target: TargetDefinition | undefined, where: Json | undefined): SchemaMismatch | null {
  if (target === undefined) return null;
  if (!isJsonObject(where)) return { path: [], constraint: 'must be an object' };
  const columns = columnsOf(target);
  const unknown = Object.keys(where).filter((name) => !Object.hasOwn(columns, name)).length;
  if (unknown > 0) return { path: [], constraint: `has ${unknown} unknown ${unknown === 1 ? 'column' : 'columns'}` };
  for (const [name, schema] of Object.entries(columns)) {
    const mismatch = Object.hasOwn(where, name) ? below(name, findSchemaMismatch(schema, where[name])) : null;
    if (mismatch !== null) return mismatch;
  }
  return null;
}

function keyMismatch(target: TargetDefinition | undefined, after: Json | undefined): SchemaMismatch | null {
  const mismatch = columnMismatch(target, after);
  if (mismatch !== null || target === undefined) return mismatch;
  return { path: [], constraint: `must have exactly the key: ${target.key.join(', ')}` };
}

/** The first path argument that breaks a rule of paths. */
function pathMismatch(
  rule_id: string,
  definition: ActionDefinition,
  args: JsonObject,
  policy: Policy,
): SchemaMismatch | null {
  const options = pathOptionsOf(definition, policy);
  for (const name of definition.paths) {
    const path = args[name];
    if (typeof path !== 'string') return { path: [name], constraint: 'must be a text' };
    const checked = checkSandboxPath(path, options);
    if (!checked.ok) return { path: [name], constraint: pathWords(checked.fault.rule_id, options.path_bytes_max) };
    const endings = policy.actions.get(definition.name)?.extensions?.[name];
    if (rule_id !== EXTENSION_RULE || endings === undefined || endings.some((ending) => path.endsWith(ending)))
      continue;
    return { path: [name], constraint: `must end with ${endings.join(' or ')}` };
  }
  return null;
}

const EXTENSION_RULE = 'args.extension_not_allowed';

const PATH_WORDS: Readonly<Record<string, string | undefined>> = {
  'path.prefix': 'must begin with /sandbox/',
  'path.trailing_slash': 'must not end with a slash',
  'path.empty_segment': 'must not have an empty segment',
  'path.dot_segment': "must not have a '.' segment",
  'path.dotdot_segment': "must not have a '..' segment",
  'path.segment_bytes_max': 'must have segments of at most 255 bytes',
  'path.not_portable': 'must have names that every platform accepts',
  'path.illegal_character': 'must not have a control character or a backslash',
  'path.invisible_character': 'must not have an invisible character',
  'path.not_nfc': 'must be in Unicode NFC',
};

const pathWords = (rule_id: string, bytes_max: number): string =>
  PATH_WORDS[rule_id] ?? `must have at most ${bytes_max} bytes`;

const textOf = (value: Json | undefined): string => (typeof value === 'string' ? value : '');
