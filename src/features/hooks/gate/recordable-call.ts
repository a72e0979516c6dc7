// A call of a coding agent as it may be recorded: without secrets, with canonical paths. Policy decides by what is
// recorded, and the client executes what it has asked about. So a call whose decided parts had a secret names them, and
// has no reading; a secret in any other text is only removed.

import { isJsonObject, type Json, type JsonObject, canonicalJson } from '../../../core/contract/json.js';
import { sha256 } from '../../../core/contract/hash.js';
import type { SecretPattern } from '../../../core/contract/policy/secret-patterns.js';
import type { Dialect } from '../dialects/dialect.js';
import type { HookEvent, NativeCall, ReportedOutcome } from '../hook-event.js';
import { PATH_CHARS_MAX, WORD_PATHS_MAX } from '../native-calls.js';
import { shellCommands } from '../calls/shell-words.js';
import { namedPaths, writtenPath } from '../calls/word-paths.js';

/** Texts of an event beyond this are recorded by their hashes. */
const EVENT_BYTES_MAX = 1_048_576;
const RESULT_BYTES_MAX = 524_288;

/** An event of a call, and its outcome if it reports one. */
export type CallEvent = Extract<HookEvent, { readonly call: NativeCall }>;

/** What may be recorded of an event. */
export interface RecordableCall {
  readonly call: NativeCall;
  /** The canonical JSON of the event, or of its hash. */
  readonly event: string;
  /** Null for a call that has not been made yet. */
  readonly outcome: ReportedOutcome | null;
}

export interface RecordingRules {
  readonly dialect: Pick<Dialect, 'readEvent'>;
  readonly secrets: readonly SecretPattern[];
  /** The canonical form of a path in a folder. */
  readonly resolve: (path: string, cwd: string) => string;
  readonly project: string;
}

/** @returns null if the event cannot be read without its secrets: nothing of it may be recorded */
export function recordableCall(event: JsonObject, read: CallEvent, recording: RecordingRules): RecordableCall | null {
  const redacted = redactSecrets(event, recording.secrets);
  const again = redacted.original_sha256 === null ? read : recording.dialect.readEvent(redacted.value);
  if (again === null || !('call' in again) || !isSameEvent(read, again)) return null;
  const input = recordableInput(read, again.call.input, recording);
  if (input === null) return null;
  const text = canonicalJson(redacted.value);
  const isLong = Buffer.byteLength(text) > EVENT_BYTES_MAX;
  return {
    call: { ...again.call, call_id: read.call.call_id, input },
    event: isLong ? canonicalJson({ sha256: sha256(text), bytes: Buffer.byteLength(text) }) : text,
    outcome: 'outcome' in again ? recordableOutcome(again.outcome, recording) : null,
  };
}

/** Whether both are about the same tool in the same session and folder. */
const isSameEvent = (one: CallEvent, other: CallEvent): boolean =>
  one.kind === other.kind &&
  one.call.tool === other.call.tool &&
  one.session === other.session &&
  one.agent === other.agent &&
  one.cwd === other.cwd;

function recordableInput({ call, cwd }: CallEvent, clean: JsonObject, recording: RecordingRules): JsonObject | null {
  const { project } = recording;
  const folder = cwd ?? project;
  const isChanged = (name: string): boolean => !isSame(call.input[name], clean[name]);
  const changed = namesOf(call.input, clean).filter(isChanged);
  const paths = withCanonicalPaths(call.input, { ...recording, folder });
  const resolved = withFolders(paths, call.tool, { ...recording, folder });
  if (resolved === null) return null;
  // A member that had a secret is recorded as it is without, and not resolved. A folder can have one too.
  const kept = Object.fromEntries(Object.entries(resolved).filter(([name]) => !changed.includes(name)));
  const input = redactSecrets({ ...clean, ...kept }, recording.secrets).value;
  const hidden = namesOf(resolved, input).filter((name) => !isSame({ ...clean, ...kept }[name], input[name]));
  const redacted = [...new Set([...changed, ...hidden])].sort();
  if (redacted.length === 0) return input;
  return { ...input, original_sha256: sha256(canonicalJson(call.input)), redacted };
}

const isSame = (one: Json | undefined, other: Json | undefined): boolean =>
  one === undefined || other === undefined ? one === other : canonicalJson(one) === canonicalJson(other);

const namesOf = (one: JsonObject, other: JsonObject): readonly string[] => [
  ...new Set([...Object.keys(one), ...Object.keys(other)]),
];

interface Folder extends Pick<RecordingRules, 'resolve' | 'project'> {
  /** The working directory of the client. */
  readonly folder: string;
}

function withCanonicalPaths(input: JsonObject, { resolve, folder }: Folder): JsonObject {
  const canonical = (path: Json | undefined): Json =>
    typeof path === 'string' ? resolve(path, folder) : (path ?? null);
  const { path, paths, cwd } = input;
  return {
    ...input,
    ...(path === undefined ? {} : { path: canonical(path) }),
    ...(cwd === undefined ? {} : { cwd: canonical(cwd) }),
    ...(Array.isArray(paths) ? { paths: paths.map(canonical) } : {}),
  };
}

/**
 * The input with the folder of a command or a search, where the client works in another one than the project, and with
 * the paths that words of a command have.
 * @returns null if they are too many
 */
function withFolders(input: JsonObject, tool: string, of: Folder): JsonObject | null {
  const folder = of.resolve('.', of.folder);
  const elsewhere = (name: string): JsonObject =>
    input[name] === undefined && folder !== '.' ? { [name]: folder } : {};
  if (tool === 'native.search') return { ...input, ...elsewhere('path') };
  if (tool !== 'native.shell') return input;
  const cwd = typeof input['cwd'] === 'string' ? input['cwd'] : folder;
  const words = wordPaths(input['command'], cwd, of);
  if (words === null) return null;
  return { ...input, ...elsewhere('cwd'), ...(words.length === 0 ? {} : { paths: words }) };
}

/** The texts of a command whose path is not the one that is written. A command without a reading has none. */
function wordPaths(command: Json | undefined, folder: string, { resolve, project }: Folder): JsonObject[] | null {
  const text = isJsonObject(command) ? command['text'] : undefined;
  const commands = typeof text === 'string' ? shellCommands(text) : null;
  const named = commands === null ? null : namedPaths(commands.flat());
  // Longer texts are no paths for the kernel.
  const texts = (named ?? []).filter((one) => one.length <= PATH_CHARS_MAX && !one.includes('\0'));
  const cwd = folder.startsWith('/') ? folder : `${project}/${folder}`;
  const paths = texts
    .map((word) => ({ word, path: resolve(word, cwd) }))
    .filter(({ word, path }) => path !== writtenPath(word, folder));
  const fits = paths.length <= WORD_PATHS_MAX && paths.every(({ path }) => path.length <= PATH_CHARS_MAX);
  return fits ? paths : null;
}

function recordableOutcome({ status, result }: ReportedOutcome, { secrets }: RecordingRules): ReportedOutcome {
  return { status, result: result === null ? null : withinLimit(redactSecrets(result, secrets).value) };
}

/** A result that is too long is recorded by its hash. */
function withinLimit(result: JsonObject): JsonObject {
  const text = canonicalJson(result);
  const bytes = Buffer.byteLength(text);
  return bytes <= RESULT_BYTES_MAX
    ? result
    : { truncated: true, bytes, sha256: sha256(text), beginning: text.slice(0, 4_096).toWellFormed() };
}

/** A value without secrets. */
interface SecretFreeValue {
  readonly value: JsonObject;
  /** The hash of the canonical JSON of the original; null if nothing was removed. */
  readonly original_sha256: string | null;
}

const CLASSES: Readonly<Record<SecretPattern['characters'], RegExp>> = {
  hex: /[0-9a-fA-F]/,
  alphanumeric: /[0-9A-Za-z]/,
  base64url: /[0-9A-Za-z_-]/,
  base64: /[0-9A-Za-z+/=]/,
  visible: /[!-~]/,
  // The body of a PEM block, also as one line of JSON or shell text.
  block: /[0-9A-Za-z+/=\s\\:,-]/,
};

/**
 * The value without the secrets that the patterns describe, in every text and member name. A pattern is a beginning and
 * the characters that may follow, so that a search takes one pass and no pattern of a policy can make it slow.
 */
export function redactSecrets(value: JsonObject, patterns: readonly SecretPattern[]): SecretFreeValue {
  const state = { found: false };
  const redacted = redactValue(value, (text) => {
    const clean = removeSecrets(text, patterns);
    if (clean !== text) state.found = true;
    return clean;
  });
  if (!state.found) return { value, original_sha256: null };
  return { value: redacted as JsonObject, original_sha256: sha256(canonicalJson(value)) };
}

function redactValue(value: Json, redact: (text: string) => string): Json {
  if (typeof value === 'string') return redact(value);
  if (Array.isArray(value)) return value.map((item: Json) => redactValue(item, redact));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [redact(name), redactValue(item, redact)]));
}

/** A secret in a text: where it begins and ends, and the name of its pattern. */
type Finding = readonly [start: number, end: number, name: string];

/** The text with each secret replaced by the name of its pattern. Secrets that overlap are replaced together. */
function removeSecrets(text: string, patterns: readonly SecretPattern[]): string {
  const found = patterns.flatMap((pattern) => findSecrets(text, pattern)).sort(([one], [other]) => one - other);
  let [clean, from] = ['', 0];
  for (const [start, end, name] of found) {
    if (start >= from) clean += `${text.slice(from, start)}[secret removed: ${name}]`;
    from = Math.max(from, end);
  }
  return clean + text.slice(from);
}

/** All secrets of one pattern, in the original text: another pattern could cut them. */
function findSecrets(text: string, { name, prefix, characters, min }: SecretPattern): readonly Finding[] {
  const members = CLASSES[characters];
  const found: Finding[] = [];
  for (let at = text.indexOf(prefix); at >= 0;) {
    const body = at + prefix.length;
    let end = body;
    while (end < text.length && members.test(text.charAt(end))) end += 1;
    const isSecret = end - body >= min;
    if (isSecret) found.push([at, end, name]);
    // Characters after a prefix that are too few may be another prefix: `sk-sk-...`.
    at = text.indexOf(prefix, isSecret ? end : at + 1);
  }
  return found;
}
