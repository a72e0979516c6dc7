// S1-01: which fields are required, optional, forbidden and mutually exclusive. The test compares each line of the
// table in docs/contract/field-constraints.md with the schemas and the code that reads them.

import { describe, expect, test } from '@jest/globals';
import { ACTION_NAMES, ACTIONS, RECORD_ACTIONS } from '../../../src/core/contract/policy/catalogue.js';
import { isJsonObject } from '../../../src/core/contract/json.js';
import { Proposal } from '../../../src/core/contract/run/proposal.js';
import { isConforming } from '../../../src/core/contract/validators.js';
import { judge, proposal } from '../step/judge.js';
import { RUNNER, SessionDriver } from '../../fixtures/session.js';
import { proposal as proposalObject, TreeDriver } from '../../fixtures/tree.js';
import { textOf } from '../../sources.js';

const ARGS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  THINK: {},
  FINISH: { response: 'x' },
  READ_FILE: { path: '/sandbox/a.md' },
  LIST_FILES: { path: '/sandbox/' },
  WRITE_FILE: { path: '/sandbox/a.md', content: 'x' },
  CREATE_DIRECTORY: { path: '/sandbox/d' },
  DELETE_FILE: { path: '/sandbox/a.md' },
  RENAME_FILE: { source: '/sandbox/a.md', destination: '/sandbox/b.md' },
  CALL_TOOL: { tool: 'a.tool', input: {} },
  WRITE_RECORD: { target: 'facts', mode: 'append', record: {} },
  READ_RECORDS: { target: 'facts', where: {}, after: {}, limit: 1, case_id: 'case-2' },
};
/** As in the document: all arguments of every other action are required. */
const OPTIONAL: Readonly<Record<string, readonly string[]>> = { READ_RECORDS: ['where', 'after', 'limit', 'case_id'] };
const SCHEMAS = { ...ACTIONS, ...RECORD_ACTIONS };
type Named = keyof typeof SCHEMAS;

const without = (all: object, name: string): object =>
  Object.fromEntries(Object.entries(all).filter(([member]) => member !== name));

const subsets = (names: readonly string[]): readonly (readonly string[])[] =>
  names.reduce<string[][]>((all, name) => [...all, ...all.map((some) => [...some, name])], [[]]);

describe('S1-01: the fields of a proposal', () => {
  test('are all five required; each missing, null or additional one is rejected', () => {
    const whole = JSON.parse(proposal()) as Record<string, unknown>;
    expect(Object.keys(whole).sort()).toEqual(Object.keys(Proposal.properties).sort());
    expect(judge(JSON.stringify(whole)).fault).toBeNull();
    for (const name of Object.keys(whole)) {
      const rest = without(whole, name);
      expect(judge(JSON.stringify(rest)).fault).toMatchObject({
        code: 'SCHEMA_VIOLATION',
        rule_id: `schema.missing_${name}`,
      });
      expect(judge(JSON.stringify({ ...whole, [name]: null })).fault).toMatchObject({ code: 'SCHEMA_VIOLATION' });
    }
    expect(judge(JSON.stringify({ ...whole, more: 1 })).fault).toMatchObject({ rule_id: 'schema.unknown_field' });
  });

  test.each(Object.keys(SCHEMAS) as Named[])('the arguments of %s: no argument excludes or forbids another', (name) => {
    const schema = SCHEMAS[name].args as { readonly properties: object; readonly required?: readonly string[] };
    const { required = [] } = schema;
    const all = ARGS[name] ?? {};
    expect(Object.keys(all).sort()).toEqual(Object.keys(schema.properties).sort());
    const optional = Object.keys(all).filter((field) => !required.includes(field));
    expect(optional.sort()).toEqual([...(OPTIONAL[name] ?? [])].sort());
    for (const chosen of subsets(optional)) {
      const args = Object.fromEntries(
        Object.entries(all).filter(([field]) => required.includes(field) || chosen.includes(field)),
      );
      expect(isConforming(SCHEMAS[name].args, args)).toBe(true);
      for (const field of required) {
        const rest = without(args, field);
        expect(isConforming(SCHEMAS[name].args, rest)).toBe(false);
      }
    }
    expect(isConforming(SCHEMAS[name].args, { ...all, more: 1 })).toBe(false);
  });

  test('every built-in action has its line in this test', () => {
    expect(Object.keys(ARGS).sort()).toEqual([...ACTION_NAMES, ...Object.keys(RECORD_ACTIONS)].sort());
  });
});

describe('S1-01: mutually exclusive fields', () => {
  test('a response has exactly one of result and error', () => {
    const d = new TreeDriver().ready();
    for (const payload of [
      proposalObject('THINK', {}),
      proposalObject('NOPE', {}),
      '{',
      proposalObject('THINK', { a: 1 }),
    ]) {
      d.propose(payload);
    }
    expect(d.responses).toHaveLength(4);
    for (const response of d.responses) {
      expect([response.result, response.error].filter((member) => member !== null)).toHaveLength(1);
      expect(isJsonObject(response.result) !== isJsonObject(response.error)).toBe(true);
    }
  });

  test('in a report: a receipt and `skipped`, a receipt outside a verification, an attempt outside a gate', () => {
    const d = new SessionDriver().start();
    d.by = RUNNER;
    d.next();
    const receipt = {
      command_hash: 'c'.repeat(64),
      exit_code: 0,
      output_digest: 'd'.repeat(64),
      issued_at: 'x',
      step_id: 'x',
    };
    const refusal = (over: object, outcome: 'success' | 'skipped' = 'success') =>
      d.next({ ...d.report(outcome), ...over }).error?.code;
    expect(refusal({ verification_receipt: receipt })).toBe('ERROR_VERIFICATION_RECEIPT_INVALID');
    expect(refusal({ gate_attempt_id: 'ses-g1' })).toBe('STEP_MISMATCH');
    d.work();
    expect(d.outstanding.type).toBe('execute_verification');
    d.check();
    expect(refusal({ verification_receipt: d.outstanding.receipt }, 'skipped')).toBe(
      'ERROR_VERIFICATION_RECEIPT_INVALID',
    );
  });

  test('the document names each of them', () => {
    const text = textOf('docs/contract/field-constraints.md');
    for (const named of ['`result`', '`error`', '`verification_receipt`', '`gate_attempt_id`', '`skipped`']) {
      expect(text).toContain(named);
    }
  });
});
