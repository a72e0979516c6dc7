import { describe, expect, test } from '@jest/globals';
import {
  createCatalogue,
  type RegisteredAction,
  type TargetDefinition,
  type ToolDefinition,
  ACTIONS,
  type ActionDefinition,
  RECORD_ACTION_DEFINITIONS,
  type RecordActionName,
} from '../../../src/core/contract/policy/catalogue.js';
import type { Json, JsonObject } from '../../../src/core/contract/json.js';
import type { Label } from '../../../src/core/contract/policy/labels.js';
import {
  checkRegisteredArgs,
  isIdempotent,
  isInCommit,
  privilegedRequest,
  resultLabel,
} from '../../../src/core/step/mediated-request.js';
import { REQUEST, RUN } from '../../fixtures/privileged.js';

const closed = (properties: Record<string, { type: string }>, required: readonly string[]) => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
});

const code = { idempotent: false, timeout_ms: 1_000, result_bytes_max: 100, outside: false, confidentiality: [] };
const tool = (name: string, over: Partial<ToolDefinition> = {}): ToolDefinition => ({
  name,
  summary: 'A tool.',
  input: closed({ amount: { type: 'integer' } }, ['amount']),
  output: closed({}, []),
  ...code,
  ...over,
});
const COLUMNS = { id: { type: 'string' }, part: { type: 'integer' }, text: { type: 'string' } };
const target = (name: string, over: Partial<TargetDefinition> = {}): TargetDefinition => ({
  name,
  summary: 'A table.',
  record: closed(COLUMNS, ['id', 'part']),
  key: ['id', 'part'],
  modes: ['append', 'upsert'],
  plane: 'case',
  place: 'elsewhere',
  confidentiality: [],
  ...over,
});
const action = (name: string, over: Partial<RegisteredAction>): RegisteredAction => ({
  name,
  summary: 'An action.',
  risk: 'read',
  args: closed({ target: { type: 'string' } }, []),
  needs: { tool: 'local' },
  ...code,
  ...over,
});

const catalogue = createCatalogue({
  actions: [
    action('LOOK_UP', { confidentiality: ['contains_phi'] }),
    action('STORE', { risk: 'write', needs: { write: { table: 'own', mode: 'append' } } }),
    action('SEARCH', { needs: { read: 'own' }, confidentiality: ['contains_pii'] }),
  ],
  tools: [
    tool('local'),
    tool('mail', { outside: true, confidentiality: ['contains_pii'] }),
    tool('safe', { idempotent: true }),
  ],
  targets: [
    target('facts', { modes: ['append'] }),
    target('own', { place: 'ledger', confidentiality: ['contains_phi'] }),
    target('playbooks', { plane: 'shared' }),
  ],
});

const definitionOf = (name: string): ActionDefinition => {
  const found = catalogue.action(name);
  if (found === undefined) throw new Error(`no action ${name}`);
  return found;
};

const LABEL: Label = { cases: ['case_9'], flags: [], many: false };
const requestOf = (name: string, args: JsonObject = {}) =>
  privilegedRequest(definitionOf(name), args, RUN, catalogue, LABEL);

describe('the request of an action', () => {
  const own = { ...REQUEST, tool: null, write: null, label: LABEL };

  test('of a file is what its definition says, in the case of the run', () => {
    expect(requestOf('WRITE_FILE')).toEqual({ ...REQUEST, label: LABEL });
    expect(requestOf('READ_FILE')).toEqual({ ...own, tool: 'sandbox.read_file' });
    expect(requestOf('SEARCH')).toEqual({ ...own, read: 'own' });
  });

  test('S4-84: of an action whose definition sends data outside has the destination outside', () => {
    const sending = { ...ACTIONS.READ_FILE, outside: true };
    expect(privilegedRequest(sending, {}, RUN, catalogue, LABEL).destination).toBe('outside');
  });

  test.each([
    ['local', 'platform', null],
    ['mail', 'outside', null],
    ['unknown', 'platform', 'tool.not_registered'],
    ['constructor', 'platform', 'tool.not_registered'],
  ] as const)('CALL_TOOL of %s goes to %s, with the broken rule %s', (name, destination, unregistered) => {
    expect(requestOf('CALL_TOOL', { tool: name })).toEqual({ ...own, tool: name, destination, unregistered });
  });

  test('CALL_TOOL keeps the destination outside of its definition, whatever the tool says', () => {
    const sending = { ...definitionOf('CALL_TOOL'), outside: true };
    for (const name of ['local', 'unknown']) {
      expect(privilegedRequest(sending, { tool: name }, RUN, catalogue, LABEL).destination).toBe('outside');
    }
  });

  test.each([
    ['facts', 'append', 'append', null],
    ['facts', 'upsert', 'upsert', 'target.mode_not_registered'],
    ['own', 'upsert', 'upsert', null],
    ['own', 'other', 'append', null],
    ['unknown', 'append', 'append', 'target.not_registered'],
  ] as const)('WRITE_RECORD to %s in mode %s writes in mode %s, with the broken rule %s', (...row) => {
    const [table, asked, mode, unregistered] = row;
    const write = { table, mode };
    expect(requestOf('WRITE_RECORD', { target: table, mode: asked })).toEqual({ ...own, write, unregistered });
  });

  test.each([
    ['facts', null],
    ['unknown', 'target.not_registered'],
  ] as const)('READ_RECORDS of %s reads that table, with the broken rule %s', (read, unregistered) => {
    expect(requestOf('READ_RECORDS', { target: read })).toEqual({ ...own, read, unregistered });
  });

  test('S4-84: READ_RECORDS that names another case has that case as its target', () => {
    const request = requestOf('READ_RECORDS', { target: 'facts', case_id: 'case_2' });
    expect(request).toEqual({ ...own, read: 'facts', target_case_id: 'case_2' });
    expect(requestOf('READ_RECORDS', { target: 'facts', case_id: 7 }).target_case_id).toBe('case_1');
  });

  test('S4-85: a shared target belongs to no case, also if the arguments name one', () => {
    const shared = { ...own, plane: 'shared', target_case_id: null };
    expect(requestOf('READ_RECORDS', { target: 'playbooks' })).toEqual({ ...shared, read: 'playbooks' });
    expect(requestOf('READ_RECORDS', { target: 'playbooks', case_id: 'case_2' }).target_case_id).toBeNull();
    const write = { table: 'playbooks', mode: 'append' };
    expect(requestOf('WRITE_RECORD', { target: 'playbooks', mode: 'append' })).toEqual({ ...shared, write });
  });

  test.each([[{}], [{ tool: 7, target: 7 }], [{ tool: ['local'], target: ['facts'] }]])(
    'names nothing if the target is not a string: %j',
    (args) => {
      expect(requestOf('CALL_TOOL', args)).toMatchObject({ tool: '', unregistered: 'tool.not_registered' });
      expect(requestOf('WRITE_RECORD', args)).toMatchObject({ write: { table: '' } });
      expect(requestOf('READ_RECORDS', args)).toMatchObject({ read: '', unregistered: 'target.not_registered' });
    },
  );
});

describe('arguments that a registered schema describes', () => {
  const check = (name: RecordActionName, args: JsonObject) => checkRegisteredArgs(definitionOf(name), args, catalogue);
  const invalid = (rule_id: string) => ({ ok: false, fault: { code: 'INVALID_ARGS', cause: null, rule_id } });

  test.each<readonly [Json, boolean]>([
    [{ amount: 1 }, true],
    [{ amount: 'one' }, false],
    [{}, false],
    [{ amount: 1, more: 1 }, false],
  ])('S0-39: the input of a tool matches its schema, or is rejected: %j', (input, ok) => {
    expect(check('CALL_TOOL', { tool: 'local', input })).toEqual(ok ? null : invalid('args.tool_input'));
  });

  test.each<readonly [Json, boolean]>([
    [{ id: 'a', part: 1 }, true],
    [{ id: 'a' }, false],
    [{ id: 'a', part: 1, more: 1 }, false],
  ])('S0-39: a record matches the schema of its target, or is rejected: %j', (record, ok) => {
    expect(check('WRITE_RECORD', { target: 'facts', record })).toEqual(ok ? null : invalid('args.record'));
  });

  test.each<readonly [Json | undefined, boolean]>([
    [undefined, true],
    [{}, true],
    [{ part: 1 }, true],
    [{ part: 1, text: 'x' }, true],
    [{ part: 'x' }, false],
    [{ part: 1, text: 2 }, false],
    [{ other: 1 }, false],
    [{ part: 1, other: 1 }, false],
    [{ constructor: 'x' }, false],
    [[], false],
    ['id', false],
    [null, false],
  ])('S0-39: a filter has columns of the target with values of their types, or is rejected: %j', (where, ok) => {
    const args = { target: 'facts', ...(where === undefined ? {} : { where }) };
    expect(check('READ_RECORDS', args)).toEqual(ok ? null : invalid('args.where'));
  });

  test.each<readonly [Json | undefined, boolean]>([
    [undefined, true],
    [{ id: 'a', part: 1 }, true],
    [{ id: 'a' }, false],
    [{ id: 'a', text: 'x' }, false],
    [{ id: 'a', part: 1, text: 'x' }, false],
    [{ id: 7, part: 1 }, false],
    [{}, false],
    [[], false],
    [null, false],
  ])('S0-39: a read continues after a whole key and nothing else: %j', (after, ok) => {
    const args = { target: 'facts', ...(after === undefined ? {} : { after }) };
    expect(check('READ_RECORDS', args)).toEqual(ok ? null : invalid('args.after'));
  });

  test('the filter is checked before the key', () => {
    expect(check('READ_RECORDS', { target: 'facts', where: [], after: [] })).toEqual(invalid('args.where'));
  });

  test('a tool or target that is not registered is left to AUTHORIZE', () => {
    expect(check('CALL_TOOL', { tool: 'unknown', input: 7 })).toBeNull();
    expect(check('WRITE_RECORD', { target: 'unknown', record: 7 })).toBeNull();
    expect(check('READ_RECORDS', { target: 'unknown', where: 7, after: 7 })).toBeNull();
  });

  test('other actions have no second schema', () => {
    const args = { tool: 'local', target: 'facts', input: 7, record: 7, where: 7, after: 7 };
    for (const name of ['READ_FILE', 'LOOK_UP', 'STORE']) {
      expect(checkRegisteredArgs(definitionOf(name), args, catalogue)).toBeNull();
    }
  });
});

describe('an effect inside the transaction of the ledger', () => {
  const inCommit = (name: string, args: JsonObject = {}) => isInCommit(definitionOf(name), args, catalogue);

  test('is a read of files', () => {
    expect(inCommit('READ_FILE')).toBe(true);
    expect(inCommit('LIST_FILES')).toBe(true);
  });

  test('is no change of files, no tool, and no thought', () => {
    for (const name of ['WRITE_FILE', 'DELETE_FILE', 'LOOK_UP', 'THINK']) expect(inCommit(name)).toBe(false);
    expect(inCommit('CALL_TOOL', { tool: 'safe', target: 'own' })).toBe(false);
  });

  test.each(RECORD_ACTION_DEFINITIONS.map(({ name }) => name).filter((name) => name !== 'CALL_TOOL'))(
    'is %s in a table of the ledger, and not elsewhere',
    (name) => {
      expect(inCommit(name, { target: 'own' })).toBe(true);
      expect(inCommit(name, { target: 'facts' })).toBe(false);
      expect(inCommit(name, { target: 'unknown' })).toBe(false);
      expect(inCommit(name, {})).toBe(false);
    },
  );

  test('is no action of the service, even if an argument names a table of the ledger', () => {
    expect(inCommit('STORE', { target: 'own' })).toBe(false);
    expect(inCommit('SEARCH', { target: 'own' })).toBe(false);
  });
});

describe('an action that may be executed twice with one key', () => {
  const idempotent = (name: string, args: JsonObject = {}) => isIdempotent(definitionOf(name), args, catalogue);

  test.each([
    ['READ_FILE', true],
    ['WRITE_RECORD', true],
    ['READ_RECORDS', true],
    ['DELETE_FILE', false],
    ['LOOK_UP', false],
  ])('C54: %s: %s', (name, expected) => {
    expect(idempotent(name)).toBe(expected);
  });

  test('C54: CALL_TOOL is one if the tool declares it', () => {
    expect(idempotent('CALL_TOOL', { tool: 'safe' })).toBe(true);
    expect(idempotent('CALL_TOOL', { tool: 'local' })).toBe(false);
    expect(idempotent('CALL_TOOL', { tool: 'unknown' })).toBe(false);
  });
});

describe('the label of a result', () => {
  const labelOf = (name: string, args: JsonObject = {}) =>
    resultLabel(definitionOf(name), args, { ...REQUEST, target_case_id: 'case_2' }, catalogue);
  const labelled = (...flags: Label['flags']) => ({ cases: ['case_2'], flags, many: false });
  const EVERY_FLAG = labelled('contains_phi', 'contains_pii', 'contains_privileged');

  test('has the confidentiality of the tool, and every flag if the tool is not registered', () => {
    expect(labelOf('CALL_TOOL', { tool: 'local' })).toEqual(labelled());
    expect(labelOf('CALL_TOOL', { tool: 'mail' })).toEqual(labelled('contains_pii'));
    expect(labelOf('CALL_TOOL', { tool: 'unknown' })).toEqual(EVERY_FLAG);
  });

  test('has the confidentiality of the table, and every flag if the table is not registered', () => {
    expect(labelOf('READ_RECORDS', { target: 'facts' })).toEqual(labelled());
    expect(labelOf('READ_RECORDS', { target: 'own' })).toEqual(labelled('contains_phi'));
    expect(labelOf('READ_RECORDS', { target: 'unknown' })).toEqual(EVERY_FLAG);
  });

  test('has the confidentiality of the action of the service', () => {
    expect(labelOf('LOOK_UP')).toEqual(labelled('contains_phi'));
    expect(labelOf('STORE')).toEqual(labelled());
    expect(labelOf('SEARCH')).toEqual(labelled('contains_pii'));
  });

  test('has only the case for a read of files', () => {
    expect(labelOf('READ_FILE')).toEqual(labelled());
  });

  test('is absent for an action that reads nothing', () => {
    for (const name of ['WRITE_FILE', 'DELETE_FILE', 'THINK', 'WRITE_RECORD']) expect(labelOf(name)).toBeNull();
  });

  test('is absent for an action without a mediated run', () => {
    const reading: ActionDefinition = { ...ACTIONS.THINK, risk: 'read' };
    expect(resultLabel(reading, {}, REQUEST, catalogue)).toBeNull();
  });
});
