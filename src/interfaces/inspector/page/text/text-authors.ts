// Whose the texts of a JSON value are: what every view passes to the lines that it shows.

import { authorOfField, authorOfRequest } from '../../contract/field-author.js';
import type { JsonLine } from './json-lines.js';

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
