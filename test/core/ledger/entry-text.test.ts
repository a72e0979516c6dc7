import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { TSchema } from 'typebox';
import { canonicalJson } from '../../../src/core/contract/json.js';
import { INPUT_SCHEMAS, type Entry, type EntryType } from '../../../src/core/contract/run/entry.js';
import { ENTRY_BODIES, ENTRY_TYPES } from '../../fixtures/features.js';
import { bodyText } from '../../../src/core/ledger/entry-text.js';
import { sized } from '../../fixtures/campaign.js';
import { character } from '../../fixtures/characters.js';
import { randomTree } from '../../fixtures/random-tree.js';

interface Shape extends TSchema {
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Shape[];
  readonly items?: Shape;
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly required?: readonly string[] | undefined;
  readonly patternProperties?: Readonly<Record<string, Shape>>;
}

const text = fc.oneof(
  fc.string({ unit: character, maxLength: 12 }).filter((value) => value.isWellFormed()),
  fc.constantFrom('run_1.1', 'sha256:ab', '"', '\\', 'ü', '\u2028', '\0', ''),
);

/**
 * Random values with the members of a schema. Texts are arbitrary, since a template must not rely on their patterns.
 */
function instances({
  type,
  const: only,
  enum: names,
  anyOf,
  items,
  properties,
  required,
  patternProperties,
}: Shape): fc.Arbitrary<unknown> {
  if (only !== undefined) return fc.constant(only);
  if (names !== undefined) return fc.constantFrom(...names);
  if (anyOf !== undefined) return fc.oneof(...anyOf.map(instances));
  if (type === 'integer') return fc.nat();
  if (type === 'boolean') return fc.boolean();
  if (type === 'null') return fc.constant(null);
  if (items !== undefined) return fc.array(instances(items), { maxLength: 3 });
  if (patternProperties !== undefined) return fc.dictionary(text, instances(Object.values(patternProperties)[0]!));
  if (properties === undefined) return text;
  const members = Object.entries(properties).map(([name, member]) =>
    required?.includes(name) === true
      ? instances(member).map((value) => [name, value] as const)
      : fc.oneof(
          instances(member).map((value) => [name, value] as const),
          fc.constant([name, undefined] as const),
          fc.constant(null),
        ),
  );
  return fc.tuple(...members).map((pairs) => Object.fromEntries(pairs.filter((pair) => pair !== null)));
}

const BODIES: readonly (readonly [name: string, type: EntryType, schema: TSchema])[] = [
  ...Object.entries(INPUT_SCHEMAS).map(([kind, schema]) => [`input ${kind}`, 'input' as const, schema] as const),
  ...ENTRY_TYPES.filter((type) => type !== 'input').map((type) => [type, type, ENTRY_BODIES[type]] as const),
];

describe('S4-09: the text of an entry is its canonical JSON', () => {
  test(`for every entry of ${sized(50, 200)} random trees`, () => {
    const seen = new Set<string>();
    for (let seed = 1; seed <= sized(50, 200); seed += 1) {
      for (const { entry, text: written } of randomTree(seed).decisions.flatMap(({ entries }) => entries)) {
        seen.add(entry.type === 'input' ? entry.body.kind : entry.type);
        expect(written === canonicalJson(entry)).toBe(true);
      }
    }
    expect(seen.size).toBeGreaterThanOrEqual(10);
  }, 60_000);

  test.each(BODIES)(
    'for every body of %s, with each optional member present or absent',
    (_name, type, schema) => {
      fc.assert(
        fc.property(instances(schema), (body) => {
          expect(bodyText({ type, body } as Entry)).toBe(canonicalJson(body));
        }),
        { numRuns: 300 },
      );
    },
    30_000,
  );

  test('for interleaved events of several runs, and for events of one run that differ in one member', () => {
    const event = instances(ENTRY_BODIES.audit_event) as fc.Arbitrary<object>;
    const turns = fc.tuple(event, event, fc.array(fc.tuple(fc.boolean(), fc.boolean(), fc.nat(40)), { maxLength: 12 }));
    fc.assert(
      fc.property(turns, ([one, other, order]) => {
        for (const [first, mix, place] of order) {
          const body: Record<string, unknown> = { ...(first ? one : other) };
          const [name = 'run_id'] = Object.keys(body).slice(place);
          if (mix) body[name] = Reflect.get(first ? other : one, name);
          expect(bodyText({ type: 'audit_event', body } as unknown as Entry)).toBe(canonicalJson(body));
        }
      }),
      { numRuns: 500 },
    );
  }, 30_000);

  test.each([{ reasoning: { chars: 1, sha256: '\ud800' } }, { proposal_id: '\udfff' }])(
    'a lone surrogate is rejected: %j',
    (part) => {
      const trees = [1, 2, 3, 4, 5, 6, 7, 8].map((seed) => randomTree(seed));
      const entry = trees
        .flatMap(({ decisions }) => decisions.flatMap(({ entries }) => entries))
        .find((sealed) => sealed.entry.type === 'step_trace')!.entry;
      expect(() => bodyText({ ...entry, body: { ...entry.body, ...part } } as Entry)).toThrow(
        expect.objectContaining({ code: 'INVARIANT' }),
      );
    },
  );
});
