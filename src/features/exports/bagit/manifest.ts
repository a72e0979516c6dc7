// Parses and writes lines of manifest-<algorithm>.txt, tagmanifest-<algorithm>.txt and fetch.txt (RFC 8493 2.1.3,
// 2.2.1, 2.2.3).

import { decodePath, encodePath, findPathProblem, type BagVersion } from './paths.js';

/** Algorithms by their name in file names, with the number of hex digits of a digest. */
export const ALGORITHMS = { md5: 32, sha1: 40, sha224: 56, sha256: 64, sha384: 96, sha512: 128 } as const;
export type Algorithm = keyof typeof ALGORITHMS;
/** Algorithms for which collisions can be constructed. */
export const WEAK_ALGORITHMS: readonly Algorithm[] = ['md5', 'sha1'];
export const isAlgorithm = (name: string): name is Algorithm => Object.hasOwn(ALGORITHMS, name);

export interface ManifestName {
  readonly kind: 'payload' | 'tag';
  /** As written in the file name; it may be unsupported. */
  readonly algorithm: string;
}

/** A manifest of a bag whose algorithm this library supports. */
export interface ManifestFile {
  readonly path: string;
  readonly kind: 'payload' | 'tag';
  readonly algorithm: Algorithm;
}

/** Null if the path is not that of a manifest. */
export function parseManifestName(path: string): ManifestName | null {
  const [, tag, algorithm] = /^(tag)?manifest-([^/]+)\.txt$/i.exec(path) ?? [];
  return algorithm === undefined ? null : { kind: tag === undefined ? 'payload' : 'tag', algorithm };
}
export const manifestName = (kind: ManifestName['kind'], algorithm: Algorithm): string =>
  `${kind === 'tag' ? 'tag' : ''}manifest-${algorithm}.txt`;

/** Unusual notations of a path whose meaning is clear. */
export type PathOddity = 'asterisk' | 'relative' | 'percent';
interface ListedPath {
  readonly path: string;
  /** Why it is not a valid path of a bag; null if it is. */
  readonly problem: string | null;
  readonly oddities: readonly PathOddity[];
}

export type ManifestLine =
  | 'blank'
  | 'malformed'
  | (ListedPath & {
      /** Lower-case hex. */
      readonly digest: string;
    });

const LINE = /^([0-9A-Fa-f]+)[ \t]+(\S.*)$/s;

export function parseManifestLine(line: string, algorithm: Algorithm, version: BagVersion): ManifestLine {
  if (line === '') return 'blank';
  const [, digest, written = ''] = LINE.exec(line) ?? [];
  if (digest?.length !== ALGORITHMS[algorithm]) return 'malformed';
  // The md5sum tools put an asterisk before the name of a file that they read as binary.
  const starred = written.startsWith('*');
  const { path, problem, oddities } = parseListedPath(starred ? written.slice(1) : written, version);
  return { digest: digest.toLowerCase(), path, problem, oddities: starred ? ['asterisk', ...oddities] : oddities };
}

export const writeManifestLine = (digest: string, path: string): string => `${digest}  ${encodePath(path)}\n`;

/** Nothing is ever fetched: the line only names a file that may have been missing at first. */
export function parseFetchLine(line: string, version: BagVersion): 'blank' | 'malformed' | ListedPath {
  if (line === '') return 'blank';
  const [, written] = /^\S+[ \t]+(?:-|\d{1,15})[ \t]+(\S.*)$/s.exec(line) ?? [];
  return written === undefined ? 'malformed' : parseListedPath(written, version);
}

function parseListedPath(written: string, version: BagVersion): ListedPath {
  const decoded = decodePath(written, version);
  const relative = decoded.path.startsWith('./');
  const path = relative ? decoded.path.slice(2) : decoded.path;
  const oddities: PathOddity[] = [];
  if (relative) oddities.push('relative');
  if (decoded.loose) oddities.push('percent');
  return { path, problem: findPathProblem(path), oddities };
}
