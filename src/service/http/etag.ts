// Strong ETags (RFC 9110): equal where the bytes are.

import { sha256 } from '../../contract/hash.js';

export const etagOf = (text: string): string => `"${sha256(text).slice(0, 32)}"`;

/** Whether a list of tags, as If-Match and If-None-Match have it, names this one. Weak tags never match strongly. */
export const names = (list: string, etag: string): boolean =>
  list.trim() === '*' || list.split(',').some((tag) => tag.trim() === etag);
