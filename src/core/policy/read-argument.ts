import { isJsonObject, type Json, type JsonObject } from '../contract/json.js';

/** The arguments that policy names: of a call, the input of its tool. `name` is that of conditions. */
export const namedArguments = (name: string, args: JsonObject): JsonObject =>
  name.startsWith('CALL_TOOL:') && isJsonObject(args['input']) ? args['input'] : args;

/** The value of an argument; a point in the path leads into an object. */
export function argumentAt(args: JsonObject, path: string): Json | undefined {
  let found: Json | undefined = args;
  for (const name of path.split('.')) {
    found = isJsonObject(found) && Object.hasOwn(found, name) ? found[name] : undefined;
  }
  return found;
}
