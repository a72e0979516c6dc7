// Route definitions as data: the service validates requests, finds paths and generates the OpenAPI document from them.

import type { IncomingMessage, ServerResponse } from 'node:http';
import Type, { type Static, type TObject, type TSchema } from 'typebox';
import { closed } from '../../../core/contract/shapes.js';
import type { Right } from '../../../core/contract/token.js';
import { isConforming } from '../../../core/contract/validators.js';
import type { ReadControl } from '../../../engine/ports/pace.js';
import type { Principal } from '../../../engine/ports/token-book.js';
import type { ProblemCode } from '../../service/problems.js';
import type { WorkKind } from '../../admission/admission-limits.js';
import type { HttpService } from '../http-service.js';
import type { StreamOutput } from '../event-streams.js';
import { sha256 } from '../../../core/contract/hash.js';

/** A request after all checks. */
export interface RouteRequest<P, Q, B> {
  readonly principal: Principal;
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  /** The only headers that routes read; each occurs at most once, except `prefer`. */
  readonly headers: Readonly<Partial<Record<RequestHeader, string>>>;
  /** For long reads: charges them to the token, and is aborted when the client leaves. */
  readonly control: ReadControl;
}
export type RequestHeader =
  | 'host'
  | 'if-match'
  | 'if-none-match'
  | 'idempotency-key'
  | 'last-event-id'
  | 'prefer'
  | 'traceparent'
  | 'x-request-id';

/** The response of a route. */
export type RouteResponse =
  | { readonly status?: number; readonly json: unknown; readonly headers?: Readonly<Record<string, string>> }
  | {
      readonly status?: number;
      readonly bytes: string | Uint8Array;
      readonly type: string;
      readonly headers?: Readonly<Record<string, string>>;
    }
  /** Pieces of a body; each is produced when the client has read the one before. */
  | { readonly chunks: AsyncIterable<string>; readonly type: string }
  | { readonly status: 304; readonly headers: Readonly<Record<string, string>> }
  /** Runs until the client disconnects. */
  | { readonly stream: (out: StreamOutput, control: ReadControl) => void };

/** A response in the OpenAPI document. */
export interface ResponseShape {
  readonly description: string;
  readonly type?: string;
  readonly schema?: TSchema;
}

/**
 * Receives every request of the service before it is admitted, also for other paths: a server of the caller may add a
 * prefix. Never throws.
 */
export type RequestObserver<S> = (request: IncomingMessage, response: ServerResponse, service: S) => void;

export interface RouteDefinition<P extends TObject, Q extends TObject, B extends TSchema, S> {
  readonly method: 'GET' | 'POST';
  /** The path, with `{name}` for each parameter. */
  readonly path: string;
  /** Whether HEAD is also served. Never for a route whose reads are audited. */
  readonly head?: boolean;
  /**
   * Whether large responses are compressed for clients that accept it. Never where a response may contain both a secret
   * and text that another party has chosen: the compressed size would reveal the secret.
   */
  readonly isCompressed?: boolean;
  /** The kind of work. Default: `read` for GET, `step` for POST. */
  readonly kind?: WorkKind;
  readonly summary: string;
  /** The caller needs one of these rights. Empty: any token suffices. */
  readonly rights: readonly Right[];
  readonly params?: P;
  readonly query?: Q;
  /** A POST without one has the body `{}`. */
  readonly body?: B;
  readonly headers?: readonly RequestHeader[];
  /** Why a body is refused that does not match the schema. Default: INVALID_REQUEST. */
  readonly invalid?: ProblemCode;
  readonly responses: Readonly<Record<number, ResponseShape>>;
  readonly observe?: RequestObserver<S>;
  handle(request: RouteRequest<Static<P>, Static<Q>, Static<B>>, service: S): Promise<RouteResponse> | RouteResponse;
}

/** A route of a service `S`, with the types of its parameters erased. */
export interface Route<S = HttpService> extends Required<
  Omit<RouteDefinition<TObject, TObject, TSchema, S>, 'body' | 'observe' | 'handle'>
> {
  readonly body: TSchema | null;
  readonly observe?: RequestObserver<S>;
  handle(request: RouteRequest<unknown, unknown, unknown>, service: S): Promise<RouteResponse> | RouteResponse;
}

/** The schema of a body that is passed on unchanged. */
export const BinaryBody = Type.Unsafe<Uint8Array>({ type: 'string', contentMediaType: 'application/octet-stream' });

export const EmptyObject = Type.Object({}, closed);

export const createRouteFactory =
  <S>() =>
  <P extends TObject, Q extends TObject, B extends TSchema>({
    params,
    query,
    body,
    headers = [],
    head = false,
    isCompressed = false,
    kind,
    invalid = 'INVALID_REQUEST',
    ...rest
  }: RouteDefinition<P, Q, B, S>): Route<S> => ({
    ...rest,
    params: params ?? EmptyObject,
    query: query ?? EmptyObject,
    body: rest.method === 'GET' ? null : (body ?? EmptyObject),
    headers,
    head,
    isCompressed,
    invalid,
    kind: kind ?? (rest.method === 'GET' ? 'read' : 'step'),
    // The request was validated against the schemas from which these types are derived.
    handle: (request, service) => rest.handle(request as Parameters<typeof rest.handle>[0], service),
  });

export const route = createRouteFactory<HttpService>();

/** The HTTP methods of a route. */
export const methodsOf = ({ method, head }: Pick<Route, 'method' | 'head'>): readonly string[] =>
  head ? [method, 'HEAD'] : [method];

/** The values of a query or path, with numbers parsed from text; null if they do not match the schema. */
export function parseValues(schema: TObject, texts: Readonly<Record<string, unknown>>): object | null {
  const values = Object.fromEntries(
    Object.entries(texts).map(([name, text]) => [name, isNumber(schema, name) ? parseNumber(text) : text]),
  );
  return isConforming(schema, values) ? values : null;
}

const isNumber = ({ properties }: TObject, name: string): boolean =>
  Object.hasOwn(properties, name) && (properties[name] as { readonly type?: unknown }).type === 'integer';

const parseNumber = (text: unknown): unknown =>
  typeof text === 'string' && /^-?\d{1,15}$/.test(text) ? Number(text) : text;

/** The methods that a path serves, whatever route they belong to: a path may have several. */
export class RouteIndex {
  /** Routes by the number of path segments, each with its segments; null for a parameter. */
  readonly #byLength = new Map<
    number,
    { readonly parts: readonly (string | null)[]; readonly served: IndexedRoute }[]
  >();

  constructor(routes: readonly IndexedRoute[]) {
    for (const served of routes) {
      const parts = served.path.split('/').map((part) => (part.startsWith('{') ? null : part));
      const same = this.#byLength.get(parts.length) ?? [];
      this.#byLength.set(parts.length, [...same, { parts, served }]);
    }
  }

  /** Empty if the path is unknown. */
  methods(path: string): readonly string[] {
    const segments = path.split('/');
    return (this.#byLength.get(segments.length) ?? []).flatMap(({ parts, served }) =>
      parts.every((part, at) => part === null || part === segments[at]) ? methodsOf(served) : [],
    );
  }
}
type IndexedRoute = Pick<Route, 'method' | 'path' | 'head'>;

export const etagOf = (text: string): string => `"${sha256(text).slice(0, 32)}"`;

/** Whether If-Match names this tag. Weak tags never match. */
export const hasStrongMatch = (list: string, etag: string): boolean =>
  list.trim() === '*' || list.split(',').some((tag) => tag.trim() === etag);

/** Whether If-None-Match names this tag. It compares weakly, so tags of a proxy that compressed the bytes match. */
export const hasWeakMatch = (list: string, etag: string): boolean =>
  hasStrongMatch(list.replace(/(^|,)\s*W\//g, '$1'), etag);
