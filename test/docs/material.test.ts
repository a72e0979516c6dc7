// The recorded material: its form, its licences, and its mixture. examples.campaign.test.ts runs it.

import { beforeAll, describe, expect, test } from '@jest/globals';
import { createHash } from 'node:crypto';
import { ACTION_NAMES } from '../../src/core/contract/policy/catalogue.js';
import { FAULTS, type FaultCode } from '../../src/core/contract/fault.js';
import { shippedPolicy } from '../fixtures/shipped-policy.js';
import { textOf } from '../sources.js';
import { example } from './built.js';

const MATERIAL = 'docs/examples/material';
const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

interface Proposal {
  readonly schema_version: string;
  readonly id: string;
  readonly reasoning: string;
  readonly action: string;
  readonly args: Readonly<Record<string, string>>;
}

interface Expected {
  readonly note: string;
  readonly outcome: string;
  readonly error_code: FaultCode | null;
  readonly origin: string;
  readonly mixture: boolean;
}

const linesOf = (name: string): readonly string[] => textOf(`${MATERIAL}/${name}`).replace(/\n$/, '').split('\n');
const session = linesOf('session.jsonl').map((line) => JSON.parse(line) as Proposal);
const hostile = linesOf('hostile.jsonl');
const expected = linesOf('hostile.expected.jsonl').map((line) => JSON.parse(line) as Expected);

describe('the session', () => {
  test('has proposals with the five fields and a unique id', () => {
    for (const proposal of session) {
      expect(Object.keys(proposal).sort()).toEqual(['action', 'args', 'id', 'reasoning', 'schema_version']);
      expect(proposal.schema_version).toBe('1.0.0');
      expect(proposal.id).toMatch(UUID_V4);
    }
    expect(new Set(session.map(({ id }) => id)).size).toBe(session.length);
  });

  test('uses every built-in action, gives a reason for each, and finishes once, at the end', () => {
    expect(new Set(session.map(({ action }) => action))).toEqual(new Set(ACTION_NAMES));
    expect(session.filter(({ reasoning }) => reasoning.length < 20)).toEqual([]);
    expect(session.findIndex(({ action }) => action === 'FINISH')).toBe(session.length - 1);
  });
});

describe('the hostile payloads', () => {
  test('have one expectation each', () => {
    expect(expected.length).toBe(hostile.length);
  });

  test('expect outcomes that the registry has', () => {
    const wrong = expected.filter(
      ({ outcome, error_code }) => outcome !== (error_code === null ? 'SUCCESS' : FAULTS[error_code].outcome),
    );
    expect(wrong).toEqual([]);
  });

  test.each([
    ['PAYLOAD_TOO_LARGE', 1],
    ['INVALID_JSON', 5],
    ['SCHEMA_VIOLATION', 2],
    ['SCHEMA_VERSION_INCOMPATIBLE', 1],
    ['DUPLICATE_PROPOSAL_ID', 1],
    ['ACTION_NOT_ALLOWED', 6],
    ['INVALID_ARGS', 5],
    ['POLICY_VIOLATION', 10],
    ['EXECUTION_ERROR', 1],
  ] as const)('reach %s at least %d times', (code, times) => {
    expect(expected.filter(({ error_code }) => error_code === code).length).toBeGreaterThanOrEqual(times);
  });

  test.each([
    ['a byte order mark', (line: string) => line.startsWith('\ufeff')],
    ['a duplicate key', (line: string) => line.includes('"\\u0061ction"')],
    ['a prototype key', (line: string) => line.includes('"__proto__"')],
    ['more than the payload limit', (line: string) => Buffer.byteLength(line) > 65_536],
    ['a traversal', (line: string) => line.includes('/sandbox/../')],
    ['an absolute path', (line: string) => line.includes('"/etc/hostname"')],
    ['a script', (line: string) => line.includes('.sh"')],
    ['a terminal escape sequence', (line: string) => line.includes('\\u001b[2J')],
  ])('hold %s', (_what, holds) => {
    expect(hostile.filter(holds).length).toBeGreaterThan(0);
  });

  test('end with the denial beyond the limit, which the mixture omits', () => {
    const denials = expected.filter(({ error_code }) => error_code === 'POLICY_VIOLATION');
    expect(denials.length).toBe(shippedPolicy().limits.denials_per_run_max);
    expect(expected.filter(({ mixture }) => !mixture)).toEqual([denials.at(-1)]);
    expect(expected.at(-1)).toEqual(denials.at(-1));
  });
});

describe('the mixture', () => {
  interface Demo {
    readSession(): readonly Played[];
    readHostile(): readonly Played[];
    mix(session: readonly Played[], hostile: readonly Played[]): readonly Played[];
  }
  interface Played {
    readonly payload: Uint8Array;
    readonly note?: string;
  }
  let demo: Demo;
  beforeAll(async () => {
    demo = await example<Demo>('demo/material.mjs');
  });

  test('contains the whole session in order, and all hostile payloads but one in theirs', () => {
    const [careful, attacks] = [demo.readSession(), demo.readHostile()];
    const mixed = demo.mix(careful, attacks);
    expect(mixed.filter(({ note }) => note === undefined)).toEqual(careful);
    expect(mixed.filter(({ note }) => note !== undefined)).toEqual(attacks.slice(0, -1));
    expect(mixed.at(-1)).toEqual(careful.at(-1));
  });

  test('is the same each time, and spread: never three attacks in a row', () => {
    const mixed = demo.mix(demo.readSession(), demo.readHostile());
    expect(mixed).toEqual(demo.mix(demo.readSession(), demo.readHostile()));
    expect(mixed.map(({ note }) => (note === undefined ? '.' : '!')).join('')).not.toContain('!!!');
  });

  test('returns the payloads as the bytes of their lines', () => {
    const bytes = (lines: readonly string[]): readonly Buffer[] => lines.map((line) => Buffer.from(line));
    expect(demo.readHostile().map(({ payload }) => Buffer.from(payload))).toEqual(bytes(hostile));
  });
});

describe('origin and licences', () => {
  const digest = (name: string): string =>
    createHash('sha256')
      .update(textOf(`${MATERIAL}/${name}`))
      .digest('hex');

  // Licence texts are copied, never edited.
  test.each([
    [
      'LICENSE-asb',
      'Copyright (c) 2024 AGI Research',
      'dc40a1a6bdb44f24c1bbca4fe7fc45b8d3e5c8370f43c17a9f647e5632686918',
    ],
    [
      'LICENSE-agentdojo',
      'Copyright (c) 2024 Edoardo Debenedetti',
      '4285a071f2d382338e52b4fb0a186d952984a34d43a33d8872e1a1d8cb43401e',
    ],
  ])('%s is there, word for word', (name, holder, sha256) => {
    expect(textOf(`${MATERIAL}/${name}`)).toContain('MIT License');
    expect(textOf(`${MATERIAL}/${name}`)).toContain(holder);
    expect(digest(name)).toBe(sha256);
  });

  test('every origin is one that SOURCE.md explains', () => {
    const known = /^(?:own|asb line \d+|agentdojo (?:banking|slack|travel|workspace) v[\d_]+ InjectionTask\d+)$/;
    expect(expected.filter(({ origin }) => !known.test(origin))).toEqual([]);
  });
});
