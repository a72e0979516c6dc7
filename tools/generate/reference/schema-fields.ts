// The fields of a JSON schema as rows of a table: path, type, limits, and whether a document must have them.

/** The keywords that the schemas of the contract use. */
export interface SchemaNode {
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly SchemaNode[];
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly patternProperties?: Readonly<Record<string, SchemaNode>>;
  readonly required?: readonly string[];
  readonly items?: SchemaNode;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly description?: string;
}

export interface SchemaField {
  /** `a.b` is a member, `a[]` an element of an array, `a.*` a value of a map with free keys. */
  readonly path: string;
  readonly type: string;
  readonly limits: string;
  /** A text if only some alternatives of a union require it. */
  readonly required: boolean | string;
  /** A field without fields of its own. */
  readonly leaf: boolean;
}

/** Every field below the schema, in the order of the schema. Alternatives of a union give one row per path. */
export function fieldsOf(schema: SchemaNode): readonly SchemaField[] {
  const fields = new Map<string, SchemaField>();
  collect(schema, '', '', fields);
  return [...fields.values()];
}

function collect(schema: SchemaNode, path: string, condition: string, fields: Map<string, SchemaField>): void {
  for (const alternative of schema.anyOf ?? [])
    collect(alternative, path, discriminatorOf(alternative) ?? condition, fields);
  if (schema.items !== undefined) collect(schema.items, `${path}[]`, condition, fields);
  for (const value of Object.values(schema.patternProperties ?? {})) collect(value, `${path}.*`, condition, fields);
  for (const [name, member] of Object.entries(schema.properties ?? {})) {
    const at = path === '' ? name : `${path}.${name}`;
    const isRequired = schema.required?.includes(name) === true;
    add({ path: at, ...describe(member), required: isRequired && condition !== '' ? condition : isRequired }, fields);
    collect(member, at, '', fields);
  }
}

function add(field: SchemaField, fields: Map<string, SchemaField>): void {
  const known = fields.get(field.path);
  if (known === undefined) {
    fields.set(field.path, field);
    return;
  }
  const type = known.type === field.type ? known.type : `${known.type} or ${field.type}`;
  const required = known.required === field.required ? known.required : known.required !== false;
  fields.set(field.path, { ...known, type, required });
}

/** For an alternative of a union: when it applies, by its constant member. */
function discriminatorOf(schema: SchemaNode): string | null {
  const [found] = Object.entries(schema.properties ?? {}).filter(([, member]) => member.const !== undefined);
  return found === undefined ? null : `required where \`${found[0]}\` is \`${String(found[1].const)}\``;
}

const describe = (schema: SchemaNode): Pick<SchemaField, 'type' | 'limits' | 'leaf'> => ({
  type: typeText(schema),
  limits: limitsText(schema),
  leaf: isLeaf(schema),
});

function isLeaf(schema: SchemaNode): boolean {
  if (schema.anyOf !== undefined) return schema.anyOf.every(isLeaf);
  if (schema.items !== undefined) return isLeaf(schema.items);
  if (schema.patternProperties !== undefined) return Object.values(schema.patternProperties).every(isLeaf);
  return schema.properties === undefined;
}

/** The type in words, as `array of string` or one of several values. */
export function typeText(schema: SchemaNode): string {
  if (schema.const !== undefined) return code(JSON.stringify(schema.const));
  if (schema.enum !== undefined) return schema.enum.map((value) => code(String(value))).join(', ');
  if (schema.anyOf !== undefined) return [...new Set(schema.anyOf.map(typeText))].join(' or ');
  if (schema.items !== undefined) return `array of ${typeText(schema.items)}`;
  const [value] = Object.values(schema.patternProperties ?? {});
  if (value !== undefined) return `map of ${typeText(value)}`;
  return schema.type ?? 'any JSON';
}

/** The limits as text; those of the elements of an array follow its own. */
export function limitsText(schema: SchemaNode): string {
  const [keys] = Object.keys(schema.patternProperties ?? {});
  const own = [
    range(schema.minimum, schema.maximum, ''),
    range(schema.minLength, schema.maxLength, ' characters'),
    range(schema.minItems, schema.maxItems, ' elements'),
    range(schema.minProperties, schema.maxProperties, ' members'),
    schema.pattern === undefined ? '' : `matches ${code(schema.pattern)}`,
    keys === undefined ? '' : `keys match ${code(keys)}`,
  ];
  const element = schema.items === undefined || schema.items.anyOf !== undefined ? '' : limitsText(schema.items);
  return [...own, element === '' ? '' : `each: ${element}`].filter((text) => text !== '').join('; ');
}

function range(from: number | undefined, to: number | undefined, unit: string): string {
  if (from === undefined && to === undefined) return '';
  if (from === undefined) return `at most ${number(to)}${unit}`;
  if (to === undefined) return `at least ${number(from)}${unit}`;
  return `${number(from)} to ${number(to)}${unit}`;
}

const number = (value: number | undefined): string => (value ?? 0).toLocaleString('en-US');

export const code = (text: string): string => `\`${text}\``;

/** A Markdown table. A bar inside a cell is escaped. */
export const markdownTable = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...rows]
    .map((row) => `| ${row.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`)
    .join('\n');
