import { passWith, rejectWith, type CheckedValue } from '../contract/fault.js';
import type { Json } from '../contract/json.js';
import type { Policy } from '../policy/policy.js';
import { scanJson } from '../contract/json/scan-json.js';

/** Everything that the result of a parse depends on: the key of the cache. */
interface ParseRequest {
  readonly text: string;
  readonly depth_max: number;
}

/** The last parse. Each proposal is parsed twice in a row: for its id, and then in PARSE. */
let cachedParse: { readonly of: ParseRequest; readonly parsed: CheckedValue<Json> } | null = null;

/** PARSE: one strict JSON value, of any type (C14). @returns the value, or INVALID_JSON */
export function parse(text: string, { limits }: Policy): CheckedValue<Json> {
  const depth_max = limits.payload_depth_max;
  const known = cachedParse;
  if (known?.of.text === text && known.of.depth_max === depth_max) return known.parsed;
  const scanned = scanJson(text, depth_max, 'exact');
  const parsed = scanned.ok ? passWith(scanned.value) : rejectWith('INVALID_JSON', `json.${scanned.problem}`);
  cachedParse = { of: { text, depth_max }, parsed };
  return parsed;
}
