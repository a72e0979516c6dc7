// Random sets of policies that forbid. Most expressions have the type that their place requires; some have another one,
// and many read attributes that a request does not have.

import type { TypeAndId } from '@cedar-policy/cedar-wasm/nodejs';
import { Chance } from './chance.js';
import {
  ABSENT,
  ACTIONS,
  ACTORS,
  ADDRESSES,
  CASES,
  DATETIMES,
  DECIMALS,
  DURATIONS,
  ENTITIES,
  type Field,
  FIELDS,
  GROUPS,
  LONGS,
  PATHS,
  RESOURCES,
  ROLES,
  STRINGS,
  TAGS,
  type ValueType,
} from './generate-requests.js';

/** How tightly a text binds: where a tighter one is required, it stands in parentheses. */
const BINDING = { if: 0, or: 1, and: 2, relation: 3, sum: 4, product: 5, unary: 6, member: 7 } as const;
type Binding = (typeof BINDING)[keyof typeof BINDING];

interface Text {
  readonly text: string;
  readonly binding: Binding;
}

const TYPES: readonly ValueType[] = [
  'bool',
  'string',
  'long',
  'decimal',
  'datetime',
  'duration',
  'ip',
  'entity',
  'set',
  'record',
];
const OF_ANOTHER_TYPE = 0.015;
/** What stands before the point of a method, and both operands of a comparison. */
const OPERAND_OF_ANOTHER_TYPE = 0.04;
const DEPTHS = [1, 1, 2, 2, 3, 4];
const POLICIES_MAX = 10;
/** Not accepted by the function, so that an evaluation fails. */
const MALFORMED: Readonly<Record<string, readonly string[]>> = {
  decimal: ['1', '1.', '.5', '+1.0', '1.00000', '1.0 ', '922337203685477.5808', '-922337203685477.5809'],
  datetime: [
    '2026-02-29',
    '2026-13-01',
    '2026-03-01T24:00:00Z',
    '2026-03-01T10:00:60Z',
    '2026-03-01T10:00:00+2400',
    '26-03-01',
    '2026-03-01T10:00:00',
  ],
  duration: ['', '-', '1', '1s1m', '1d1d', '1d-1s', '+1s', '9223372036854775808ms', '-106751991168d', ' 1s'],
  ip: [
    '10.0.0',
    '010.0.0.1',
    '10.0.0.1/33',
    '10.0.0.1/08',
    '::1::',
    '::ffff:1.2.3.4',
    '1:2:3:4:5:6:7',
    '::1/129',
    '256.0.0.1',
  ],
};
const LITERALS = { decimal: DECIMALS, datetime: DATETIMES, duration: DURATIONS, ip: ADDRESSES } as const;
const BIG_LONGS = ['9223372036854775807', '-9223372036854775808', '4611686018427387904', '3037000500'];

const member = (text: string): Text => ({ text, binding: BINDING.member });

function escapeString(chance: Chance, text: string, isPattern = false): string {
  const escaped = Array.from(text, (character) => {
    const code = character.codePointAt(0) ?? 0;
    if (character === '"' || character === '\\') return `\\${character}`;
    if (character === '*') return isPattern ? '\\*' : '*';
    if (character === '\n') return '\\n';
    if (code < 0x20 || code > 0x7e || chance.isLikely(0.02)) {
      return chance.isLikely(0.5) || code < 0x20 ? `\\u{${code.toString(16)}}` : character;
    }
    return chance.isLikely(0.01) ? `\\x${code.toString(16)}` : character;
  });
  return escaped.join('');
}

const quoted = (chance: Chance, text: string): string => `"${escapeString(chance, text)}"`;
export const entityText = ({ type, id }: TypeAndId): string => `${type}::"${id.replace(/["\\]/g, '\\$&')}"`;

const isIdentifier = (name: string): boolean => /^[a-z_]+$/.test(name);

/** Writes expressions of one policy. */
class ExpressionWriter {
  readonly #chance: Chance;

  constructor(chance: Chance) {
    this.#chance = chance;
  }

  /** A text for a place that requires a binding. */
  place(type: ValueType, depth: number, binding: Binding = BINDING.if): string {
    return this.#within(this.#expression(type, depth), binding);
  }

  /** An operand of a test. It fails to have the type more often than others do. */
  #operand(type: ValueType, depth: number, binding: Binding): string {
    const isOther = this.#chance.isLikely(OPERAND_OF_ANOTHER_TYPE);
    return this.place(isOther ? this.#chance.pick(TYPES) : type, depth, binding);
  }

  #within({ text, binding }: Text, required: Binding): string {
    return binding < required || this.#chance.isLikely(0.05) ? `(${text})` : text;
  }

  #expression(wanted: ValueType, depth: number): Text {
    const type = this.#chance.isLikely(OF_ANOTHER_TYPE) ? this.#chance.pick(TYPES) : wanted;
    if (depth > 0 && this.#chance.isLikely(0.04)) return this.#if(type, depth - 1);
    if (type === 'bool') return this.#bool(depth);
    const isRead = this.#chance.isLikely(type === 'long' || type === 'set' ? 0.3 : 0.5);
    if (isRead) return member(this.#read(type));
    switch (type) {
      case 'string':
        return this.#chance.isLikely(0.1) ? this.#tag() : member(quoted(this.#chance, this.#chance.pick(STRINGS)));
      case 'long':
        return this.#long(depth);
      case 'entity':
        return member(this.#chance.isLikely(0.5) ? this.#variable() : entityText(this.#chance.pick(ENTITIES)));
      case 'set':
        return this.#set(depth);
      case 'record':
        return this.#record(depth);
      case 'decimal':
      case 'ip':
        return this.#extension(type, depth);
      case 'datetime':
        return this.#datetime(depth);
      case 'duration':
        return this.#duration(depth);
    }
  }

  #variable(): string {
    return this.#chance.pick(['principal', 'action', 'resource']);
  }

  #if(type: ValueType, depth: number): Text {
    const [condition, then, otherwise] = [this.place('bool', depth), this.place(type, depth), this.place(type, depth)];
    return { text: `if ${condition} then ${then} else ${otherwise}`, binding: BINDING.if };
  }

  /** Where attributes of a type are: the text before the name, and the name. */
  #fieldOf(type: ValueType): readonly [parent: string, name: string] {
    const parents = { ...FIELDS, 'principal.manager': FIELDS.principal, 'resource.owner': FIELDS.principal };
    const found = Object.entries(parents).flatMap(([key, fields]: [string, readonly Field[]]) => {
      const parent = /^(?:principal|resource)/.test(key) ? key : `context.${key}`;
      return fields.filter(([, fieldType]) => fieldType === type).map(([name]) => [parent, name] as const);
    });
    const others: readonly (readonly [string, string])[] =
      type === 'set'
        ? ['labels', 'labels', 'scope'].map((name) => ['context', name])
        : type === 'datetime'
          ? [['context', 'now']]
          : type === 'record'
            ? ['args', 'facts', 'counters'].map((name) => ['context', name])
            : [];
    return this.#chance.pick([...found, ...others]);
  }

  #read(type: ValueType): string {
    if (type === 'record' && this.#chance.isLikely(0.2)) return 'context';
    const [parent, name] = this.#fieldOf(type);
    return this.#access(parent, name);
  }

  #access(parent: string, name: string): string {
    const isPlain = isIdentifier(name) && this.#chance.isLikely(0.9);
    return isPlain ? `${parent}.${name}` : `${parent}[${quoted(this.#chance, name)}]`;
  }

  #tag(): Text {
    return member(`${this.#variable()}.getTag(${this.#tagName()})`);
  }

  #tagName(): string {
    return this.#chance.isLikely(0.9) ? quoted(this.#chance, this.#chance.pick(TAGS)) : this.place('string', 0);
  }

  #long(depth: number): Text {
    if (depth <= 0 || this.#chance.isLikely(0.2)) return this.#longLiteral();
    const [sum, product] = [BINDING.sum, BINDING.product];
    switch (this.#chance.below(6)) {
      case 0:
        return {
          text: `${this.place('long', depth - 1, sum)} + ${this.place('long', depth - 1, product)}`,
          binding: sum,
        };
      case 1:
        return {
          text: `${this.place('long', depth - 1, sum)} - ${this.place('long', depth - 1, product)}`,
          binding: sum,
        };
      case 2: {
        const text = `${this.place('long', depth - 1, product)} * ${this.place('long', depth - 1, BINDING.unary)}`;
        return { text, binding: product };
      }
      case 3: {
        const signs = this.#chance.pick(['-', '-', '--', '- -', '---', '----']);
        return { text: `${signs}${this.place('long', depth - 1, BINDING.member)}`, binding: BINDING.unary };
      }
      default: {
        const unit = this.#chance.pick(['Milliseconds', 'Seconds', 'Minutes', 'Hours', 'Days']);
        return member(`${this.place('duration', depth - 1, BINDING.member)}.to${unit}()`);
      }
    }
  }

  #longLiteral(): Text {
    const text = this.#chance.isLikely(0.2) ? this.#chance.pick(BIG_LONGS) : String(this.#chance.pick(LONGS));
    return { text, binding: text.startsWith('-') ? BINDING.unary : BINDING.member };
  }

  #extension(type: keyof typeof LITERALS, depth: number): Text {
    const chance = this.#chance;
    if (depth > 0 && chance.isLikely(0.03)) return member(`${type}(${this.place('string', depth - 1)})`);
    const texts = chance.isLikely(0.04) ? (MALFORMED[type] ?? []) : LITERALS[type];
    return member(`${type}(${quoted(chance, chance.pick(texts))})`);
  }

  #datetime(depth: number): Text {
    if (depth <= 0 || this.#chance.isLikely(0.6)) return this.#extension('datetime', depth);
    const receiver = this.place('datetime', depth - 1, BINDING.member);
    if (this.#chance.isLikely(0.4)) return member(`${receiver}.toDate()`);
    return member(`${receiver}.offset(${this.place('duration', depth - 1)})`);
  }

  #duration(depth: number): Text {
    if (depth <= 0 || this.#chance.isLikely(0.6)) return this.#extension('duration', depth);
    const receiver = this.place('datetime', depth - 1, BINDING.member);
    if (this.#chance.isLikely(0.4)) return member(`${receiver}.toTime()`);
    return member(`${receiver}.durationSince(${this.place('datetime', depth - 1)})`);
  }

  #set(depth: number): Text {
    const of = this.#chance.pick(TYPES);
    const length = this.#chance.below(4);
    const members = Array.from({ length }, () => this.place(this.#chance.isLikely(0.9) ? of : 'long', depth - 2));
    const isTrailing = length > 0 && this.#chance.isLikely(0.1);
    return member(`[${members.join(', ')}${isTrailing ? ',' : ''}]`);
  }

  #record(depth: number): Text {
    const names = ['limit', 'dry_run', 'a b'].filter(() => this.#chance.isLikely(0.6));
    const fields = names.map((name) => {
      const value = this.place(name === 'limit' ? 'long' : 'bool', depth - 2);
      return `${isIdentifier(name) ? name : quoted(this.#chance, name)}: ${value}`;
    });
    const isRead = this.#chance.isLikely(0.2) && names.includes('limit');
    return member(`{${fields.join(', ')}}${isRead ? '.limit' : ''}`);
  }

  #bool(depth: number): Text {
    if (depth <= 0)
      return member(this.#chance.isLikely(0.5) ? this.#read('bool') : this.#chance.pick(['true', 'false']));
    const rules: readonly (readonly [weight: number, write: () => Text])[] = [
      [4, () => this.#and(depth - 1)],
      [4, () => this.#or(depth - 1)],
      [
        2,
        () => ({
          text: `${this.#chance.pick(['!', '!', '!!', '!!!!'])}${this.place('bool', depth - 1, 7)}`,
          binding: 6,
        }),
      ],
      [5, () => this.#guarded(depth - 1)],
      [2, () => this.#equality(depth - 1)],
      [3, () => this.#comparison(depth - 1)],
      [2, () => this.#like(depth - 1)],
      [2, () => this.#has()],
      [3, () => this.#in(depth - 1)],
      [2, () => this.#is(depth - 1)],
      [3, () => this.#setTest(depth - 1)],
      [2, () => this.#tagTest(depth - 1)],
      [1, () => this.#decimalTest(depth - 1)],
      [2, () => this.#ipTest(depth - 1)],
      [3, () => this.#timeTest(depth - 1)],
    ];
    let at = this.#chance.below(rules.reduce((sum, [weight]) => sum + weight, 0));
    const chosen = rules.find(([weight]) => (at -= weight) < 0);
    return chosen?.[1]() ?? member('true');
  }

  #and(depth: number): Text {
    const [left, right] = [this.place('bool', depth, BINDING.and), this.place('bool', depth, BINDING.relation)];
    return { text: `${left} && ${right}`, binding: BINDING.and };
  }

  #or(depth: number): Text {
    const [left, right] = [this.place('bool', depth, BINDING.or), this.place('bool', depth, BINDING.and)];
    return { text: `${left} || ${right}`, binding: BINDING.or };
  }

  #relation(left: string, operator: string, right: string): Text {
    return { text: `${left} ${operator} ${right}`, binding: BINDING.relation };
  }

  /** A comparison of an attribute, behind a test that the attribute is present. */
  #guarded(depth: number): Text {
    const type = this.#chance.pick(['long', 'string', 'datetime', 'duration', 'entity', 'set', 'bool'] as const);
    const [parent, name] = this.#fieldOf(type);
    const [root, ...rest] = `${parent}.${name}`.split('.') as [string, ...string[]];
    const isPath = rest.every(isIdentifier) && this.#chance.isLikely(0.9);
    const has = isPath ? `${root} has ${rest.join('.')}` : `${parent} has ${quoted(this.#chance, name)}`;
    const read = this.#access(parent, name);
    const other = this.place(type, depth, BINDING.sum);
    const tests: Readonly<Record<typeof type, readonly string[]>> = {
      long: ['<', '<=', '>', '>=', '==', '!='],
      datetime: ['<', '<=', '>', '>='],
      duration: ['<', '<=', '>', '>='],
      string: ['==', '!='],
      entity: ['in', '==', '!='],
      set: ['==', '!='],
      bool: ['==', '!='],
    };
    return { text: `${has} && ${read} ${this.#chance.pick(tests[type])} ${other}`, binding: BINDING.and };
  }

  #equality(depth: number): Text {
    const type = this.#chance.pick(TYPES);
    const other = this.#chance.isLikely(0.9) ? type : this.#chance.pick(TYPES);
    const [left, right] = [this.place(type, depth, BINDING.sum), this.place(other, depth, BINDING.sum)];
    return this.#relation(left, this.#chance.pick(['==', '!=']), right);
  }

  #comparison(depth: number): Text {
    const type = this.#chance.pick(['long', 'long', 'long', 'datetime', 'duration'] as const);
    const operator = this.#chance.pick(['<', '<=', '>', '>=']);
    return this.#relation(this.#operand(type, depth, BINDING.sum), operator, this.#operand(type, depth, BINDING.sum));
  }

  #like(depth: number): Text {
    const source = this.#chance.pick(STRINGS);
    const [from, to] = [this.#chance.below(source.length + 1), this.#chance.below(source.length + 1)];
    const pieces = [source.slice(0, Math.min(from, to)), source.slice(Math.max(from, to))];
    const whole = pieces.map((piece) =>
      escapeString(this.#chance, piece.toWellFormed().replaceAll('\ufffd', ''), true),
    );
    const star = this.#chance.pick(['*', '*', '*', '\\u{2a}']);
    const pattern = this.#chance.pick([
      whole.join(star),
      whole.join(''),
      `${star}${whole.join('*')}*`,
      star,
      `*${star}${whole[0] ?? ''}`,
    ]);
    return this.#relation(this.place('string', depth, BINDING.sum), 'like', `"${pattern}"`);
  }

  #has(): Text {
    const [parent, name] = this.#fieldOf(this.#chance.pick(TYPES));
    const [root, ...rest] = `${parent}.${name}`.split('.') as [string, ...string[]];
    if (rest.every(isIdentifier) && this.#chance.isLikely(0.6)) return this.#relation(root, 'has', rest.join('.'));
    return this.#relation(parent, 'has', quoted(this.#chance, name));
  }

  #in(depth: number): Text {
    const left = this.#chance.isLikely(0.7) ? this.#variable() : this.place('entity', depth, BINDING.sum);
    const above = () => entityText(this.#chance.pick([...ROLES, ...GROUPS, ...PATHS, ...CASES, ...ACTORS]));
    const right = this.#chance.pick([
      above(),
      above(),
      `[${[above(), above(), ...(this.#chance.isLikely(0.1) ? [this.place('long', 0)] : [])].join(', ')}]`,
      this.place('entity', depth, BINDING.sum),
      this.#chance.isLikely(0.8) ? 'context.scope' : this.place('set', depth, BINDING.sum),
    ]);
    return this.#relation(left, 'in', right);
  }

  #is(depth: number): Text {
    const type = this.#chance.pick(ENTITIES).type;
    const parent = this.#chance.isLikely(0.3) ? ` in ${this.place('entity', depth, BINDING.sum)}` : '';
    return this.#relation(this.place('entity', depth, BINDING.sum), 'is', `${type}${parent}`);
  }

  /** The same members in another order, repeated, or one of them missing. */
  #sameSets(depth: number): Text {
    const type = this.#chance.pick(TYPES);
    const members = Array.from({ length: 1 + this.#chance.below(3) }, () => this.place(type, depth - 1));
    const others = this.#chance.pick([members.toReversed(), [...members, ...members], members.slice(1)]);
    const [left, right] = [members, others].map((each) => `[${each.join(', ')}]`) as [string, string];
    return this.#relation(left, this.#chance.pick(['==', '!=']), right);
  }

  #setTest(depth: number): Text {
    if (this.#chance.isLikely(0.2)) return this.#sameSets(depth);
    const name = this.#chance.pick(['contains', 'contains', 'containsAll', 'containsAny', 'isEmpty']);
    const operand =
      name === 'isEmpty'
        ? ''
        : name === 'contains'
          ? this.place(this.#chance.pick(['string', 'entity', 'long']), depth)
          : this.place('set', depth);
    return member(`${this.#operand('set', depth, BINDING.member)}.${name}(${operand})`);
  }

  #tagTest(depth: number): Text {
    const owner = this.#chance.isLikely(0.7) ? this.#variable() : this.#operand('entity', depth, BINDING.member);
    const name = this.#tagName();
    const has = `${owner}.hasTag(${name})`;
    if (this.#chance.isLikely(0.4)) return member(has);
    const equal = `${owner}.getTag(${name}) ${this.#chance.pick(['==', '!='])} ${this.place('string', 0, BINDING.sum)}`;
    return this.#chance.isLikely(0.5)
      ? { text: equal, binding: BINDING.relation }
      : { text: `${has} && ${equal}`, binding: BINDING.and };
  }

  #decimalTest(depth: number): Text {
    const name = this.#chance.pick(['lessThan', 'lessThanOrEqual', 'greaterThan', 'greaterThanOrEqual']);
    const [left, right] = [
      this.#operand('decimal', depth, BINDING.member),
      this.#operand('decimal', depth, BINDING.if),
    ];
    return member(`${left}.${name}(${right})`);
  }

  #ipTest(depth: number): Text {
    const name = this.#chance.pick(['isIpv4', 'isIpv6', 'isLoopback', 'isMulticast', 'isInRange', 'isInRange']);
    // Otherwise few requests have two addresses of the same version.
    const areLiterals = this.#chance.isLikely(0.5);
    const [ip, range] = [BINDING.member, BINDING.if].map((binding) =>
      areLiterals ? this.#extension('ip', 0).text : this.#operand('ip', depth, binding),
    ) as [string, string];
    return member(`${ip}.${name}(${name === 'isInRange' ? range : ''})`);
  }

  /** A part of a time, compared with a value that it often has. */
  #timeTest(depth: number): Text {
    const operator = this.#chance.pick(['==', '!=', '<', '<=', '>', '>=']);
    const unit = this.#chance.pick(['Milliseconds', 'Seconds', 'Minutes', 'Hours', 'Days']);
    const tests = [
      () => [
        `${this.#operand('duration', depth, BINDING.member)}.to${unit}()`,
        this.#chance.pick(['-2', '-1', '0', '1']),
      ],
      () => [`${this.#operand('datetime', depth, BINDING.member)}.toDate()`, this.place('datetime', 0, BINDING.sum)],
      () => [`${this.#operand('datetime', depth, BINDING.member)}.toTime()`, this.place('duration', 0, BINDING.sum)],
    ];
    const [left = '', right = ''] = this.#chance.pick(tests)();
    return this.#relation(left, operator, right);
  }
}

/** Most policies have an open scope, so that their conditions are evaluated. */
function scopeText(chance: Chance): string {
  const open = (constraint: string): string => (chance.isLikely(0.65) ? '' : constraint);
  const one = (values: readonly TypeAndId[]): string => entityText(chance.pick(values));
  const principal = chance.pick([
    ` == ${one(ACTORS)}`,
    ` in ${one(ROLES)}`,
    ' is Actor',
    ` is Actor in ${one(ROLES)}`,
    ` in ${one(ABSENT)}`,
  ]);
  const groups = Array.from({ length: chance.below(4) }, () => one([...GROUPS, ...ACTIONS]));
  const action = chance.pick([` == ${one(ACTIONS)}`, ` in ${one(GROUPS)}`, ` in [${groups.join(', ')}]`]);
  const resource = chance.pick([
    ` == ${one(RESOURCES)}`,
    ` in ${one(PATHS)}`,
    ` is Path in ${one(PATHS)}`,
    ' is Turnpike::Tool',
  ]);
  return `principal${open(principal)}, action${open(action)}, resource${open(resource)}`;
}

export interface PolicyText {
  readonly id: string;
  readonly text: string;
}

/** One to ten policies. */
export function randomConditions(seed: number): readonly PolicyText[] {
  const chance = new Chance(seed);
  return Array.from({ length: 1 + chance.below(POLICIES_MAX) }, (_, index) => {
    const id = `policy-${index}`;
    const writer = new ExpressionWriter(chance);
    const clauses = Array.from({ length: chance.pick([0, 1, 1, 1, 1, 2, 2, 3]) }, () => {
      const word = chance.isLikely(0.75) ? 'when' : 'unless';
      return `\n${word} { ${writer.place('bool', chance.pick(DEPTHS))} }`;
    });
    const annotations = `@id("${id}")${chance.isLikely(0.3) ? ' @note' : ''}`;
    return { id, text: `${annotations}\nforbid (${scopeText(chance)})${clauses.join('')}; // ${index}` };
  });
}
