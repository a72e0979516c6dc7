// Strong ETags (RFC 9110): equal where the bytes are.

import { sha256 } from '../../../contract/hash.js';

export const etagOf = (text: string): string => `"${sha256(text).slice(0, 32)}"`;

/** Whether If-Match names this one: weak tags never match strongly. */
export const hasStrongMatch = (list: string, etag: string): boolean =>
  list.trim() === '*' || list.split(',').some((tag) => tag.trim() === etag);

/** Whether If-None-Match does: it compares weakly, and so is a proxy believed that has packed the bytes. */
export const hasWeakMatch = (list: string, etag: string): boolean =>
  hasStrongMatch(list.replace(/(^|,)\s*W\//g, '$1'), etag);
