// Asks a decision point over HTTP: AuthZEN 1.0 and the data API of OPA are both one POST of JSON.

import { Buffer } from 'node:buffer';
import type { DecisionService } from '../../engine/ports/effects/decision-service.js';
import { readToken } from '../environment.js';
import { fetchJson } from './json-fetch.js';

const REQUEST_BYTES_MAX = 65_536;
const REPLY_BYTES_MAX = 65_536;

export const httpDecisionService: DecisionService = async ({ url, token_env, timeout_ms }, body) => {
  if (Buffer.byteLength(body) > REQUEST_BYTES_MAX) {
    return { failed: `the request has more than ${REQUEST_BYTES_MAX} bytes: send fewer arguments` };
  }
  try {
    const token = readToken(token_env);
    const authorization = token === null ? {} : { authorization: `Bearer ${token}` };
    return await fetchJson(url, { body, bytesMax: REPLY_BYTES_MAX, timeoutMs: timeout_ms, ...authorization });
  } catch (error) {
    return { failed: error instanceof Error ? error.message : 'the token cannot be read' };
  }
};
