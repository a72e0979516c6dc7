// What a route is: data, from which requests are judged, the paths are laid out, and the OpenAPI document is made.

import Type, { type Static, type TObject, type TSchema } from 'typebox';
import { closed } from '../../../contract/shapes.js';
import type { Right } from '../../../contract/token.js';
import { isConforming } from '../../../contract/validators.js';
import type { ReadControl } from '../../../ports/pace.js';
import type { Principal } from '../../../ports/token-book.js';
import type { WorkKind } from '../../admission/admission-limits.js';
import type { HttpService } from '../http-service.js';
import type { StreamOutput } from '../event-streams.js';

/** What is asked, after everything of it has been checked. */
export interface RouteRequest<P, Q, B> {
  readonly principal: Principal;
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  /** Only of these is anything believed, and each is there once at most. */
  readonly headers: Readonly<Partial<Record<RequestHeader, string>>>;
  /** For long reads: it is charged to the token, and ends when the client leaves. */
  readonly control: ReadControl;
}
export type RequestHeader = 'if-match' | 'if-none-match' | 'idempotency-key' | 'last-event-id';

/** What is answered. */
export type RouteResponse =
  | { readonly status?: number; readonly json: unknown; readonly headers?: Readonly<Record<string, string>> }
  | {
      readonly status?: number;
      readonly bytes: string | Uint8Array;
      readonly type: string;
      readonly headers?: Readonly<Record<string, string>>;
    }
  /** Pieces of a body, each made when the client has read the one before. */
  | { readonly chunks: AsyncIterable<string>; readonly type: string }
  | { readonly status: 304; readonly headers: Readonly<Record<string, string>> }
  /** It goes on for as long as somebody listens. */
  | { readonly stream: (out: StreamOutput, control: ReadControl) => void };

/** An answer as the OpenAPI document tells it. */
export interface ResponseShape {
  readonly description: string;
  readonly type?: string;
  readonly schema?: TSchema;
}

export interface RouteDefinition<P extends TObject, Q extends TObject, B extends TSchema, S> {
  readonly method: 'GET' | 'POST';
  /** With `{name}` for each parameter. */
  readonly path: string;
  /** Whether a GET is answered without its body, too, where that is asked for. Never one that is told of. */
  readonly head?: boolean;
  /**
   * Whether a large answer is packed for whoever takes it so. Never where a secret may stand beside what somebody else
   * has chosen: how well that packs tells of the secret.
   */
  readonly packs?: boolean;
  /** What a request makes the service do. Default: `read` for GET, `step` for POST. */
  readonly kind?: WorkKind;
  readonly summary: string;
  /** One of these is needed; none: any token will do. */
  readonly rights: readonly Right[];
  readonly params?: P;
  readonly query?: Q;
  /** A POST without one has the body `{}`. */
  readonly body?: B;
  readonly headers?: readonly RequestHeader[];
  readonly responses: Readonly<Record<number, ResponseShape>>;
  handle(request: RouteRequest<Static<P>, Static<Q>, Static<B>>, service: S): Promise<RouteResponse> | RouteResponse;
}

/** A route whatever its parameters are, on a service `S`. */
export interface Route<S = HttpService> {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly head: boolean;
  readonly packs: boolean;
  readonly kind: WorkKind;
  readonly summary: string;
  readonly rights: readonly Right[];
  readonly params: TObject;
  readonly query: TObject;
  readonly body: TSchema | null;
  readonly headers: readonly RequestHeader[];
  readonly responses: Readonly<Record<number, ResponseShape>>;
  handle(request: RouteRequest<unknown, unknown, unknown>, service: S): Promise<RouteResponse> | RouteResponse;
}

/** A body that is taken as it is. */
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
    packs = false,
    kind,
    ...rest
  }: RouteDefinition<P, Q, B, S>): Route<S> => ({
    ...rest,
    params: params ?? EmptyObject,
    query: query ?? EmptyObject,
    body: rest.method === 'GET' ? null : (body ?? EmptyObject),
    headers,
    head,
    packs,
    kind: kind ?? (rest.method === 'GET' ? 'read' : 'step'),
    // What it is given has been held against the schemas that its types are of.
    handle: (request, service) => rest.handle(request as Parameters<typeof rest.handle>[0], service),
  });

export const route = createRouteFactory<HttpService>();

/** What a route is asked by. */
export const methodsOf = ({ method, head }: Pick<Route, 'method' | 'head'>): readonly string[] =>
  head ? [method, 'HEAD'] : [method];

/** The values of a query or path as their schemas have them, or null: numbers come as text. */
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

type IndexedRoute = Pick<Route, 'method' | 'path' | 'head'>;

/** The routes by their paths. What is found does not depend on the method: a path has one or several. */
export class RouteIndex<R extends IndexedRoute> {
  /** By the number of parts: each with its parts, null where any part fits. */
  readonly #byLength = new Map<number, { readonly parts: readonly (string | null)[]; readonly route: R }[]>();

  constructor(routes: readonly R[]) {
    for (const route of routes) {
      const parts = route.path.split('/').map((part) => (part.startsWith('{') ? null : part));
      const same = this.#byLength.get(parts.length) ?? [];
      this.#byLength.set(parts.length, [...same, { parts, route }]);
    }
  }

  /** The routes at a path. */
  find(path: string): readonly R[] {
    const segments = path.split('/');
    const routes: R[] = [];
    for (const { parts, route } of this.#byLength.get(segments.length) ?? []) {
      if (parts.every((part, at) => part === null || part === segments[at])) routes.push(route);
    }
    return routes;
  }

  /** The methods that a path has: none where there is nothing. */
  methods(path: string): readonly string[] {
    return this.find(path).flatMap(methodsOf);
  }
}
