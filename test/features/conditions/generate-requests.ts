// Random entities and requests: actors in roles, actions in groups, and paths, tables, tools and cases as resources.
// Attributes are often missing, and seldom of another type than the conditions expect.

import type { CedarValueJson, Context, EntityJson, TypeAndId } from '@cedar-policy/cedar-wasm/nodejs';
import type { Chance } from './chance.js';
import type { RequestJson } from './reference/request.js';

const uid = (type: string, id: string): TypeAndId => ({ type, id });

export const ROLES = ['staff', 'editor', 'reviewer', 'maintainer', 'night "shift"'].map((id) => uid('Role', id));
export const ACTORS = ['a1', 'a2', 'a3', 'a4', 'Zoë', 'bot-😀'].map((id) => uid('Actor', id));
export const GROUPS = ['reads', 'changes', 'exports', 'all'].map((id) => uid('Action', id));
export const ACTIONS = ['file.read', 'file.write', 'table.query', 'tool.call', 'mail.send'].map((id) =>
  uid('Action', id),
);
export const PATHS = ['', '/a', '/a/b', '/a/b/c.txt', '/d', '/d/e*.md', '/d/\\f'].map((id) => uid('Path', id));
export const CASES = ['case-1', 'case-2'].map((id) => uid('Case', id));
const TABLES = ['people', 'payments'].map((id) => uid('Table', id));
const TOOLS = ['search', 'shell'].map((id) => uid('Turnpike::Tool', id));
const TOOLBOXES = ['safe', 'risky'].map((id) => uid('Turnpike::Toolbox', id));
/** Entities that no request contains. */
export const ABSENT = [uid('Actor', 'ghost'), uid('Path', '/ghost'), uid('Actor', 'staff')];
export const RESOURCES = [...PATHS, ...TABLES, ...TOOLS, ...CASES];
export const ENTITIES = [...ROLES, ...ACTORS, ...GROUPS, ...ACTIONS, ...TOOLBOXES, ...RESOURCES, ...ABSENT];

export const STRINGS = [
  '',
  'a',
  'ab',
  'a*b',
  'a\\b',
  '"quoted"',
  'Zoë',
  '😀 and 😀',
  'line\nline\t\r\0',
  '/a/b/c.txt',
  '/a/b/',
  'case-1',
  'secret',
  'public',
  'dana@example.com',
];
export const LONGS = [0, 1, -1, 2, 3, 5, 10, 100, -7, 65_536, 3_037_000_500, 9_007_199_254_740_991];
export const DECIMALS = [
  '0.0',
  '0.5',
  '0.50',
  '-0.0001',
  '1.2345',
  '99.9',
  '922337203685477.5807',
  '-922337203685477.5808',
];
export const DATETIMES = [
  '2026-03-01',
  '2026-03-01T00:00:00Z',
  '2026-02-28T23:59:59.999Z',
  '2026-03-01T12:30:00+0230',
  '2026-03-01T12:30:00.250-2359',
  '1969-12-31T23:59:59.999Z',
  '1970-01-01',
  '2024-02-29',
  '0000-01-01',
  '9999-12-31T23:59:59.999-2359',
];
export const DURATIONS = [
  '0ms',
  '1ms',
  '-1ms',
  '90s',
  '1h30m',
  '1d2h3m4s5ms',
  '-1d12h',
  '-1500ms',
  '106751991167d',
  '9223372036854775807ms',
  '-9223372036854775808ms',
];
export const ADDRESSES = [
  '10.0.0.1',
  '10.0.0.0/8',
  '10.0.0.0/16',
  '10.0.0.0/24',
  '10.0.7.9/24',
  '10.0.7.0/16',
  '224.0.0.0/3',
  'ff00::/7',
  '127.0.0.1',
  '127.0.0.0/7',
  '224.0.0.251',
  '::1',
  '::1/127',
  'fe80::/10',
  'FF02:0::1',
  '1:2:3:4:5:6:7:8',
  '0.0.0.0/0',
];

export type ScalarType = 'bool' | 'string' | 'long' | 'decimal' | 'datetime' | 'duration' | 'ip' | 'entity';
export type ValueType = ScalarType | 'set' | 'record';

const entity = (value: TypeAndId): CedarValueJson => ({ __entity: value });
const extension = (fn: string, arg: string): CedarValueJson => ({ __extn: { fn, arg } });
const SCALARS: readonly ScalarType[] = ['bool', 'string', 'long', 'decimal', 'datetime', 'duration', 'ip', 'entity'];

/** A value of a type; of a set, members of a type. */
export function randomValue(chance: Chance, type: ValueType, members?: ScalarType): CedarValueJson {
  switch (type) {
    case 'bool':
      return chance.isLikely(0.5);
    case 'string':
      return chance.pick(STRINGS);
    case 'long':
      return chance.pick(LONGS);
    case 'decimal':
      return extension('decimal', chance.pick(DECIMALS));
    case 'datetime':
      return extension('datetime', chance.pick(DATETIMES));
    case 'duration':
      return extension('duration', chance.pick(DURATIONS));
    case 'ip':
      return extension('ip', chance.pick(ADDRESSES));
    case 'entity':
      return entity(chance.pick(ENTITIES));
    case 'set':
      return Array.from({ length: chance.below(4) }, () => randomValue(chance, members ?? chance.pick(SCALARS)));
    case 'record':
      return { limit: randomValue(chance, 'long'), ...(chance.isLikely(0.5) ? { dry_run: chance.isLikely(0.5) } : {}) };
  }
}

/** What the conditions expect of an attribute: its name, its type, and of a set the type of its members. */
export type Field = readonly [name: string, type: ValueType, members?: ScalarType];

export const FIELDS = {
  args: [
    ['path', 'string'],
    ['amount', 'long'],
    ['items', 'set', 'string'],
    ['content type', 'string'],
    ['options', 'record'],
    ['dry_run', 'bool'],
  ],
  facts: [
    ['verified', 'bool'],
    ['risk', 'decimal'],
    ['seen_at', 'datetime'],
    ['address', 'ip'],
    ['rows', 'long'],
    ['about', 'entity'],
  ],
  counters: [
    ['steps', 'long'],
    ['denied', 'long'],
    ['elapsed', 'duration'],
  ],
  principal: [
    ['team', 'string'],
    ['level', 'long'],
    ['manager', 'entity'],
    ['grants', 'set', 'string'],
  ],
  resource: [
    ['owner', 'entity'],
    ['size', 'long'],
    ['public', 'bool'],
    ['created', 'datetime'],
    ['settings', 'record'],
  ],
} as const satisfies Record<string, readonly Field[]>;

export const TAGS = ['kind', 'stage', '😀'] as const;
const MISSING = 0.3;
const OF_ANOTHER_TYPE = 0.03;

function randomFields(chance: Chance, fields: readonly Field[]): Record<string, CedarValueJson> {
  const present = fields.filter(() => !chance.isLikely(MISSING));
  return Object.fromEntries(
    present.map(([name, type, members]) => [
      name,
      randomValue(chance, chance.isLikely(OF_ANOTHER_TYPE) ? chance.pick(SCALARS) : type, members),
    ]),
  );
}

const randomTags = (chance: Chance): Record<string, CedarValueJson> =>
  Object.fromEntries(TAGS.filter(() => chance.isLikely(0.4)).map((name) => [name, randomValue(chance, 'string')]));

/** A parent stands behind its children in these lists, so that there is no cycle. */
const parentsAmong = (chance: Chance, self: TypeAndId, possible: readonly TypeAndId[]): TypeAndId[] => [
  ...chance.some(possible.slice(possible.indexOf(self) + 1), 2),
];

function entityOf(
  chance: Chance,
  self: TypeAndId,
  parents: readonly TypeAndId[],
  fields: readonly Field[],
): EntityJson {
  const tags = chance.isLikely(0.5) ? { tags: randomTags(chance) } : {};
  return { uid: self, parents: [...parents], attrs: randomFields(chance, fields), ...tags };
}

/** The entities of a set of conditions: what its requests are about. */
export function randomEntities(chance: Chance): readonly EntityJson[] {
  const downPaths = [...PATHS].reverse();
  const above = new Map<string, readonly TypeAndId[]>([
    ['Role', ROLES],
    ['Path', downPaths],
    ['Actor', ROLES],
    ['Table', CASES],
    ['Turnpike::Tool', TOOLBOXES],
  ]);
  const present = ENTITIES.filter((each) => !ABSENT.includes(each));
  return present.map((self) => {
    const possible = self.type === 'Action' ? [...ACTIONS, ...GROUPS] : (above.get(self.type) ?? []);
    const fields = self.type === 'Actor' ? FIELDS.principal : RESOURCES.includes(self) ? FIELDS.resource : [];
    return entityOf(chance, self, parentsAmong(chance, self, possible), fields);
  });
}

function randomContext(chance: Chance): Context {
  const parts: Context = {
    args: randomFields(chance, FIELDS.args),
    facts: randomFields(chance, FIELDS.facts),
    counters: randomFields(chance, FIELDS.counters),
    labels: randomValue(chance, 'set', 'string'),
    scope: randomValue(chance, 'set', 'entity'),
    now: randomValue(chance, 'datetime'),
  };
  return Object.fromEntries(Object.entries(parts).filter(() => !chance.isLikely(0.05)));
}

const keyOf = ({ type, id }: TypeAndId): string => `${type}::${id}`;

/** A request with what it is about and all above it, and some others. */
export function randomRequest(chance: Chance, entities: readonly EntityJson[]): RequestJson {
  const of = (possible: readonly TypeAndId[]): TypeAndId => chance.pick(chance.isLikely(0.05) ? ABSENT : possible);
  const [principal, action, resource] = [of(ACTORS), of(ACTIONS), of(RESOURCES)];
  const wanted = new Set([principal, action, resource, ...chance.some(ENTITIES, 6)].map(keyOf));
  const byKey = new Map(entities.map((each) => [keyOf(each.uid as TypeAndId), each]));
  for (const key of wanted) for (const parent of byKey.get(key)?.parents ?? []) wanted.add(keyOf(parent as TypeAndId));
  const present = [...wanted].flatMap((key) => byKey.get(key) ?? []);
  return { principal, action, resource, context: randomContext(chance), entities: present };
}

/** What Turnpike writes into a request: no tags, and these forms of extension values. */
const WRITTEN: Readonly<Record<string, RegExp>> = {
  decimal: /^-?\d{1,11}\.\d{1,4}$/,
  datetime: /^[12]\d{3}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d{3})?Z)?$/,
  duration: /^-?(?:\d{1,9}[a-z]{1,2})+$/,
};

const isWritten = (value: CedarValueJson): boolean => {
  if (typeof value !== 'object' || value === null) return true;
  if (Array.isArray(value)) return value.every(isWritten);
  const found = (value as { readonly __extn?: { readonly fn: string; readonly arg: string } }).__extn;
  return found === undefined ? Object.values(value).every(isWritten) : WRITTEN[found.fn]?.test(found.arg) === true;
};

const writtenFields = (fields: Readonly<Record<string, CedarValueJson>>): Record<string, CedarValueJson> =>
  Object.fromEntries(
    Object.entries(fields).flatMap(([name, value]) => {
      const isRecord = name === 'args' || name === 'facts' || name === 'counters';
      if (isRecord) return [[name, writtenFields(value as Record<string, CedarValueJson>)]];
      return isWritten(value) ? [[name, value]] : [];
    }),
  );

/** The request without what Turnpike writes into none. */
export const asWritten = ({ context, entities, ...names }: RequestJson): RequestJson => ({
  ...names,
  context: writtenFields(context),
  entities: entities.map(({ uid: self, parents, attrs }) => ({ uid: self, parents, attrs: writtenFields(attrs) })),
});
