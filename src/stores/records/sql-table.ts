// Maps the definition of a target to a table of a database.

import type { TargetDefinition } from '../../core/contract/policy/catalogue.js';
import { isJsonObject } from '../../core/contract/json.js';
import { RecordsError } from '../../core/errors.js';
import { OWN_PREFIX } from '../../engine/ports/effects/records.js';

/** Where a table is. `own` is the ledger's database, where table names of targets get a prefix. */
export type TablePlace = 'own' | 'sqlite' | 'postgres';

export type ColumnKind = 'string' | 'integer' | 'number' | 'boolean' | 'json';

export interface Column {
  readonly name: string;
  readonly kind: ColumnKind;
  /** The schema accepts null. */
  readonly nullable: boolean;
  /** Required in every record. */
  readonly required: boolean;
}

export interface Table {
  /** For the query builder: `name`, or `schema.name`. */
  readonly name: string;
  /** Without `case_id`. */
  readonly columns: readonly Column[];
  readonly key: readonly Column[];
  /** Whether every row belongs to a case: the table has the column `case_id`. */
  readonly scoped: boolean;
}

export const CASE_ID: Column = { name: 'case_id', kind: 'string', nullable: false, required: true };

const COLUMNS_MAX = 256;
const NESTING_MAX = 8;
const IDENTIFIER = /^[a-z][a-z0-9_]{0,62}$/;
/** Names that databases or this library reserve. */
const RESERVED = /^(?:sqlite_|pg_|turnpike_|information_schema$)/;

const tableCaches = { own: new WeakMap(), sqlite: new WeakMap(), postgres: new WeakMap() } as const satisfies Record<
  TablePlace,
  WeakMap<TargetDefinition, Table>
>;

/** The table of a target. @throws RecordsError RECORDS_TARGET if no table can store its records */
export function tableOf(target: TargetDefinition, place: TablePlace): Table {
  const tables: WeakMap<TargetDefinition, Table> = tableCaches[place];
  const table = tables.get(target) ?? readTarget(target, place);
  tables.set(target, table);
  return table;
}

/** The tables of targets. @throws RecordsError RECORDS_TARGET also if two targets would share a table */
export function tablesOf(targets: readonly TargetDefinition[], place: TablePlace): readonly Table[] {
  const tables = targets.map((target) => tableOf(target, place));
  const names = new Set<string>();
  for (const { name } of tables) {
    if (names.has(name)) throw targetError(name, 'two targets have this name');
    names.add(name);
  }
  return tables;
}

function readTarget({ name, record, key, plane }: TargetDefinition, place: TablePlace): Table {
  const columns = columnsOf(name, record);
  const keyColumns = key.map((part) => {
    const column = columns.find((one) => one.name === part);
    if (column === undefined) throw targetError(name, `its key has ${part}, its records have not`);
    if (column.required && !column.nullable && column.kind !== 'json') return column;
    throw targetError(
      name,
      `${part} is in its key: every record must have it, a string, number or boolean and never null`,
    );
  });
  if (new Set(key).size < key.length) throw targetError(name, 'its key has a column twice');
  return { name: nameOf(name, place), columns, key: keyColumns, scoped: plane === 'case' };
}

function nameOf(name: string, place: TablePlace): string {
  const parts = name.split('.');
  if (parts.length > (place === 'postgres' ? 2 : 1)) {
    throw targetError(name, place === 'postgres' ? 'more than one dot' : 'only PostgreSQL has names with a dot');
  }
  for (const part of parts) {
    if (!IDENTIFIER.test(part)) throw targetError(name, `a table's name must match ${IDENTIFIER.source}`);
    if (RESERVED.test(part)) throw targetError(name, 'its name is reserved');
  }
  return place === 'own' ? `${OWN_PREFIX}${name}` : name;
}

function columnsOf(target: string, schema: Readonly<Record<string, unknown>>): readonly Column[] {
  const { type, properties, required, additionalProperties } = schema;
  if (type !== 'object' || !isJsonObject(properties))
    throw targetError(target, 'its records are not described as objects');
  if (additionalProperties !== false)
    throw targetError(target, 'its records are open: set additionalProperties to false');
  const names = Object.keys(properties);
  if (names.length > COLUMNS_MAX) throw targetError(target, `more than ${COLUMNS_MAX} columns`);
  const always: readonly unknown[] = Array.isArray(required) ? required : [];
  return names.map((name) => {
    if (!IDENTIFIER.test(name)) throw targetError(target, `a column's name must match ${IDENTIFIER.source}`);
    if (name === CASE_ID.name || RESERVED.test(name)) throw targetError(target, `the column name ${name} is reserved`);
    return { name, ...shapeOf(properties[name]), required: always.includes(name) };
  });
}

/** How values of a schema are stored. Values that are not of exactly one scalar type are stored as JSON. */
function shapeOf(schema: unknown): Pick<Column, 'kind' | 'nullable'> {
  const types = new Set(typesOf(schema, 0));
  const nullable = types.has('null') || types.has('anything');
  types.delete('null');
  if (types.has('number')) types.delete('integer');
  const [only] = types;
  return { kind: types.size === 1 ? (SCALARS.find((kind) => kind === only) ?? 'json') : 'json', nullable };
}

const SCALARS = ['string', 'integer', 'number', 'boolean'] as const;

/** The JSON types of the values that a schema accepts. */
function typesOf(schema: unknown, depth: number): readonly unknown[] {
  if (!isJsonObject(schema) || depth > NESTING_MAX) return ['anything'];
  const { type, anyOf, oneOf } = schema;
  if (type !== undefined) return Array.isArray(type) ? (type as readonly unknown[]) : [type];
  if (Object.hasOwn(schema, 'const')) return [jsonTypeOf(schema['const'])];
  if (Array.isArray(schema['enum'])) return schema['enum'].map(jsonTypeOf);
  const members: unknown = anyOf ?? oneOf;
  return Array.isArray(members) ? members.flatMap((member) => typesOf(member, depth + 1)) : ['anything'];
}

function jsonTypeOf(value: unknown): string {
  if (value === null) return 'null';
  return Number.isSafeInteger(value) ? 'integer' : typeof value;
}

const targetError = (target: string, what: string): RecordsError =>
  new RecordsError({ code: 'RECORDS_TARGET', message: `the target ${target}: ${what}` });
