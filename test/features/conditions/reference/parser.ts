// Cedar's grammar for policies that forbid (docs.cedarpolicy.com, "Grammar for Cedar syntax"), without templates. Of
// what an operator means in terms of others, the parser says so: the scope of a policy is a condition, `is` with `in`
// is two conditions, and `has` with a path is one for each step.

import { patternParts, ReferenceSyntaxError, type Token, tokensOf, unescapeString } from './lexer.js';
import type { OperatorName } from './operators.js';
import { boolOf, type EntityUid, isLong, stringOf, type Value } from './values.js';

export type Variable = 'principal' | 'action' | 'resource' | 'context';

export type Expression =
  | { readonly kind: 'literal'; readonly value: Value }
  | { readonly kind: 'variable'; readonly name: Variable }
  | { readonly kind: 'set'; readonly members: readonly Expression[] }
  | { readonly kind: 'record'; readonly fields: readonly (readonly [string, Expression])[] }
  | { readonly kind: 'call'; readonly operator: OperatorName; readonly operands: readonly Expression[] };

export interface ForbidPolicy {
  readonly annotations: ReadonlyMap<string, string>;
  /** Scope and conditions together. */
  readonly condition: Expression;
}

export const parsePolicies = (text: string): readonly ForbidPolicy[] => new Parser(text).policies();
export const parseExpression = (text: string): Expression => new Parser(text).only();

const RESERVED: readonly string[] = ['true', 'false', 'if', 'then', 'else', 'in', 'like', 'has', 'is', '__cedar'];
const VARIABLES: readonly string[] = ['principal', 'action', 'resource', 'context'];
const RELATIONS: readonly string[] = ['<', '<=', '>=', '>', '!=', '==', 'in'];
const FUNCTIONS: readonly string[] = ['decimal', 'datetime', 'duration', 'ip'];
/** How many operands a method has, besides the one before its point. */
const METHODS: Readonly<Record<string, number>> = {
  ...operandCounts(0, 'isEmpty isIpv4 isIpv6 isLoopback isMulticast toDate toTime toMilliseconds toSeconds'),
  ...operandCounts(0, 'toMinutes toHours toDays'),
  ...operandCounts(1, 'contains containsAll containsAny hasTag getTag isInRange offset durationSince'),
  ...operandCounts(1, 'lessThan lessThanOrEqual greaterThan greaterThanOrEqual'),
};
const SIGNS_MAX = 4;

function operandCounts(count: number, names: string): Readonly<Record<string, number>> {
  return Object.fromEntries(names.split(' ').map((name) => [name, count]));
}

const literal = (value: Value): Expression => ({ kind: 'literal', value });
const call = (operator: OperatorName, ...operands: readonly Expression[]): Expression => ({
  kind: 'call',
  operator,
  operands,
});

class Parser {
  readonly #tokens: readonly Token[];
  #next = 0;

  constructor(text: string) {
    this.#tokens = tokensOf(text);
  }

  policies(): readonly ForbidPolicy[] {
    const policies: ForbidPolicy[] = [];
    while (this.#peek().kind !== 'end') policies.push(this.#policy());
    return policies;
  }

  only(): Expression {
    const expression = this.#expression();
    if (this.#peek().kind !== 'end') this.#fail('the end');
    return expression;
  }

  #peek(ahead = 0): Token {
    const last = this.#tokens.length - 1;
    return this.#tokens[Math.min(this.#next + ahead, last)] ?? { kind: 'end', text: '', at: 0 };
  }

  #fail(expected: string): never {
    const { text, at } = this.#peek();
    throw new ReferenceSyntaxError(`expected ${expected} at ${at}, found ${text}`);
  }

  #isAt(text: string): boolean {
    const token = this.#peek();
    return token.kind !== 'string' && token.text === text;
  }

  #accept(text: string): boolean {
    const isHere = this.#isAt(text);
    if (isHere) this.#next += 1;
    return isHere;
  }

  #expect(text: string): void {
    if (!this.#accept(text)) this.#fail(text);
  }

  #token(kind: Token['kind']): string {
    const token = this.#peek();
    if (token.kind !== kind) this.#fail(kind);
    this.#next += 1;
    return token.text;
  }

  #identifier(): string {
    if (RESERVED.includes(this.#peek().text)) this.#fail('an identifier that is not reserved');
    return this.#token('identifier');
  }

  #string(): string {
    return unescapeString(this.#token('string'));
  }

  #policy(): ForbidPolicy {
    const annotations = new Map<string, string>();
    while (this.#accept('@')) {
      const name = this.#token('identifier');
      if (annotations.has(name)) this.#fail('each annotation once');
      annotations.set(name, this.#isAt('(') ? this.#annotationText() : '');
    }
    this.#expect('forbid');
    const conditions = [...this.#scope(), ...this.#clauses()];
    this.#expect(';');
    return {
      annotations,
      condition: conditions.reduce((left, right) => call('&&', left, right), literal(boolOf(true))),
    };
  }

  #annotationText(): string {
    this.#expect('(');
    const text = this.#string();
    this.#expect(')');
    return text;
  }

  #scope(): readonly Expression[] {
    this.#expect('(');
    const principal = this.#scopeOf('principal');
    this.#expect(',');
    const action = this.#scopeOf('action');
    this.#expect(',');
    const resource = this.#scopeOf('resource');
    this.#accept(',');
    this.#expect(')');
    return [...principal, ...action, ...resource];
  }

  #scopeOf(name: Variable): readonly Expression[] {
    this.#expect(name);
    const variable: Expression = { kind: 'variable', name };
    if (this.#accept('==')) return [call('==', variable, this.#entity())];
    const conditions = [];
    if (name !== 'action' && this.#accept('is')) conditions.push(call('is', variable, literal(stringOf(this.#path()))));
    if (this.#accept('in')) conditions.push(call('in', variable, this.#scopeParent(name)));
    return conditions;
  }

  #scopeParent(name: Variable): Expression {
    if (name !== 'action' || !this.#accept('[')) return this.#entity();
    return { kind: 'set', members: this.#list(']', () => this.#entity()) };
  }

  #clauses(): readonly Expression[] {
    const clauses: Expression[] = [];
    for (let word = this.#peek().text; word === 'when' || word === 'unless'; word = this.#peek().text) {
      this.#next += 1;
      this.#expect('{');
      const body = this.#expression();
      this.#expect('}');
      clauses.push(word === 'when' ? body : call('!', body));
    }
    return clauses;
  }

  /** Items between commas; a comma may stand before the end. */
  #list<T>(end: string, item: () => T): readonly T[] {
    const items: T[] = [];
    while (!this.#accept(end)) {
      items.push(item());
      if (!this.#accept(',') && !this.#isAt(end)) this.#fail(end);
    }
    return items;
  }

  #path(): string {
    const names = [this.#identifier()];
    while (this.#isAt('::') && this.#peek(1).kind === 'identifier') {
      this.#next += 1;
      names.push(this.#identifier());
    }
    return names.join('::');
  }

  #entity(): Expression {
    const entityType = this.#path();
    this.#expect('::');
    return literal({ type: 'entity', entityType, id: this.#string() } satisfies EntityUid);
  }

  #expression(): Expression {
    if (!this.#accept('if')) return this.#or();
    const condition = this.#expression();
    this.#expect('then');
    const then = this.#expression();
    this.#expect('else');
    return call('if', condition, then, this.#expression());
  }

  #or(): Expression {
    let left = this.#and();
    while (this.#accept('||')) left = call('||', left, this.#and());
    return left;
  }

  #and(): Expression {
    let left = this.#relation();
    while (this.#accept('&&')) left = call('&&', left, this.#relation());
    return left;
  }

  #relation(): Expression {
    const left = this.#sum();
    const { kind, text } = this.#peek();
    if (kind === 'string') return left;
    if (RELATIONS.includes(text)) {
      this.#next += 1;
      return call(text as OperatorName, left, this.#sum());
    }
    if (this.#accept('has')) return this.#hasPath(left);
    if (this.#accept('like')) {
      return call('like', left, literal({ type: 'pattern', parts: patternParts(this.#token('string')) }));
    }
    if (!this.#accept('is')) return left;
    const isType = call('is', left, literal(stringOf(this.#path())));
    return this.#accept('in') ? call('&&', isType, call('in', left, this.#sum())) : isType;
  }

  #hasPath(left: Expression): Expression {
    if (this.#peek().kind === 'string') return call('has', left, literal(stringOf(this.#string())));
    let name = literal(stringOf(this.#identifier()));
    let [has, parent] = [call('has', left, name), left];
    while (this.#accept('.')) {
      parent = call('.', parent, name);
      name = literal(stringOf(this.#identifier()));
      has = call('&&', has, call('has', parent, name));
    }
    return has;
  }

  #sum(): Expression {
    let left = this.#product();
    for (;;) {
      if (this.#accept('+')) left = call('+', left, this.#product());
      else if (this.#accept('-')) left = call('-', left, this.#product());
      else return left;
    }
  }

  #product(): Expression {
    let left = this.#unary();
    while (this.#accept('*')) left = call('*', left, this.#unary());
    return left;
  }

  /** Either signs or exclamation marks. The sign before a number is part of it: so the least long can be written. */
  #unary(): Expression {
    const sign = this.#isAt('!') ? '!' : '-';
    let count = 0;
    while (this.#accept(sign)) count += 1;
    if (count > SIGNS_MAX) this.#fail(`at most ${SIGNS_MAX} of ${sign}`);
    const isNegative = sign === '-' && count > 0 && this.#peek().kind === 'integer';
    let operand = isNegative ? this.#accesses(this.#long(-1n)) : this.#accesses(this.#primary());
    for (let rest = isNegative ? count - 1 : count; rest > 0; rest -= 1) {
      operand = call(sign === '!' ? '!' : 'negate', operand);
    }
    return operand;
  }

  #long(sign: bigint): Expression {
    const value = sign * BigInt(this.#token('integer'));
    if (!isLong(value)) this.#fail('a number of 64 bits');
    return literal({ type: 'long', value });
  }

  #accesses(primary: Expression): Expression {
    let left = primary;
    for (;;) {
      if (this.#accept('[')) {
        left = call('.', left, literal(stringOf(this.#string())));
        this.#expect(']');
      } else if (this.#accept('.')) {
        const name = this.#identifier();
        left = this.#accept('(') ? this.#method(left, name) : call('.', left, literal(stringOf(name)));
      } else return left;
    }
  }

  #method(left: Expression, name: string): Expression {
    const operands = this.#list(')', () => this.#expression());
    if (METHODS[name] !== operands.length) this.#fail(`a method that takes ${operands.length} operands`);
    return call(name as OperatorName, left, ...operands);
  }

  #primary(): Expression {
    const { kind, text } = this.#peek();
    if (kind === 'string') return literal(stringOf(this.#string()));
    if (kind === 'integer') return this.#long(1n);
    if (this.#accept('true') || this.#accept('false')) return literal(boolOf(text === 'true'));
    if (this.#accept('[')) return { kind: 'set', members: this.#list(']', () => this.#expression()) };
    if (this.#accept('{')) return this.#record();
    if (this.#accept('(')) {
      const inner = this.#expression();
      this.#expect(')');
      return inner;
    }
    if (this.#peek(1).text === '::') return this.#entity();
    if (FUNCTIONS.includes(text)) return this.#function();
    if (!VARIABLES.includes(text)) this.#fail('an expression');
    return { kind: 'variable', name: this.#identifier() as Variable };
  }

  #function(): Expression {
    const name = this.#identifier() as OperatorName;
    this.#expect('(');
    const operands = this.#list(')', () => this.#expression());
    if (operands.length !== 1) this.#fail('one operand');
    return call(name, ...operands);
  }

  #record(): Expression {
    const fields = this.#list('}', () => {
      const name = this.#peek().kind === 'string' ? this.#string() : this.#identifier();
      this.#expect(':');
      return [name, this.#expression()] as const;
    });
    if (new Set(fields.map(([name]) => name)).size < fields.length) this.#fail('each field once');
    return { kind: 'record', fields };
  }
}
