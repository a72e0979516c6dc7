// Strong ETags (RFC 9110): equal exactly if the bytes are equal.

import { sha256 } from '../../../core/contract/hash.js';

export const etagOf = (text: string): string => `"${sha256(text).slice(0, 32)}"`;

/** Whether If-Match names this tag. Weak tags never match. */
export const hasStrongMatch = (list: string, etag: string): boolean =>
  list.trim() === '*' || list.split(',').some((tag) => tag.trim() === etag);

/** Whether If-None-Match names this tag. It compares weakly, so tags of a proxy that compressed the bytes match. */
export const hasWeakMatch = (list: string, etag: string): boolean =>
  hasStrongMatch(list.replace(/(^|,)\s*W\//g, '$1'), etag);
