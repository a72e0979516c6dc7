// Removes secrets from what a client sends, before anything of it is recorded. A pattern is a beginning and the
// characters that may follow, so that a search takes one pass and no pattern of a policy can make it slow.

import { isJsonObject, type Json, type JsonObject, canonicalJson } from '../../core/contract/json.js';
import { sha256 } from '../../core/contract/hash.js';
import type { SecretPattern } from '../../core/contract/policy/secret-patterns.js';

/** A value without secrets. */
export interface SecretFreeValue {
  readonly value: JsonObject;
  /** The hash of the canonical JSON of the original; null if nothing was removed. */
  readonly original_sha256: string | null;
}

const CLASSES: Readonly<Record<SecretPattern['characters'], RegExp>> = {
  hex: /[0-9a-fA-F]/,
  alphanumeric: /[0-9A-Za-z]/,
  base64url: /[0-9A-Za-z_-]/,
  base64: /[0-9A-Za-z+/=]/,
  visible: /[!-~]/,
  // The body of a PEM block, also as one line of JSON or shell text.
  block: /[0-9A-Za-z+/=\s\\:,-]/,
};

/** The value without the secrets that the patterns describe, in every text and member name. */
export function redactSecrets(value: JsonObject, patterns: readonly SecretPattern[]): SecretFreeValue {
  const state = { found: false };
  const redacted = redactValue(value, (text) => {
    const clean = removeSecrets(text, patterns);
    if (clean !== text) state.found = true;
    return clean;
  });
  if (!state.found) return { value, original_sha256: null };
  return { value: redacted as JsonObject, original_sha256: sha256(canonicalJson(value)) };
}

function redactValue(value: Json, redact: (text: string) => string): Json {
  if (typeof value === 'string') return redact(value);
  if (Array.isArray(value)) return value.map((item: Json) => redactValue(item, redact));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [redact(name), redactValue(item, redact)]));
}

/** A secret in a text: where it begins and ends, and the name of its pattern. */
type Finding = readonly [start: number, end: number, name: string];

/** The text with each secret replaced by the name of its pattern. Secrets that overlap are replaced together. */
function removeSecrets(text: string, patterns: readonly SecretPattern[]): string {
  const found = patterns.flatMap((pattern) => findSecrets(text, pattern)).sort(([one], [other]) => one - other);
  let [clean, from] = ['', 0];
  for (const [start, end, name] of found) {
    if (start >= from) clean += `${text.slice(from, start)}[secret removed: ${name}]`;
    from = Math.max(from, end);
  }
  return clean + text.slice(from);
}

/** All secrets of one pattern, in the original text: another pattern could cut them. */
function findSecrets(text: string, { name, prefix, characters, min }: SecretPattern): readonly Finding[] {
  const members = CLASSES[characters];
  const found: Finding[] = [];
  for (let at = text.indexOf(prefix); at >= 0;) {
    const body = at + prefix.length;
    let end = body;
    while (end < text.length && members.test(text.charAt(end))) end += 1;
    const isSecret = end - body >= min;
    if (isSecret) found.push([at, end, name]);
    // Characters after a prefix that are too few may be another prefix: `sk-sk-...`.
    at = text.indexOf(prefix, isSecret ? end : at + 1);
  }
  return found;
}
