// The file of a decision table: requests, and what policy is expected to decide. `turnpike policy test` reads it.

import Type, { type Static } from 'typebox';
import { COUNTERS_MAX } from '../../core/contract/run/counter-fact.js';
import { DECISION_ANSWERS, DECISION_POINTS_MAX } from '../../core/contract/policy/decision-points.js';
import { CONFIDENTIALITY_FLAGS, LABEL_CASES_MAX } from '../../core/contract/policy/labels.js';
import { CaseId, closed, Identifier, OneOf } from '../../core/contract/shapes.js';
import { readPolicyFile, type NamedPolicyFile } from '../../core/policy/files/read-policy-file.js';
import type { PolicyFinding } from '../../core/policy/files/policy-finding.js';

const TESTS_MAX = 2_000;
const FILES_MAX = 16;

export const DECISIONS = ['allow', 'deny', 'approval'] as const;

/** What an agent proposes, and the facts by which it is decided. */
const Request = Type.Object(
  {
    role: Identifier,
    lane: Identifier,
    /** Default: `case-test`. */
    case: Type.Optional(CaseId),
    scope: Type.Optional(Type.Record(Type.String({ maxLength: 120 }), Type.String({ maxLength: 400 }))),
    actor: Type.Optional(Identifier),
    /** The person behind the actor. Default: its name. */
    person: Type.Optional(Identifier),
    action: Type.String({ maxLength: 64 }),
    args: Type.Optional(Type.Object({}, { additionalProperties: true })),
    /** When the proposal is received: `2026-01-05T17:59:00Z`. */
    time: Type.Optional(Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}Z$' })),
    /** What the run has read. */
    label: Type.Optional(
      Type.Object(
        {
          cases: Type.Optional(Type.Array(CaseId, { maxItems: LABEL_CASES_MAX })),
          flags: Type.Optional(Type.Array(OneOf(CONFIDENTIALITY_FLAGS), { maxItems: CONFIDENTIALITY_FLAGS.length })),
        },
        closed,
      ),
    ),
    /** What counters have counted. Default: nothing. */
    counters: Type.Optional(
      Type.Record(Type.String({ maxLength: 64 }), Type.Integer({ minimum: 0 }), { maxProperties: COUNTERS_MAX }),
    ),
    /** What decision points answer. Default: they permit. */
    decisions: Type.Optional(
      Type.Record(Type.String({ maxLength: 64 }), OneOf(DECISION_ANSWERS), { maxProperties: DECISION_POINTS_MAX }),
    ),
    /** The files of the sandbox with their sizes in bytes. Default: no file. */
    files: Type.Optional(
      Type.Record(Type.String({ maxLength: 1_024 }), Type.Integer({ minimum: 0 }), { maxProperties: FILES_MAX }),
    ),
  },
  closed,
);

const Expectation = Type.Object(
  {
    decision: OneOf(DECISIONS),
    rule: Type.Optional(Type.String({ maxLength: 200 })),
    quorum: Type.Optional(Type.Integer({ minimum: 1, maximum: 8 })),
    roles: Type.Optional(Type.Array(Identifier, { maxItems: 16 })),
  },
  closed,
);
export type Expectation = Static<typeof Expectation>;

export const PolicyTest = Type.Object(
  { name: Type.String({ minLength: 1, maxLength: 200 }), request: Request, expect: Expectation },
  closed,
);
export type PolicyTest = Static<typeof PolicyTest>;

const PolicyTestFile = Type.Object({ tests: Type.Array(PolicyTest, { minItems: 1, maxItems: TESTS_MAX }) }, closed);

/** A test, and the line on which it begins. */
export interface PlacedTest {
  readonly test: PolicyTest;
  readonly line: number;
}

/** Reads any bytes: every mistake is a finding. */
export function readPolicyTests(file: NamedPolicyFile): {
  readonly tests: readonly PlacedTest[];
  readonly findings: readonly PolicyFinding[];
} {
  const { value, ...read } = readPolicyFile(file, PolicyTestFile);
  if (value === null || !('document' in read)) return { tests: [], findings: read.findings };
  const { lineOf } = read.document;
  return { tests: value.tests.map((test, index) => ({ test, line: lineOf(`/tests/${index}`) })), findings: [] };
}
