import { Compile } from 'typebox/compile';
import type { ActionDefinition } from '../contract/policy/actions.js';
import { passWith, rejectWith, type CheckedValue } from '../contract/fault.js';
import type { JsonObject } from '../contract/json.js';
import { isSchemaInstance, type RegisteredSchema } from '../contract/policy/registered-schema.js';
import type { Policy } from '../policy/policy.js';
import { checkRegisteredArgs } from './requests/action-request.js';
import { canonicalizePath, isExtensionAllowed, pathOptionsOf, checkSandboxPath } from '../policy/sandbox-path.js';

const validators = new WeakMap<ActionDefinition, ReturnType<typeof Compile>>();

/** Compiles each definition once: compilation takes a hundred times as long as a check. */
function validatorOf(definition: ActionDefinition): ReturnType<typeof Compile> {
  const known = validators.get(definition);
  if (known !== undefined) return known;
  const validator = Compile(definition.args);
  validators.set(definition, validator);
  return validator;
}

/**
 * VALIDATE_ARGS: checks the action's schema, the length of content, and the text of every path (S0-39 to S0-45).
 * AUTHORIZE decides whether a path may be used. This phase checks extensions only if the policy says so (C23).
 *
 * @returns the proposed arguments, unchanged, or INVALID_ARGS
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

/** The schema of a registered action comes from the embedding service, so it is interpreted, never compiled to code. */
const hasValidSchema = (definition: ActionDefinition, args: JsonObject, { catalogue }: Policy): boolean =>
  catalogue.registrations.actions.some(({ name }) => name === definition.name)
    ? isSchemaInstance(definition.args as unknown as RegisteredSchema, args)
    : validatorOf(definition).Check(args);

/** Checks the extension of the canonical path (C26). A path without a canonical form passes: AUTHORIZE denies it. */
function isEndingAllowed(definition: ActionDefinition, name: string, path: string, policy: Policy): boolean {
  const endings = policy.actions.get(definition.name)?.extensions?.[name];
  if (endings === undefined) return true;
  const canonical = canonicalizePath(path, pathOptionsOf(definition, policy));
  return !canonical.ok || isExtensionAllowed(canonical.value, endings);
}
