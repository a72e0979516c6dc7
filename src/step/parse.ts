import { EXACT_NUMBERS } from '../contract/flags.js';
import { pass, refuse, type Checked } from '../contract/fault.js';
import type { Json } from '../contract/json.js';
import type { Policy } from '../policy/policy.js';
import { scanJson, type Numbers } from './json-scanner.js';

/** What of a policy decides how a text is read. Members of `Reading` are all that a cached reading depends on. */
interface Reading {
  readonly text: string;
  readonly depth_max: number;
  readonly numbers: Numbers;
}

/** The last text and what it was: a proposal is parsed for its id, and in its phase right after that. */
let last: { readonly of: Reading; readonly parsed: Checked<Json> } | null = null;

/** PARSE: one strict JSON value, of any type (C14). @returns the value, or INVALID_JSON */
export function parse(text: string, { limits, flags }: Policy): Checked<Json> {
  const depth_max = limits.payload_depth_max;
  const numbers = flags.has(EXACT_NUMBERS) ? 'exact' : 'rounded';
  const known = last?.of;
  if (last !== null && known?.text === text && known.depth_max === depth_max && known.numbers === numbers) {
    return last.parsed;
  }
  const scanned = scanJson(text, depth_max, numbers);
  const parsed = scanned.ok ? pass(scanned.value) : refuse('INVALID_JSON', `json.${scanned.why}`);
  last = { of: { text, depth_max, numbers }, parsed };
  return parsed;
}
