// Which paths a bag may have, and how a manifest writes them.

/** The declared version of a bag, e.g. 1.0 as { major: 1, minor: 0 }. */
export interface BagVersion {
  readonly major: number;
  readonly minor: number;
}
export const isBefore1 = ({ major }: BagVersion): boolean => major < 1;

const PATH_CHARACTERS_MAX = 4_096;
const PATH_SEGMENTS_MAX = 64;
/** A manifest can write only two control characters: CR and LF. */
const CONTROL = /[\0-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f]/;
/** Names that are not UTF-8 are read with this character, so two names could become equal. */
const REPLACEMENT = '\ufffd';

/** Why a decoded path is invalid in a bag, for people; null if it is valid. */
export function findPathProblem(path: string): string | null {
  if (path === '') return 'it is empty';
  if (path.length > PATH_CHARACTERS_MAX) return `it has more than ${PATH_CHARACTERS_MAX} characters`;
  if (path.startsWith('/') || /^[A-Za-z]:[/\\]/.test(path)) return 'it is absolute';
  if (path.startsWith('~')) return 'it begins with a tilde';
  if (path.includes('\\')) return 'it has a backslash';
  if (CONTROL.test(path)) return 'it has a control character';
  if (!path.isWellFormed() || path.includes(REPLACEMENT)) return 'it is not Unicode';
  const segments = path.split('/');
  if (segments.length > PATH_SEGMENTS_MAX) return `it is more than ${PATH_SEGMENTS_MAX} levels deep`;
  if (segments.includes('')) return 'it has an empty segment';
  return segments.some((segment) => segment === '.' || segment === '..') ? 'it has a dot segment' : null;
}

export const PAYLOAD_DIRECTORY = 'data/';
export const isPayload = (path: string): boolean => path.startsWith(PAYLOAD_DIRECTORY);

/** The path as a manifest writes it: only CR, LF and the percent sign are percent-encoded (RFC 8493 2.1.3). */
export const encodePath = (path: string): string =>
  path.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');

/**
 * Decodes a path of a manifest. Before 1.0 the percent sign itself was not encoded. `loose`: a percent sign that should
 * be encoded stands for itself; its meaning is unambiguous.
 */
export function decodePath(text: string, version: BagVersion): { readonly path: string; readonly loose: boolean } {
  if (!text.includes('%')) return { path: text, loose: false };
  if (isBefore1(version)) return { path: text.replace(/%0[AaDd]/g, decodePercent), loose: false };
  return { path: text.replace(/%(?:0[AaDd]|25)/g, decodePercent), loose: /%(?!0[AaDd]|25)/.test(text) };
}
const decodePercent = (code: string): string => String.fromCharCode(Number.parseInt(code.slice(1), 16));

/** Equal for names that another file system, or a person, would take for the same. */
export const normalizePath = (path: string): string => path.normalize('NFC').toLowerCase().toUpperCase();

const RESERVED = /^(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\.|$)/i;
const UNPORTABLE = /[<>:"|?*\r\n]|[. ]$/;
const SYSTEM_FILES: readonly string[] = ['.ds_store', 'thumbs.db', 'desktop.ini'];

export const isPortable = (path: string): boolean =>
  !path.split('/').some((segment) => RESERVED.test(segment) || UNPORTABLE.test(segment));
/** Whether an operating system creates and deletes this file by itself. */
export function isSystemFile(path: string): boolean {
  const name = path.slice(path.lastIndexOf('/') + 1).toLowerCase();
  return SYSTEM_FILES.includes(name) || name.startsWith('._');
}

// Parses and writes lines of manifest-<algorithm>.txt, tagmanifest-<algorithm>.txt and fetch.txt (RFC 8493 2.1.3,
// 2.2.1, 2.2.3).

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
