// A chunk as a file, so that a violation can be reproduced: the first line has the options, each further line one
// payload in base64.

import { readFileSync, writeFileSync } from 'node:fs';
import type { Chunk } from './campaign.js';
import { POLICY_NAMES, STORES } from './world.js';

export function writeChunk(file: string, { policy, store, to, payloads }: Chunk): void {
  const lines = payloads.map((bytes) => Buffer.from(bytes).toString('base64'));
  writeFileSync(file, `${JSON.stringify({ policy, store, to })}\n${lines.join('\n')}\n`);
}

/** @throws Error for a file of another format */
export function readChunk(file: string): Chunk {
  const [head = '', ...lines] = readFileSync(file, 'utf8').trimEnd().split('\n');
  const said = JSON.parse(head) as Record<string, unknown>;
  const policy = POLICY_NAMES.find((name) => name === said['policy']);
  const store = STORES.find((name) => name === said['store']);
  if (policy === undefined || store === undefined) throw new Error(`${file} does not hold a chunk of this campaign`);
  const payloads = lines.map((line) => new Uint8Array(Buffer.from(line, 'base64')));
  return { policy, store, to: said['to'] === 'all' ? 'all' : 'one', payloads };
}
