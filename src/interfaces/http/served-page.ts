// Serves the inspector page: static files without data, available without a token, under a content security policy that
// lets them contact only this server.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { compressBest, isGzipAccepted } from '../../system/network/gzip.js';
import { readPageFolder, type PageFile } from '../inspector/page-folder.js';

const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  'trusted-types inspector',
].join('; ');

const PAGE_HEADERS = {
  'Content-Security-Policy': CONTENT_SECURITY_POLICY,
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
} as const;

/** A file, plain and compressed. Each is compressed once, because it does not change while it is served. */
interface ServedFile {
  readonly file: PageFile;
  readonly packed: Uint8Array | null;
}
type ServedPage = ReadonlyMap<string, ServedFile>;

export const createServedPage = (page: Page): ServedPage =>
  new Map([...page].map(([path, file]) => [path, { file, packed: compressBest(file.bytes) }]));

export function sendPage({ headers }: IncomingMessage, response: ServerResponse, { file, packed }: ServedFile): void {
  const { bytes, type, immutable } = file;
  const less = isGzipAccepted(headers['accept-encoding']) ? packed : null;
  const sent = less ?? bytes;
  response.writeHead(200, {
    ...PAGE_HEADERS,
    'Content-Type': type,
    'Content-Length': sent.byteLength,
    'Cache-Control': immutable ? 'public, max-age=31536000, immutable' : 'no-store',
    Vary: 'Accept-Encoding',
    ...(less === null ? {} : { 'Content-Encoding': 'gzip' }),
  });
  response.end(sent);
}

export type Page = ReadonlyMap<string, PageFile>;
export const PAGE_METHODS: readonly string[] = ['GET', 'HEAD'];

/** Only the files of the page are available without a token. */
export const createOpenCheck =
  (page: Page) =>
  (method: string, path: string): boolean =>
    PAGE_METHODS.includes(method) && page.has(path);

/**
 * The files of a built page by their paths, read at once.
 * @throws UsageError if there is no page
 */
export const pageFiles = readPageFolder;
