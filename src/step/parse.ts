import { pass, refuse, type Checked } from '../contract/fault.js';
import type { Json } from '../contract/json.js';
import type { Policy } from '../policy/policy.js';
import { scanJson } from './json-scanner.js';

/** The last text and what it was: a proposal is parsed for its id, and in its phase right after that. */
let last: { readonly text: string; readonly depth_max: number; readonly parsed: Checked<Json> } | null = null;

/** PARSE: one strict JSON value, of any type (C14). @returns the value, or INVALID_JSON */
export function parse(text: string, { limits }: Policy): Checked<Json> {
  const depth_max = limits.payload_depth_max;
  if (last?.text === text && last.depth_max === depth_max) return last.parsed;
  const scanned = scanJson(text, depth_max);
  const parsed = scanned.ok ? pass(scanned.value) : refuse('INVALID_JSON', `json.${scanned.why}`);
  last = { text, depth_max, parsed };
  return parsed;
}
