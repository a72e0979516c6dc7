import type { ActionDefinition } from '../contract/policy/actions.js';
import { canonicalJson } from '../contract/canonical-json.js';
import { sha256 } from '../contract/hash.js';
import { isJsonObject, type Json, type JsonObject } from '../contract/json.js';
import type { ArgsSummary } from '../contract/run/step-trace.js';

/** Limits for unvalidated arguments: the number of recorded names, and the UTF-16 code units of each. */
export const SUMMARY_KEYS_MAX = 16;
export const SUMMARY_KEY_CHARS_MAX = 64;

/**
 * Summarizes the arguments of a step for its trace (C37), without content (S4-62).
 *
 * @param definition the action's definition once VALIDATE_ARGS has passed: the summary then contains paths verbatim,
 *   and hash and length of every other argument. Null if the arguments are unvalidated: the summary then contains only
 *   the first names.
 * @param toRecordedName returns the name as the trace records it
 * @returns null if there are no arguments
 */
export function summarizeArgs(
  definition: ActionDefinition | null,
  args: Json | undefined,
  toRecordedName: (name: string) => string = (name) => name,
): ArgsSummary | null {
  if (!isJsonObject(args)) return null;
  return definition === null ? namesOf(args, toRecordedName) : summaryOf(definition, args);
}

function namesOf(args: JsonObject, toRecordedName: (name: string) => string): ArgsSummary {
  const keys: string[] = [];
  for (const name of Object.keys(args)) {
    const shown = toRecordedName(name);
    if (keys.push(shown === name ? truncateKey(name) : shown) === SUMMARY_KEYS_MAX) break;
  }
  return { keys };
}

function summaryOf(definition: ActionDefinition, args: JsonObject): ArgsSummary {
  const summary: Record<string, string | Digest> = {};
  for (const name of Object.keys(definition.args.properties)) {
    const value = args[name];
    if (value === undefined) continue;
    const text = typeof value === 'string' ? value : canonicalJson(value);
    summary[name] = definition.paths.includes(name) ? text : digestOf(text);
  }
  return summary;
}

interface Digest {
  readonly sha256: string;
  readonly bytes: number;
}

const digestOf = (text: string): Digest => ({ sha256: sha256(text), bytes: Buffer.byteLength(text) });

/** Removes half a surrogate pair at the end, which the ledger could not store. */
function truncateKey(key: string): string {
  const head = key.slice(0, SUMMARY_KEY_CHARS_MAX);
  return head.isWellFormed() ? head : head.slice(0, -1);
}
