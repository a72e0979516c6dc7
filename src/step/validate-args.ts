import { Compile } from 'typebox/compile';
import type { ActionDefinition } from '../contract/policy/actions.js';
import { passWith, rejectWith, type CheckedValue } from '../contract/fault.js';
import type { JsonObject } from '../contract/json.js';
import { isSchemaInstance, type RegisteredSchema } from '../contract/policy/registered-schema.js';
import type { Policy } from '../policy/policy.js';
import { checkRegisteredArgs } from './privileged-request.js';
import { canonicalizePath, isExtensionAllowed, pathOptionsOf, checkSandboxPath } from '../policy/sandbox-path.js';

const validators = new WeakMap<ActionDefinition, ReturnType<typeof Compile>>();

/** Each definition is compiled once: compiling costs a hundred times what checking does. */
function validatorOf(definition: ActionDefinition): ReturnType<typeof Compile> {
  const known = validators.get(definition);
  if (known !== undefined) return known;
  const validator = Compile(definition.args);
  validators.set(definition, validator);
  return validator;
}

/**
 * VALIDATE_ARGS: the action's own schema, the length of content, and every path as text (S0-39 to S0-45). Whether a
 * path may be used is for AUTHORIZE to say; only where the policy says so are extensions judged here too (C23).
 *
 * @returns the arguments as they were proposed, or INVALID_ARGS
 */
export function validateArgs(definition: ActionDefinition, args: JsonObject, policy: Policy): CheckedValue<JsonObject> {
  if (!hasValidSchema(definition, args, policy)) return rejectWith('INVALID_ARGS', 'args.schema');
  const refused = checkRegisteredArgs(definition, args, policy.catalogue);
  if (refused !== null) return refused;
  const { content } = args;
  if (typeof content === 'string' && Buffer.byteLength(content) > policy.limits.content_bytes_max) {
    return rejectWith('INVALID_ARGS', 'args.content_bytes_max');
  }
  for (const name of definition.paths) {
    const path = args[name];
    if (typeof path !== 'string') return rejectWith('INVALID_ARGS', 'args.path_type');
    const checked = checkSandboxPath(path, pathOptionsOf(definition, policy));
    if (!checked.ok) return checked;
    if (policy.knobs.extensions_stage === 'validate' && !isEndingAllowed(definition, name, path, policy)) {
      return rejectWith('INVALID_ARGS', 'args.extension_not_allowed');
    }
  }
  return passWith(args);
}

/** A schema that a service has registered is data of the tree, and is never made into code. */
const hasValidSchema = (definition: ActionDefinition, args: JsonObject, { catalogue }: Policy): boolean =>
  catalogue.registrations.actions.some(({ name }) => name === definition.name)
    ? isSchemaInstance(definition.args as unknown as RegisteredSchema, args)
    : validatorOf(definition).Check(args);

/** Endings are judged on the canonical path (C26); one that AUTHORIZE will deny for its place is left to it. */
function isEndingAllowed(definition: ActionDefinition, name: string, path: string, policy: Policy): boolean {
  const endings = policy.actions.get(definition.name)?.extensions?.[name];
  if (endings === undefined) return true;
  const canonical = canonicalizePath(path, pathOptionsOf(definition, policy));
  return !canonical.ok || isExtensionAllowed(canonical.value, endings);
}
