// The OpenAPI 3.1 document of the routes: their schemas are JSON Schema as they stand.

import type { TObject, TSchema } from 'typebox';
import { PROBLEM_TYPE } from '../problems.js';
import { Bytes, type AnswerShape, type AskedHeader, type Route } from './route.js';

type Document = Readonly<Record<string, unknown>>;

export function openApi(routes: readonly Route[], version: string): Document {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) {
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operationOf(route) };
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Turnpike', version, license: { name: 'Apache-2.0', identifier: 'Apache-2.0' } },
    servers: [{ url: '/' }],
    security: [{ bearer: [] }],
    paths,
    components: {
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } },
      schemas: { Problem: PROBLEM },
      responses: {
        Problem: { description: 'Why not (RFC 9457).', content: { [PROBLEM_TYPE]: { schema: REF_PROBLEM } } },
      },
    },
  };
}

const REF_PROBLEM = { $ref: '#/components/schemas/Problem' } as const;
const PROBLEM = {
  type: 'object',
  required: ['type', 'title', 'status', 'detail', 'code'],
  additionalProperties: false,
  properties: {
    type: { type: 'string', format: 'uri' },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string' },
    code: { type: 'string' },
  },
} as const;

function operationOf({ method, path, summary, rights, params, query, body, headers, answers }: Route): Document {
  const parameters = [
    ...parametersOf(params, 'path'),
    ...parametersOf(query, 'query'),
    ...headers.map((name) => ({ name: HEADER_NAMES[name], in: 'header', schema: { type: 'string' } })),
  ];
  return {
    operationId: `${method.toLowerCase()}${path.replace(/^\/api\/v1/, '').replace(/[^A-Za-z0-9]+/g, '_')}`.replace(
      /_$/,
      '',
    ),
    summary,
    ...(rights.length === 0 ? {} : { description: `Needs the right ${rights.join(' or ')}.` }),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === null ? {} : { requestBody: { required: true, content: contentOf(body) } }),
    responses: {
      ...Object.fromEntries(Object.entries(answers).map(([status, answer]) => [status, responseOf(answer)])),
      default: { $ref: '#/components/responses/Problem' },
    },
  };
}

const HEADER_NAMES: Readonly<Record<AskedHeader, string>> = {
  'if-match': 'If-Match',
  'if-none-match': 'If-None-Match',
  'idempotency-key': 'Idempotency-Key',
  'last-event-id': 'Last-Event-ID',
};

const parametersOf = ({ properties, required }: TObject, place: 'path' | 'query') =>
  Object.entries(properties).map(([name, schema]) => ({
    name,
    in: place,
    required: place === 'path' || (required as readonly string[] | undefined)?.includes(name) === true,
    schema: plainOf(schema),
  }));

const contentOf = (body: TSchema): Document =>
  body === Bytes
    ? { 'application/json': { schema: {} }, 'application/octet-stream': {} }
    : { 'application/json': { schema: plainOf(body) } };

const responseOf = ({ description, type, schema }: AnswerShape): Document => ({
  description,
  ...(type === undefined ? {} : { content: { [type]: schema === undefined ? {} : { schema: plainOf(schema) } } }),
});

/** As it goes out: what TypeBox remembers beside the schema is no JSON. */
const plainOf = (schema: TSchema): unknown => JSON.parse(JSON.stringify(schema));
