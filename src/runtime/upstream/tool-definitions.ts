// The tools that an upstream server says it has. All of it is somebody else's text, sent before anybody has agreed to
// anything: it is counted, measured, hashed and shown, and nothing in it is believed.

import { canonicalJson } from '../../contract/canonical-json.js';
import { sha256 } from '../../contract/hash.js';
import { isJsonObject, type Json, type JsonObject } from '../../contract/json.js';
import { UPSTREAM_TOOLS_MAX } from '../../contract/policy/upstreams.js';
import type { UpstreamLink } from '../../ports/effects/upstream.js';

const PAGES_MAX = 64;
const CURSOR_CHARS_MAX = 2_048;
const DEFINITION_BYTES_MAX = 65_536;
const DESCRIPTION_CHARS_MAX = 8_192;
/** As the protocol of 2026-07-28 has it. */
const TOOL_NAME = /^[A-Za-z0-9_.-]{1,128}$/u;

/** A tool as its server describes it. */
export interface UpstreamToolDefinition {
  /** As the server calls it. */
  readonly tool: string;
  /** All of it, annotations included. */
  readonly document: JsonObject;
  /** Of the canonical JSON of the document: what a pin says. */
  readonly sha256: string;
}

/** A tool that cannot be had, and why, in our own words. */
export interface UnusableTool {
  /** Null where it has not even a name that can be shown. */
  readonly tool: string | null;
  readonly why: string;
}

export interface ToolListing {
  readonly definitions: readonly UpstreamToolDefinition[];
  readonly unusable: readonly UnusableTool[];
}

/** Everything that a server lists. @throws when the list itself has no end, no form or no measure */
export async function listDefinitions(link: UpstreamLink, signal: AbortSignal): Promise<ToolListing> {
  // Each page is judged as it comes, so that nothing is held of what is too large to be had.
  const parsedTools: (UpstreamToolDefinition | UnusableTool)[] = [];
  const cursors = new Set<string>();
  let cursor: string | null = null;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const { tools, nextCursor } = await link.listTools(cursor, signal);
    if (!Array.isArray(tools)) throw new Error('its list of tools is none');
    if (parsedTools.length + tools.length > UPSTREAM_TOOLS_MAX)
      throw new Error(`it lists more than ${UPSTREAM_TOOLS_MAX} tools`);
    parsedTools.push(...(tools as readonly Json[]).map(toDefinition));
    if (nextCursor === undefined || nextCursor === null) return toListing(parsedTools);
    if (typeof nextCursor !== 'string' || nextCursor.length > CURSOR_CHARS_MAX || cursors.has(nextCursor)) {
      throw new Error('its list of tools leads nowhere');
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
    // Of two tools with one name, nobody could say which is meant.
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
  if (!isJsonObject(document)) return { tool: null, why: 'it is no object' };
  const { name, description = '', inputSchema, outputSchema } = document;
  if (typeof name !== 'string' || !TOOL_NAME.test(name)) return { tool: null, why: 'its name is none' };
  const unusable = (why: string): UnusableTool => ({ tool: name, why });
  const text = canonicalJson(document);
  if (Buffer.byteLength(text) > DEFINITION_BYTES_MAX) {
    return unusable(`its definition has more than ${DEFINITION_BYTES_MAX} bytes`);
  }
  if (typeof description !== 'string' || description.length > DESCRIPTION_CHARS_MAX) {
    return unusable(`its description is no text of up to ${DESCRIPTION_CHARS_MAX} characters`);
  }
  if (!isObjectSchema(inputSchema)) return unusable('its input schema is not that of an object');
  if (outputSchema !== undefined && !isObjectSchema(outputSchema)) {
    return unusable('its output schema is not that of an object');
  }
  return { tool: name, document, sha256: sha256(text) };
}

const isObjectSchema = (schema: Json | undefined): schema is JsonObject =>
  isJsonObject(schema) && schema['type'] === 'object';
