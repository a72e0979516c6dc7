import { pass, refuse, type Checked } from '../contract/fault.js';
import type { Json } from '../contract/json.js';
import type { Policy } from '../policy/policy.js';
import { scanJson } from './json-scanner.js';

/** PARSE: one strict JSON value, of any type (C14). @returns the value, or INVALID_JSON */
export function parse(text: string, policy: Policy): Checked<Json> {
  const scanned = scanJson(text, policy.limits.payload_depth_max);
  return scanned.ok ? pass(scanned.value) : refuse('INVALID_JSON', `json.${scanned.why}`);
}
