// docs/reference/http-api.md: every operation of the OpenAPI document that the service serves.

import { openApiDocument } from '../../../src/interfaces/http/routes/openapi-document.js';
import { ROUTES } from '../../../src/interfaces/http/routes/system-routes.js';
import { code, fieldsOf, limitsText, markdownTable, typeText, type SchemaNode } from './schema-fields.js';

type Content = Readonly<Record<string, { readonly schema?: SchemaNode }>>;
interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly schema: SchemaNode;
}
interface Operation {
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly description?: string; readonly content?: Content }>>;
}

export function httpApiPage(): string {
  const { paths } = JSON.parse(JSON.stringify(openApiDocument(ROUTES, '0'))) as {
    readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  };
  const operations = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ title: `${method.toUpperCase()} ${path}`, operation })),
  );
  return [
    '# HTTP API',
    'Every operation of the service over HTTP. A test generates this page from the OpenAPI 3.1 document that the service\n' +
      'serves at `/api/v1/openapi.json`. [HTTP](../http.md) explains tokens, limits and streams.',
    'Every operation needs a bearer token; where no right is named, any token will do. An error is a problem document\n' +
      '(RFC 9457) with `type`, `title`, `status`, `detail` and `code`; [errors](../errors.md) lists the codes.',
    markdownTable(
      ['Operation', 'Purpose'],
      operations.map(({ title, operation }) => [code(title), operation.summary]),
    ),
    ...operations.flatMap(({ title, operation }) => [`## ${code(title)}`, ...operationText(operation)]),
    '',
  ]
    .join('\n\n')
    .replace(/\n+$/, '\n');
}

function operationText({ summary, description, parameters, requestBody, responses }: Operation): readonly string[] {
  const rows = (parameters ?? []).map(({ name, in: place, required, schema }) => [
    code(name),
    place,
    typeText(schema),
    required === true ? 'yes' : 'no',
    limitsText(schema),
  ]);
  const answers = Object.entries(responses)
    .filter(([status]) => status !== 'default')
    .map(([status, { description: meaning = '', content }]) => [
      status,
      Object.keys(content ?? {})
        .map(code)
        .join(', '),
      meaning,
    ]);
  return [
    [summary, description].flatMap((text) => (text === undefined ? [] : [text.replace(/\.?$/, '.')])).join(' '),
    ...(rows.length === 0 ? [] : [markdownTable(['Parameter', 'In', 'Type', 'Required', 'Limits'], rows)]),
    ...(requestBody === undefined ? [] : bodyText(requestBody.content)),
    markdownTable(['Status', 'Content', 'Meaning'], answers),
  ];
}

function bodyText(content: Content): readonly string[] {
  const types = `The body is ${Object.keys(content).map(code).join(' or ')}.`;
  const rows = fieldsOf(content['application/json']?.schema ?? {}).map(({ path, type, required, limits }) => [
    code(path),
    type,
    required === true ? 'yes' : required === false ? 'no' : required,
    limits,
  ]);
  return rows.length === 0 ? [types] : [types, markdownTable(['Field', 'Type', 'Required', 'Limits'], rows)];
}
