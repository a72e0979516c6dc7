// Reads the list of tools of an upstream server. The list is untrusted text, received before an operator has accepted
// any of it: it is bounded, hashed and shown, but never trusted.

import { isJsonObject, type Json, type JsonObject, canonicalJson } from '../../core/contract/json.js';
import { sha256 } from '../../core/contract/hash.js';
import { UPSTREAM_TOOLS_MAX } from '../../core/contract/policy/upstreams.js';
import type { UpstreamLink } from '../../engine/ports/effects/upstream.js';

const PAGES_MAX = 64;
const CURSOR_CHARS_MAX = 2_048;
const DEFINITION_BYTES_MAX = 65_536;
const DESCRIPTION_CHARS_MAX = 8_192;
/** The tool names of the MCP version 2026-07-28. */
const TOOL_NAME = /^[A-Za-z0-9_.-]{1,128}$/u;

/** A tool as its server describes it. */
export interface UpstreamToolDefinition {
  /** The name that the server uses. */
  readonly tool: string;
  /** The complete definition, including annotations. */
  readonly document: JsonObject;
  /** SHA-256 of the canonical JSON of the document, which a pin records. */
  readonly sha256: string;
}

/** A tool that cannot be used, with the reason in text of this library. */
interface UnusableTool {
  /** Null if the tool has no name that can be shown. */
  readonly tool: string | null;
  readonly why: string;
}

export interface ToolListing {
  readonly definitions: readonly UpstreamToolDefinition[];
  readonly unusable: readonly UnusableTool[];
}

/**
 * Reads the complete list of tools of a server.
 * @throws Error if the list is malformed, endless or exceeds a limit
 */
export async function listDefinitions(link: UpstreamLink, signal: AbortSignal): Promise<ToolListing> {
  // Each page is checked when it arrives, so that memory stays bounded.
  const parsedTools: (UpstreamToolDefinition | UnusableTool)[] = [];
  const cursors = new Set<string>();
  let cursor: string | null = null;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const { tools, nextCursor } = await link.listTools(cursor, signal);
    if (!Array.isArray(tools)) throw new Error('its list of tools is malformed');
    if (parsedTools.length + tools.length > UPSTREAM_TOOLS_MAX)
      throw new Error(`it lists more than ${UPSTREAM_TOOLS_MAX} tools`);
    parsedTools.push(...(tools as readonly Json[]).map(toDefinition));
    if (nextCursor === undefined || nextCursor === null) return toListing(parsedTools);
    if (typeof nextCursor !== 'string' || nextCursor.length > CURSOR_CHARS_MAX || cursors.has(nextCursor)) {
      throw new Error('its list of tools has an invalid or repeated cursor');
    }
    cursors.add(nextCursor);
    cursor = nextCursor;
  }
  throw new Error(`its list of tools has more than ${PAGES_MAX} pages`);
}

function toListing(parsedTools: readonly (UpstreamToolDefinition | UnusableTool)[]): ToolListing {
  const named = parsedTools.flatMap(({ tool }) => (tool === null ? [] : [tool]));
  const duplicates = new Set(named.filter((tool, index) => named.indexOf(tool) !== index));
  return {
    // Two tools with one name are ambiguous: both are rejected.
    definitions: parsedTools.flatMap((parsedTool) =>
      'document' in parsedTool && !duplicates.has(parsedTool.tool) ? [parsedTool] : [],
    ),
    unusable: [
      ...parsedTools.flatMap((parsedTool) =>
        'why' in parsedTool && !duplicates.has(parsedTool.tool ?? '') ? [parsedTool] : [],
      ),
      ...[...duplicates].map((tool) => ({ tool, why: 'it is listed twice' })),
    ],
  };
}

function toDefinition(document: Json): UpstreamToolDefinition | UnusableTool {
  if (!isJsonObject(document)) return { tool: null, why: 'it is not an object' };
  const { name, description = '', inputSchema, outputSchema } = document;
  if (typeof name !== 'string' || !TOOL_NAME.test(name)) return { tool: null, why: 'it has no valid name' };
  const unusable = (why: string): UnusableTool => ({ tool: name, why });
  const text = canonicalJson(document);
  if (Buffer.byteLength(text) > DEFINITION_BYTES_MAX) {
    return unusable(`its definition has more than ${DEFINITION_BYTES_MAX} bytes`);
  }
  if (typeof description !== 'string' || description.length > DESCRIPTION_CHARS_MAX) {
    return unusable(`its description is not a text of up to ${DESCRIPTION_CHARS_MAX} characters`);
  }
  if (!isObjectSchema(inputSchema)) return unusable('its input schema is not that of an object');
  if (outputSchema !== undefined && !isObjectSchema(outputSchema)) {
    return unusable('its output schema is not that of an object');
  }
  return { tool: name, document, sha256: sha256(text) };
}

const isObjectSchema = (schema: Json | undefined): schema is JsonObject =>
  isJsonObject(schema) && schema['type'] === 'object';
