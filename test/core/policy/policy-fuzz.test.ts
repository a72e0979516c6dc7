// Goal: for any bytes (a replay takes them from an untrusted ledger), the loader soon returns a policy or
// POLICY_INVALID. Method: noise, noise from YAML's own words, damaged shipped files, and texts that are known to break
// YAML parsers.

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { POLICY_FILES, type PolicyFile } from '../../../src/core/contract/policy/pins.js';
import { PolicyError } from '../../../src/core/errors.js';
import { checkPolicy, formatFinding, loadPolicy } from '../../../src/core/policy/files/check-policy.js';
import { readPolicyYaml } from '../../../src/core/policy/files/read-policy-file.js';
import { toYaml } from '../../../src/core/policy/files/strict-yaml.js';
import { sized } from '../../fixtures/campaign.js';
import { shippedBytes } from '../../fixtures/shipped-policy.js';

const SHIPPED = shippedBytes();
/** Processor time: many times what any text takes here, so that only a hang or a quadratic loop fails. */
const CPU_MS_MAX = 10_000;

/** Loads and lints the bytes; anything but a policy or a PolicyError with one-line findings is a failure. */
function mustAnswer(bytes: Record<PolicyFile, Uint8Array>): void {
  const start = process.cpuUsage();
  const { findings, policy } = checkPolicy({
    lanes: { path: 'lanes.yaml', bytes: bytes.lanes },
    roles: { path: 'roles.yaml', bytes: bytes.roles },
    actions: { path: 'actions.yaml', bytes: bytes.actions },
  });
  expect(policy === null).toBe(findings.length > 0);
  for (const finding of findings) {
    expect(finding.line).toBeGreaterThanOrEqual(1);
    expect(formatFinding(finding)).toMatch(/^[ -~]*$/u);
  }
  if (policy === null) expect(() => loadPolicy(bytes)).toThrow(PolicyError);
  expect(process.cpuUsage(start).user / 1_000).toBeLessThan(CPU_MS_MAX);
}

const WORD = new TextEncoder().encode('version: v1\n');
const noisy = (name: PolicyFile, bytes: Uint8Array) => ({ lanes: WORD, roles: WORD, actions: WORD, [name]: bytes });

const anyFile = fc.constantFrom(...POLICY_FILES);

test('any bytes', () => {
  fc.assert(
    fc.property(anyFile, fc.uint8Array({ maxLength: 400 }), (name, bytes) => mustAnswer(noisy(name, bytes))),
    { numRuns: sized(30, 200) },
  );
});

test('the words of YAML in any order', () => {
  const word = fc.constantFrom(
    ...[
      '- ',
      '? ',
      ': ',
      'a',
      'a: ',
      '\n',
      '\n  ',
      '\n\t',
      '\r\n',
      '[',
      ']',
      '{',
      '}',
      ', ',
      '&x ',
      '*x',
      '!t ',
      '"',
      "'",
    ],
    ...[
      '|\n',
      '>-\n',
      '# c\n',
      '---\n',
      '...\n',
      '%YAML 1.1\n',
      '<<: ',
      '\\u',
      '\\',
      '.nan',
      '0x1',
      '1e999',
      '~',
      '@',
      '`',
    ],
    ...['version: v1\n', 'lanes:\n', 'roles:\n', '__proto__: ', 'constructor: ', '\u2028', '\ud800', '😀'],
  );
  const text = fc.array(word, { maxLength: 60 }).map((words) => new TextEncoder().encode(words.join('')));
  fc.assert(
    fc.property(anyFile, text, (name, bytes) => mustAnswer(noisy(name, bytes))),
    { numRuns: sized(50, 400) },
  );
});

test('the shipped files with one passage removed, doubled or overwritten', () => {
  const damage = fc.record({
    name: anyFile,
    from: fc.nat(),
    length: fc.integer({ min: 0, max: 200 }),
    instead: fc.oneof(fc.constant(null), fc.uint8Array({ maxLength: 8 })),
  });
  fc.assert(
    fc.property(damage, ({ name, from, length, instead }) => {
      const bytes = SHIPPED[name];
      const start = from % bytes.length;
      const passage = bytes.slice(start, start + length);
      const middle = instead ?? Buffer.concat([passage, passage]);
      const damaged = Buffer.concat([bytes.slice(0, start), middle, bytes.slice(start + length)]);
      mustAnswer({ ...SHIPPED, [name]: new Uint8Array(damaged) });
    }),
    { numRuns: sized(20, 150) },
  );
});

test('the shipped files with any value in any place', () => {
  const value = fc.jsonValue({ maxDepth: 3 });
  fc.assert(
    fc.property(anyFile, fc.nat(), value, (name, place, inserted) => {
      const { document } = readPolicyYaml(SHIPPED[name]);
      const data = structuredClone(JSON.parse(JSON.stringify(document!.data)) as Record<string, unknown>);
      const places = placesIn(data);
      const [holder, key] = places[place % places.length]!;
      Reflect.set(holder, key, inserted);
      mustAnswer({ ...SHIPPED, [name]: new TextEncoder().encode(toYaml(data)) });
    }),
    { numRuns: sized(15, 120) },
  );
});

function placesIn(value: object): [object, string][] {
  return Object.entries(value).flatMap(([key, member]: [string, unknown]) => [
    [value, key] as [object, string],
    ...(typeof member === 'object' && member !== null ? placesIn(member) : []),
  ]);
}

test('readPolicyYaml reads what toYaml writes', () => {
  const key = fc.string({ unit: 'grapheme', maxLength: 12 }).filter((text) => text !== '<<' && !isControlled(text));
  const leaf = fc.oneof(
    fc.string({ unit: 'grapheme' }).filter((text) => !isControlled(text)),
    fc.integer(),
    fc.boolean(),
    fc.constant(null),
  );
  const { value } = fc.letrec((tie) => ({
    value: fc.dictionary(key, fc.oneof({ maxDepth: 3 }, leaf, fc.array(leaf, { maxLength: 4 }), tie('value')), {
      maxKeys: 4,
      noNullPrototype: true,
    }),
  }));
  fc.assert(
    fc.property(value, (data) => {
      const { document, problems } = readPolicyYaml(new TextEncoder().encode(toYaml(data)));
      expect(problems).toEqual([]);
      expect(JSON.parse(JSON.stringify(document!.data))).toEqual(data);
    }),
    { numRuns: sized(60, 300) },
  );
});

/** YAML escapes control characters, but it cannot escape a lone surrogate, which is not text. */
const isControlled = (text: string): boolean => !text.isWellFormed();

describe('a text that is as hostile as YAML allows', () => {
  const MIB = 1_048_576;
  const fill = (unit: string): string => unit.repeat(Math.floor(MIB / unit.length));
  const keys = (separator: string): string =>
    Array.from({ length: 90_000 }, (_, index) => `k${index}: 1`)
      .join(separator)
      .slice(0, MIB);
  const texts: Record<string, string> = {
    brackets: fill('['),
    'brackets and line feeds': fill('[\n'),
    braces: fill('{'),
    'closing brackets': fill(']'),
    'brackets after closing brackets': ']\n'.repeat(7_000) + '[\n'.repeat(7_000),
    'dashes after an open bracket': 'a: [\n' + '- '.repeat(14_000),
    'question marks after an open bracket': 'a:\n  b: [\n' + '? '.repeat(14_000),
    'colons after an open bracket': 'a:\n  b: [\nc: ' + ': '.repeat(14_000),
    'colons in a bracket': '[' + 'a: '.repeat(14_000),
    'bare colons in a bracket': '[' + ': '.repeat(14_000),
    commas: `[${fill(',')}`.slice(0, MIB),
    'pairs in brackets': `[${fill('a: b,')}`.slice(0, MIB),
    dashes: fill('- '),
    'dashes and line feeds': fill('-\n'),
    'question marks': fill('? '),
    'question marks in braces': `{${fill('? ')}`.slice(0, MIB),
    'keys in one line': fill('a: '),
    colons: fill(': '),
    'many keys': keys('\n'),
    'many keys in braces': `{${keys(',')}`.slice(0, MIB),
    'the same key': fill('a: 1\n'),
    ladder: Array.from({ length: 1_400 }, (_, depth) => `${' '.repeat(depth)}a:`).join('\n'),
    teeth: fill('a:\n b:\n'),
    blanks: fill(' '),
    tabs: fill('\t'),
    'line feeds': fill('\n'),
    'carriage returns': fill('\r'),
    comments: fill('#\n'),
    'indented comments': `a:\n${fill('  # c\n')}`.slice(0, MIB),
    anchors: fill('&a '),
    aliases: fill('*a\n'),
    tags: fill('!a '),
    directives: fill('%A b\n'),
    documents: fill('---\n'),
    'document ends': fill('...\n'),
    'double quotes': fill('"'),
    'single quotes': fill("'"),
    'an open double quote': `"${fill('\n')}`.slice(0, MIB),
    'an open single quote': `'${fill('\n x')}`.slice(0, MIB),
    'bad escapes': `a: "${fill('\\q')}`.slice(0, MIB),
    'bad escapes in a quote': `a: "${fill('\\q').slice(0, MIB - 5)}"`,
    'many quotes with bad escapes': fill('- "\\q\\q\\q\\q\\q\\q"\n'),
    backslashes: `a: "${fill('\\')}`.slice(0, MIB),
    'a block': `a: |\n${fill(' \n')}`.slice(0, MIB),
    'a ragged block': `a: |\n${fill('   x\n\n')}`.slice(0, MIB),
    'a folded block': `a: >\n${fill('  x\n\n   y\n')}`.slice(0, MIB),
    'lines of text': fill('a\n'),
    'a long line': `a: ${fill('x')}`.slice(0, MIB),
    'flow lists': fill('- a: {b: [c, "d"]}\n'),
    'half pairs': fill('"a": b: c\n'),
    'billion laughs': 'a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]\n',
  };

  test.each(Object.keys(texts))('%s', (name) => {
    mustAnswer(noisy('lanes', new TextEncoder().encode(texts[name])));
    // Once more at a size that the limit on parts accepts, so that the parser itself is reached.
    mustAnswer(noisy('lanes', new TextEncoder().encode(texts[name]!.slice(0, 60_000))));
  });
});
