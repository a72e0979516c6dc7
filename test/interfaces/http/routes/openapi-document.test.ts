import { describe, expect, test } from '@jest/globals';
import Type from 'typebox';
import { isConforming } from '../../../../src/core/contract/validators.js';
import { openApiDocument } from '../../../../src/interfaces/http/routes/openapi-document.js';
import { ROUTES } from '../../../../src/interfaces/http/routes/system-routes.js';

const closed = { additionalProperties: false } as const;
const text = Type.String({ minLength: 1 });
const anything = Type.Object({}, { additionalProperties: true });
const map = <T extends Type.TSchema>(schema: T) => Type.Record(Type.String(), schema);
const Content = map(Type.Object({ schema: Type.Optional(anything) }, closed));
const Ref = Type.Object({ $ref: Type.String({ pattern: '^#/components/(responses|schemas)/[A-Za-z]+$' }) }, closed);
const Operation = Type.Object(
  {
    operationId: Type.String({ pattern: '^[A-Za-z0-9_]+$' }),
    summary: text,
    description: Type.Optional(text),
    parameters: Type.Optional(
      Type.Array(
        Type.Object(
          {
            name: text,
            in: Type.Enum(['path', 'query', 'header']),
            required: Type.Optional(Type.Boolean()),
            schema: anything,
          },
          closed,
        ),
      ),
    ),
    requestBody: Type.Optional(Type.Object({ required: Type.Boolean(), content: Content }, closed)),
    responses: Type.Record(
      Type.String({ pattern: '^(?:[1-5]\\d\\d|default)$' }),
      Type.Union([Ref, Type.Object({ description: text, content: Type.Optional(Content) }, closed)]),
    ),
  },
  closed,
);
/** The subset of OpenAPI 3.1.0 that the document uses. */
const OpenApi = Type.Object(
  {
    openapi: Type.Literal('3.1.0'),
    info: Type.Object(
      { title: text, version: text, license: Type.Object({ name: text, identifier: text }, closed) },
      closed,
    ),
    servers: Type.Array(Type.Object({ url: text }, closed)),
    security: Type.Array(map(Type.Array(text))),
    paths: Type.Record(
      Type.String({ pattern: '^/' }),
      Type.Object({ get: Type.Optional(Operation), post: Type.Optional(Operation) }, closed),
    ),
    components: Type.Object(
      { securitySchemes: map(anything), schemas: map(anything), responses: map(anything) },
      closed,
    ),
  },
  closed,
);

const document = JSON.parse(JSON.stringify(openApiDocument(ROUTES, '0.1.0'))) as {
  paths: Record<string, Record<string, Told>>;
};
interface Told {
  readonly operationId: string;
  readonly description?: string;
  readonly parameters?: readonly { readonly name: string; readonly in: string }[];
  readonly requestBody?: object;
  readonly responses: Readonly<Record<string, unknown>>;
}

describe('the OpenAPI document', () => {
  test('has the shape of OpenAPI 3.1', () => {
    expect(isConforming(OpenApi, document)).toBe(true);
  });

  test('contains every route once, with a unique operation id and every parameter of its path', () => {
    const told = Object.entries(document.paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, operation]) => ({ path, method, operation })),
    );
    expect(told.map(({ method, path }) => `${method} ${path}`).sort()).toEqual(
      ROUTES.map(({ method, path }) => `${method.toLowerCase()} ${path}`).sort(),
    );
    expect(new Set(told.map(({ operation }) => operation.operationId)).size).toBe(ROUTES.length);
    for (const { path, operation } of told) {
      const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      const known = (operation.parameters ?? []).filter((one) => one.in === 'path').map(({ name }) => name);
      expect(known.sort()).toEqual(names.sort());
    }
  });

  test.each(ROUTES.map((route) => [`${route.method} ${route.path}`, route] as const))(
    '%s: has its parameters, body and responses',
    (_name, { method, path, query, headers, body, responses: answers, rights }) => {
      const operation = document.paths[path]?.[method.toLowerCase()];
      const named = (place: string): string[] =>
        (operation?.parameters ?? []).filter((one) => one.in === place).map(({ name }) => name.toLowerCase());
      expect(named('query')).toEqual(Object.keys(query.properties).map((name) => name.toLowerCase()));
      expect(named('header')).toEqual(headers);
      expect(operation?.requestBody !== undefined).toBe(body !== null);
      expect(operation?.responses).toHaveProperty('default');
      expect(Object.keys(operation?.responses ?? {})).toEqual([...Object.keys(answers), 'default']);
      for (const right of rights) expect(operation?.description).toContain(right);
    },
  );

  test('contains the target of every reference', () => {
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)].map(([, to = '']) => to);
    expect(references.length).toBeGreaterThan(0);
    const at = (to: string): unknown =>
      to.split('/').reduce<unknown>((of, name) => (of as Record<string, unknown> | undefined)?.[name], document);
    for (const to of new Set(references)) expect([to, at(to)]).toEqual([to, expect.any(Object)]);
  });
});
