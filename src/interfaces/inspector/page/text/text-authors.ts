// Who gave a text of the ledger. The page marks texts of others by this table of fields, never by how a text looks.
// Only what an agent gave is an agent's text.

import type { JsonLine } from './json-lines.js';

/**
 * `caller`: a person, or a program of the service that embeds the platform. `request`: the requester, or the
 * service that defined its action; the entry does not say which. `platform`: everything else.
 */
export type Author = 'agent' | 'caller' | 'request' | 'platform';

/** A body with the members that name an author. */
interface EntryBodyWithAuthor {
  readonly by?: { readonly actor?: { readonly actor_type?: unknown } };
  readonly phase_failed_at?: unknown;
  readonly target?: { readonly target_type?: unknown };
}

/** The text at a path of a body: member names from the top, joined by dots. */
export interface FieldText {
  readonly path: string;
  readonly value: string;
}

type FieldRule = (body: EntryBodyWithAuthor, text: FieldText) => Author | null;

const given =
  (paths: RegExp, author: Author): FieldRule =>
  (_body, { path }) =>
    paths.test(path) ? author : null;

/** Words in a command to a session are those of its caller, who may be an agent. */
const bySender =
  (paths: RegExp): FieldRule =>
  ({ by }, { path }) =>
    paths.test(path) ? (by?.actor?.actor_type === 'agent' ? 'agent' : 'caller') : null;

const HASH = /^(?:sha256:)?[0-9a-f]{64}$/;

/** Values of a scope; the platform puts a hash where the value itself is an artifact (C90). */
const SCOPE: FieldRule = (_body, { path, value }) =>
  path.startsWith('scope.') ? (HASH.test(value) ? 'platform' : 'caller') : null;

/** C37: an agent's arguments, or their names. The platform puts a hash in the place of a content or a withheld name. */
const ARGUMENTS: FieldRule = (_body, { path, value }) => {
  if (!path.startsWith('args_summary.')) return null;
  return HASH.test(value) ? 'platform' : 'agent';
};

/**
 * The name of an action is a term of the platform only after the phase that compares it with the policy. The platform
 * puts a hash in the place of a name that it does not know.
 */
const ACTION: FieldRule = ({ phase_failed_at }, { path, value }) =>
  path === 'action' && !HASH.test(value) && UNCHECKED_PHASES.includes(String(phase_failed_at)) ? 'agent' : null;
const UNCHECKED_PHASES = ['RECEIVE', 'PARSE', 'VALIDATE_SCHEMA', 'VALIDATE_ACTION'];

/** What the platform's own actions and runs request. Other tools and tables need not even be registered. */
export const PLATFORM_NAMES: readonly string[] = [
  'export_bundle',
  'sandbox.create_directory',
  'sandbox.delete_file',
  'sandbox.list_files',
  'sandbox.read_file',
  'sandbox.rename_file',
  'sandbox.write_file',
  'sandbox_files',
];

/** The name of the tool or table that a run requests. */
const REQUESTED: FieldRule = ({ target }, { path, value }) => {
  const isTarget = path === 'target.name' && NAMED_TARGETS.includes(String(target?.target_type));
  return (isTarget || path === 'request.name') && !PLATFORM_NAMES.includes(value) ? 'request' : null;
};
const NAMED_TARGETS = ['tool', 'table'];

/** The rules of each type of entry. What no rule names was written by the platform. */
const RULES: Readonly<Record<string, readonly FieldRule[]>> = {
  input: [
    SCOPE,
    given(/^(?:reason|note|spec_file|idempotency_key)$/, 'caller'),
    bySender(/^command\.(?:reason|reason_detail|spec_file|step_id|phase_id|acknowledge\.gate_attempt_id)$/),
  ],
  run_created: [SCOPE, REQUESTED],
  audit_event: [given(/^notes$/, 'caller'), REQUESTED],
  step_trace: [ARGUMENTS, ACTION],
};

/** Who gave the text of a field of an entry. */
export function authorOfField(type: string, body: unknown, text: FieldText): Author {
  const rules = Object.hasOwn(RULES, type) ? (RULES[type] ?? []) : [];
  const object = (typeof body === 'object' && body !== null ? body : {}) as EntryBodyWithAuthor;
  for (const rule of rules) {
    const author = rule(object, text);
    if (author !== null) return author;
  }
  return 'platform';
}

/** Whose text content of each kind is; null for the platform's own. A kind that is not listed has its own name. */
const AUTHORS_OF_CONTENT: Readonly<Record<string, string | null>> = {
  raw_payload: 'agent',
  raw_payload_prefix: 'agent',
  session_report: 'agent',
  note: 'caller',
  prompt: 'caller',
  request: 'caller',
  session_spec: 'spec',
  file_content: 'file',
  explanation: 'tool',
  policy: null,
  machines: null,
};

export const authorOfContent = (kind: string): string | null =>
  Object.hasOwn(AUTHORS_OF_CONTENT, kind) ? (AUTHORS_OF_CONTENT[kind] ?? null) : kind.replaceAll('_', ' ');

/** Whose request people vote on: `promotion` and `export` are runs of callers, other names are actions of agents. */
export const authorOfRequest = (name: string): Author => (['promotion', 'export'].includes(name) ? 'caller' : 'agent');

/** Whose text a line has; null for the platform's own. */
export type LineAuthor = (line: Pick<JsonLine, 'path' | 'value'>) => string | null;

export const everyLine =
  (whose: string | null): LineAuthor =>
  () =>
    whose;

const textOf = (author: string): string | null => (author === 'platform' ? null : author);

/** The lines of the body of an entry. */
export const entryLines =
  (type: string, body: unknown): LineAuthor =>
  ({ path, value }) =>
    textOf(authorOfField(type, body, { path, value: value ?? '' }));

/** Members with a fixed form; in a payload, only if they have that form. */
const PAYLOAD_MEMBERS = /^(?:schema_version|id|action)$/;
const WORD = /^[A-Za-z0-9_.-]{1,64}$/;
export const payloadLines: LineAuthor = ({ path, value }) =>
  PAYLOAD_MEMBERS.test(path) && WORD.test(value ?? '') ? null : 'agent';

/** A response: the platform defines its form, and its result may contain the agent's own text. */
const RESPONSE_MEMBERS = /^(?:proposal_id|action|outcome|decision|error(?:\.error_code|\.message)?)$/;
export const responseLines: LineAuthor = ({ path }) => (RESPONSE_MEMBERS.test(path) ? null : 'result');

/** A request that people vote on: the name of its action is a term, its arguments are the requester's. */
export const requestLines =
  (name: string): LineAuthor =>
  ({ path, value }) =>
    path === 'action' && WORD.test(value ?? '') ? null : authorOfRequest(name);

/** Content of a kind, whose text `whose` is. */
export const contentLines = (whose: string | null): LineAuthor => (whose === 'agent' ? payloadLines : everyLine(whose));
