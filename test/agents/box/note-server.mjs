// An MCP server over standard input and output with one tool, `note`. The text `wait FOLDER` makes it write the file
// FOLDER/entered, and wait for FOLDER/go.

import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

import { createInterface } from 'node:readline';

const VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'];
const NOTE = {
  name: 'note',
  description: 'Takes a note.',
  inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
};

const METHODS = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion: VERSIONS.includes(protocolVersion) ? protocolVersion : VERSIONS[0],
    capabilities: { tools: {} },
    serverInfo: { name: 'notes', version: '1.0.0' },
  }),
  'tools/list': () => ({ tools: [NOTE] }),
  'tools/call': async ({ arguments: given }) => {
    const [, folder] = /^wait (.+)$/.exec(given?.text) ?? [];
    if (folder !== undefined) writeFileSync(join(folder, 'entered'), '');
    while (folder !== undefined && !existsSync(join(folder, 'go'))) await delay(20);
    return { content: [{ type: 'text', text: `noted: ${given?.text}` }] };
  },
  ping: () => ({}),
};

for await (const line of createInterface({ input: process.stdin })) {
  if (line.trim() === '') continue;
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  const answer = METHODS[method];
  const reply = answer
    ? { result: await answer(params ?? {}) }
    : { error: { code: -32601, message: 'Method not found' } };
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...reply })}\n`);
}
