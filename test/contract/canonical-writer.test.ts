import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import Type, { type TSchema } from 'typebox';
import { canonicalJson } from '../../src/contract/canonical-json.js';
import { canonicalWriter } from '../../src/contract/canonical-writer.js';
import { ENTRY_BODIES, ENTRY_TYPES, INPUT_SCHEMAS } from '../../src/contract/entry.js';
import { randomTree } from '../fixtures/random-tree.js';

const Thing = Type.Object({
  text: Type.String(),
  count: Type.Integer(),
  ratio: Type.Number(),
  names: Type.Array(Type.Enum(['a', 'b'])),
  maybe: Type.Union([Type.Object({ deep: Type.Optional(Type.String()) }), Type.Null()]),
  either: Type.Union([Type.String(), Type.Integer()]),
  flag: Type.Optional(Type.Boolean()),
  map: Type.Record(Type.String(), Type.String()),
});
const SCHEMAS: readonly TSchema[] = [Thing, ...Object.values(ENTRY_BODIES), ...Object.values(INPUT_SCHEMAS)];

describe('S4-09: the template of a schema writes what the canonicaliser writes', () => {
  test('for every entry of 200 random trees', () => {
    const seen = new Set<string>();
    for (let seed = 1; seed <= 200; seed += 1) {
      for (const { entry, text } of randomTree(seed).decisions.flatMap(({ entries }) => entries)) {
        seen.add(entry.type);
        expect(text === canonicalJson(entry)).toBe(true);
      }
    }
    expect(seen).toEqual(new Set(ENTRY_TYPES));
  }, 60_000);

  test('for values of another shape than the schema says, whatever they are', () => {
    const keys = fc.constantFrom(
      ...Object.keys(Thing.properties),
      'run_id',
      'body',
      'more',
      '\u{1F600}',
      '\ue000',
      '"',
    );
    const text = fc.string({ unit: 'binary' }).filter((value) => value.isWellFormed());
    const value = fc
      .letrec((tie) => ({
        any: fc.oneof(
          { maxDepth: 3 },
          text,
          fc.integer(),
          fc.double({ noNaN: true, noDefaultInfinity: true }),
          fc.boolean(),
          fc.constant(null),
          fc.constant(undefined),
          fc.array(tie('any').filter((item) => item !== undefined)),
          fc.dictionary(keys, tie('any')),
        ),
      }))
      .any.filter((any) => any !== undefined);
    fc.assert(
      fc.property(fc.constantFrom(...SCHEMAS), fc.oneof(value, fc.dictionary(keys, value)), (schema, any) => {
        expect(canonicalWriter(schema)(any)).toBe(canonicalJson(any));
      }),
      { numRuns: 3_000 },
    );
  });

  test('and refuses what JSON cannot say', () => {
    for (const wrong of [{ text: '\ud800' }, { count: Number.NaN }, { text: () => 'x' }, { ratio: Infinity }]) {
      expect(() => canonicalWriter(Thing)(wrong)).toThrow(expect.objectContaining({ code: 'INVARIANT' }));
    }
  });
});
