// docs/reference/policy-files.md: every field of every policy file.

import { stringify } from 'yaml';
import { commentsOf } from './schema-comments.js';
import { POLICY_FILES, type PolicyFileReference } from './policy-files.js';
import { code, fieldsOf, markdownTable, type SchemaField, type SchemaNode } from './schema-fields.js';

export const policyFieldsOf = ({ schema }: PolicyFileReference): readonly SchemaField[] =>
  fieldsOf(JSON.parse(JSON.stringify(schema)) as SchemaNode);

export function policyFilesPage(): string {
  return [
    '# Policy files',
    'Every field of the files of a contract folder. A test generates this page from the schemas in\n' +
      '`src/core/contract/policy`. Any other field makes a file invalid.',
    'In a path, `[]` is an element of an array and `.*` a value of a map with free keys. Limits are inclusive; characters\n' +
      'are what a reader sees as one character.',
    markdownTable(
      ['File', 'Purpose'],
      POLICY_FILES.map(({ file, purpose }) => [`[${code(file)}](#${anchorOf(file)})`, purpose.replace('\n', ' ')]),
    ),
    ...POLICY_FILES.flatMap(sectionOf),
    '',
  ]
    .join('\n\n')
    .replace(/\n+$/, '\n');
}

function sectionOf(reference: PolicyFileReference): readonly string[] {
  const { file, purpose, declared, defaults, example } = reference;
  const comments = commentsOf(...declared);
  const rows = policyFieldsOf(reference).map((field) => [
    code(field.path),
    field.type,
    defaults[field.path] ?? (typeof field.required === 'string' ? field.required : 'required'),
    field.limits,
    field.leaf ? code(JSON.stringify(exampleAt(example, field.path))) : '',
    comments.get(field.path) ?? '',
  ]);
  const isYaml = file.endsWith('.yaml');
  const text = isYaml ? stringify(example, { lineWidth: 120 }) : `${JSON.stringify(example, null, 2)}\n`;
  return [
    `## ${file}`,
    purpose,
    markdownTable(['Field', 'Type', 'Default', 'Limits', 'Example', 'Meaning'], rows),
    `A file with every field:`,
    `\`\`\`${isYaml ? 'yaml' : 'json'}\n${text}\`\`\``,
  ];
}

/** The first value at a path of `fieldsOf`, or undefined. */
export function exampleAt(example: unknown, path: string): unknown {
  const steps = path.split(/\.|(?=\[\])/);
  return valuesAt([example], steps).find((value) => value !== undefined);
}

function valuesAt(values: readonly unknown[], steps: readonly string[]): readonly unknown[] {
  const [step, ...rest] = steps;
  if (step === undefined) return values;
  const below = values.flatMap((value): readonly unknown[] => {
    if (step === '[]') return Array.isArray(value) ? value : [];
    if (typeof value !== 'object' || value === null) return [];
    return step === '*' ? Object.values(value) : [(value as Readonly<Record<string, unknown>>)[step]];
  });
  return valuesAt(below, rest);
}

const anchorOf = (title: string): string => title.toLowerCase().replace(/[^a-z0-9 _-]/g, '');
