// The search finds every canary that it should find.

import { expect, test } from '@jest/globals';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { canariesIn, canary } from './canary-search.js';

const ONE = canary('one');
const OTHER = canary('other');
const BOTH = [ONE, OTHER];
const TEXT = `before ${ONE.text} after`;

function zipOf(content: Buffer, method: 0 | 8): Buffer {
  const header = Buffer.alloc(30);
  header.write('PK\u0003\u0004', 'latin1');
  header.writeUInt16LE(method, 8);
  header.writeUInt16LE(1, 26);
  return Buffer.concat([
    Buffer.from('bytes before it'),
    header,
    Buffer.from('n'),
    method === 8 ? deflateRawSync(content) : content,
  ]);
}

test.each<[string, string | Buffer]>([
  ['plain', TEXT],
  ['plain', JSON.stringify({ nested: JSON.stringify({ text: `${TEXT}\n"` }) })],
  ['JSON escapes', Array.from(ONE.text, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')],
  ['base64', Buffer.from(TEXT).toString('base64')],
  ['base64', Buffer.from(`x${TEXT}`).toString('base64')],
  ['base64', Buffer.from(`xy${TEXT}`).toString('base64')],
  ['base64url', Buffer.from(`?>${TEXT}?>`).toString('base64url')],
  ['hex', Buffer.from(TEXT).toString('hex')],
  ['hex', Buffer.from(TEXT).toString('hex').toUpperCase()],
  ['percent', Buffer.from(ONE.text).toString('hex').replace(/../g, '%$&')],
  ['UTF-16', Buffer.from(TEXT, 'utf16le')],
  ['gzip > plain', gzipSync(TEXT)],
  ['gzip > plain', Buffer.concat([Buffer.from('a line before\n'), gzipSync(TEXT), Buffer.from('and behind')])],
  ['zlib > plain', deflateSync(TEXT)],
  ['brotli > plain', brotliCompressSync(TEXT)],
  ['zip > plain', zipOf(Buffer.from(TEXT), 8)],
  ['plain', zipOf(Buffer.from(TEXT), 0)],
  ['base64 > gzip > plain', `{"content":"${gzipSync(TEXT).toString('base64')}"}`],
  ['gzip > base64', gzipSync(Buffer.from(TEXT).toString('base64'))],
  ['zip > gzip > base64', zipOf(gzipSync(Buffer.from(TEXT).toString('base64')), 8)],
])('finds a canary: %s', (form, output) => {
  expect(canariesIn(output, BOTH)).toContainEqual({ kind: 'one', form });
  expect(canariesIn(output, [OTHER])).toEqual([]);
});

test('finds none in the hash of one', () => {
  expect(canariesIn(JSON.stringify({ sha256: canary('of nothing').text, bytes: 27 }), BOTH)).toEqual([]);
});
