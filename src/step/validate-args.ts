import { Compile } from 'typebox/compile';
import type { ActionDefinition } from '../contract/actions.js';
import { pass, refuse, type Checked } from '../contract/fault.js';
import type { JsonObject } from '../contract/json.js';
import { satisfies, type RegisteredSchema } from '../contract/registered-schema.js';
import type { Policy } from '../policy/policy.js';
import { refuseNamed } from './privilege.js';
import { canonicalPath, extensionAllowed, pathOptionsOf, sandboxPath } from '../policy/sandbox-path.js';

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
export function validateArgs(definition: ActionDefinition, args: JsonObject, policy: Policy): Checked<JsonObject> {
  if (!conformsTo(definition, args, policy)) return refuse('INVALID_ARGS', 'args.schema');
  const refused = refuseNamed(definition, args, policy.catalogue);
  if (refused !== null) return refused;
  const { content } = args;
  if (typeof content === 'string' && Buffer.byteLength(content) > policy.limits.content_bytes_max) {
    return refuse('INVALID_ARGS', 'args.content_bytes_max');
  }
  for (const name of definition.paths) {
    const path = args[name];
    if (typeof path !== 'string') return refuse('INVALID_ARGS', 'args.path_type');
    const checked = sandboxPath(path, pathOptionsOf(definition, policy));
    if (!checked.ok) return checked;
    if (policy.knobs.extensions_stage === 'validate' && !endingIsAllowed(definition, name, path, policy)) {
      return refuse('INVALID_ARGS', 'args.extension_not_allowed');
    }
  }
  return pass(args);
}

/** A schema that a service has registered is data of the tree, and is never made into code. */
const conformsTo = (definition: ActionDefinition, args: JsonObject, { catalogue }: Policy): boolean =>
  catalogue.registrations.actions.some(({ name }) => name === definition.name)
    ? satisfies(definition.args as unknown as RegisteredSchema, args)
    : validatorOf(definition).Check(args);

/** Endings are judged on the canonical path (C26); one that AUTHORIZE will deny for its place is left to it. */
function endingIsAllowed(definition: ActionDefinition, name: string, path: string, policy: Policy): boolean {
  const endings = policy.actions.get(definition.name)?.extensions?.[name];
  if (endings === undefined) return true;
  const canonical = canonicalPath(path, pathOptionsOf(definition, policy));
  return !canonical.ok || extensionAllowed(canonical.value, endings);
}
