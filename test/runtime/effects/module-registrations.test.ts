// Which exports of a module are registrations.

import { describe, expect, test } from '@jest/globals';
import Type from 'typebox';
import { defineTarget, defineTool, type Tool } from '../../../src/runtime/effects/define-effects.js';
import { registrationsOfModule } from '../../../src/runtime/effects/module-registrations.js';

const closed = { additionalProperties: false };
const none = Type.Object({}, closed);
const toolOf = (name: string): Tool => defineTool({ name, input: none, output: none, run: () => ({}) });
const namesOf = (exported: Record<string, unknown>): readonly string[] =>
  registrationsOfModule(exported, 'm').tools.map(({ name }) => name);

describe('registrationsOfModule', () => {
  test('finds definitions alone, in lists, and in lists of objects', () => {
    const exported = { a: toolOf('a.a'), b: [toolOf('b.b')], c: { tools: [toolOf('c.c')] } };
    expect(namesOf(exported)).toEqual(['a.a', 'b.b', 'c.c']);
  });

  test('recognizes definitions that another copy of the module made', () => {
    class Tool {
      readonly definition = toolOf('other.copy').definition;
    }
    Object.defineProperty(Tool.prototype, Symbol.for('turnpike.definition'), { value: 'tool' });
    expect(namesOf({ tool: new Tool() })).toEqual(['other.copy']);
  });

  test('calls no getter and looks into no class instance', () => {
    const calls: string[] = [];
    const withGetter = {
      get tools() {
        calls.push('getter');
        return [toolOf('x.x')];
      },
    };
    class Service {
      readonly tools = [toolOf('y.y')];
    }
    expect(namesOf({ withGetter, service: new Service(), tool: toolOf('a.a') })).toEqual(['a.a']);
    expect(calls).toEqual([]);
  });

  test('ends on a value that contains itself', () => {
    const cycle: Record<string, unknown> = { tool: toolOf('a.a') };
    cycle['self'] = cycle;
    expect(namesOf({ cycle })).toEqual(['a.a']);
  });

  test('refuses a module with more values than its limit', () => {
    const tool = toolOf('a.a');
    expect(namesOf({ tool, list: Array.from({ length: 99_998 }, () => null) })).toEqual(['a.a']);
    expect(() => namesOf({ tool, list: Array.from({ length: 99_999 }, () => null) })).toThrow(
      'more than 100000 values',
    );
  });

  test('refuses registrations that a service could not open with', () => {
    const twice = { one: toolOf('a.a'), other: toolOf('a.a') };
    expect(() => namesOf(twice)).toThrow('this registration is invalid: a.a is registered twice');
    const target = defineTarget({
      name: 'audit_ledger',
      record: Type.Object({ id: Type.String() }, closed),
      key: ['id'],
    });
    expect(() => namesOf({ target })).toThrow("a name of the platform's own");
  });
});
