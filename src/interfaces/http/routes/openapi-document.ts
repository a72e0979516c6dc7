// Generates the OpenAPI 3.1 document from the routes, whose schemas already are JSON Schema.

import type { TObject, TSchema } from 'typebox';
import { PROBLEM_TYPE } from '../../service/problems.js';
import { BinaryBody, type ResponseShape, type RequestHeader, type Route } from './route.js';

type JsonDocument = Readonly<Record<string, unknown>>;

export function openApiDocument(routes: readonly Route[], version: string): JsonDocument {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) {
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: toOperation(route) };
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
        Problem: {
          description: 'The reason of the refusal (RFC 9457).',
          content: { [PROBLEM_TYPE]: { schema: REF_PROBLEM } },
        },
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

function toOperation({
  method,
  path,
  summary,
  rights,
  params,
  query,
  body,
  headers,
  responses: answers,
}: Route): JsonDocument {
  const parameters = [
    ...toParameters(params, 'path'),
    ...toParameters(query, 'query'),
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
    ...(body === null ? {} : { requestBody: { required: true, content: toContent(body) } }),
    responses: {
      ...Object.fromEntries(Object.entries(answers).map(([status, answer]) => [status, toResponse(answer)])),
      default: { $ref: '#/components/responses/Problem' },
    },
  };
}

const HEADER_NAMES: Readonly<Record<RequestHeader, string>> = {
  host: 'Host',
  'if-match': 'If-Match',
  'if-none-match': 'If-None-Match',
  'idempotency-key': 'Idempotency-Key',
  'last-event-id': 'Last-Event-ID',
  prefer: 'Prefer',
  traceparent: 'traceparent',
  'x-request-id': 'X-Request-ID',
};

const toParameters = ({ properties, required }: TObject, location: 'path' | 'query') =>
  Object.entries(properties).map(([name, schema]) => ({
    name,
    in: location,
    required: location === 'path' || (required as readonly string[] | undefined)?.includes(name) === true,
    schema: toPlainJson(schema),
  }));

const toContent = (body: TSchema): JsonDocument =>
  body === BinaryBody
    ? { 'application/json': { schema: {} }, 'application/octet-stream': {} }
    : { 'application/json': { schema: toPlainJson(body) } };

const toResponse = ({ description, type, schema }: ResponseShape): JsonDocument => ({
  description,
  ...(type === undefined ? {} : { content: { [type]: schema === undefined ? {} : { schema: toPlainJson(schema) } } }),
});

/** The schema as plain JSON, without the internal properties of TypeBox. */
const toPlainJson = (schema: TSchema): unknown => JSON.parse(JSON.stringify(schema));
