import { Buffer } from 'node:buffer';
import { type Json, canonicalJson } from '../../core/contract/json.js';

/** Neither clients of coding agents nor SDKs give a reason for a call. */
const REASONING = 'not given by client';

/** The proposal of a call that was not written as one: the same call has the same bytes. */
export const toolCallPayload = (id: string, tool: string, input: Json): Uint8Array =>
  Buffer.from(
    canonicalJson({ schema_version: '1.0.0', id, reasoning: REASONING, action: 'CALL_TOOL', args: { tool, input } }),
  );
