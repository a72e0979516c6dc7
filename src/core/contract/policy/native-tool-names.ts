// The tools that coding agents have of their own: their names in lanes, and what a policy distinguishes in their calls.

import type { JsonObject } from '../json.js';

/** What is distinguished in the input of each tool. */
const KINDS = {
  'native.shell': 'command',
  'native.read': 'path',
  'native.search': 'path',
  'native.write': 'path',
  'native.edit': 'path',
  'native.patch': 'path',
  'native.fetch': 'host',
  'native.web_search': 'call',
  'native.mcp': 'name',
  'native.other': 'name',
} as const satisfies Record<string, string>;
export type NativeToolName = keyof typeof KINDS;

/** `call`: the call as a whole, because its input has nothing that rules distinguish. */
export type CallPartKind = (typeof KINDS)[NativeToolName];

export const NATIVE_TOOL_NAMES: readonly string[] = Object.keys(KINDS);
export const isNativeTool = (tool: string): tool is NativeToolName => Object.hasOwn(KINDS, tool);

/** The kind of the parts of each call of the tool. */
export const partKindOf = (tool: string): CallPartKind => (isNativeTool(tool) ? KINDS[tool] : 'call');

/** Whether the client executes something else than the input has, because secrets were removed from it. */
export const isRedacted = ({ redacted }: JsonObject): boolean => redacted !== undefined;
