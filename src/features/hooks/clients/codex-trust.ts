// How Codex names a hook and its trusted state in config.toml: compared with the answers of its app-server, 0.169.

import { type Json, type JsonObject, canonicalJson } from '../../../core/contract/json.js';
import { sha256 } from '../../../core/contract/hash.js';

/** The time limit of a hook that states none, in seconds. */
const TIMEOUT_S = 600;

/** The key of a hook in `hooks.state`: its file, its event, and its place in that file. */
export const codexTrustKey = (path: string, event: string, [group, handler]: readonly [number, number]): string =>
  `${path}:${snake(event)}:${group}:${handler}`;

/** The hash that Codex compares with `trusted_hash` before it runs a hook. */
export function codexTrustHash(event: string, matcher: Json | undefined, handler: JsonObject): string {
  const hook = { ...handler, async: handler['async'] ?? false, timeout: handler['timeout'] ?? TIMEOUT_S };
  const group = { event_name: snake(event), hooks: [hook], ...(typeof matcher === 'string' ? { matcher } : {}) };
  return `sha256:${sha256(canonicalJson(group))}`;
}

const snake = (event: string): string => event.replace(/(?<=[a-z])[A-Z]/g, (letter) => `_${letter}`).toLowerCase();
