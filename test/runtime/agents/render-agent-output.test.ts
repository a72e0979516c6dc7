import { describe, expect, test } from '@jest/globals';
import {
  EXECUTION_CAUSES,
  FAULT_CODES,
  POLICY_CAUSES,
  type ExecutionCause,
  type Fault,
  type PolicyCause,
} from '../../../src/core/contract/fault.js';
import type { JsonObject } from '../../../src/core/contract/json.js';
import type { DetailedResponse } from '../../../src/core/contract/run/response.js';
import { renderAgentOutput } from '../../../src/runtime/agents/render-agent-output.js';
import { responseParts } from '../../../src/core/step/concluded-step.js';
import { UNKNOWN_IDENTITY } from '../../../src/core/step/check-phases.js';

const failed = (code: Fault['code'], cause: Fault['cause'] = null, action = 'READ_FILE'): DetailedResponse =>
  responseParts({ identity: { ...UNKNOWN_IDENTITY, action }, fault: { code, cause, rule_id: 'r' }, result: null });
const succeeded = (action: string, result: JsonObject): DetailedResponse =>
  responseParts({ identity: { ...UNKNOWN_IDENTITY, action }, fault: null, result });
const say = (response: DetailedResponse) => renderAgentOutput(response).agent_output;

const DENIED = 'The requested action is not allowed due to security restrictions.';

describe('the envelope of 002', () => {
  // The three examples, in compact form. Their ids are placeholders, so the responses are built here.
  test.each([
    [
      'S2-23: success',
      succeeded('READ_FILE', { content: 'Hello World' }),
      '123',
      '{"runtime_response":{"proposal_id":"123","action":"READ_FILE"' +
        ',"outcome":"SUCCESS","result":{"content":"Hello World"},"error":null}' +
        ',"agent_output":"The file content is:\\n\\nHello World"}',
    ],
    [
      'S2-23 S2-24: policy denied',
      failed('POLICY_VIOLATION', 'SANDBOX', 'DELETE_FILE'),
      '124',
      '{"runtime_response":{"proposal_id":"124","action":"DELETE_FILE"' +
        ',"outcome":"DENIED","result":null' +
        ',"error":{"error_code":"POLICY_VIOLATION"' +
        ',"message":"Access outside /sandbox/ is not allowed"}}' +
        ',"agent_output":"The requested action is not allowed due to security restrictions."}',
    ],
    [
      'S2-23 S2-25: execution error',
      failed('EXECUTION_ERROR', 'FILE_NOT_FOUND'),
      '125',
      '{"runtime_response":{"proposal_id":"125","action":"READ_FILE"' +
        ',"outcome":"EXECUTION_ERROR","result":null' +
        ',"error":{"error_code":"EXECUTION_ERROR"' +
        ',"message":"File not found"}}' +
        ',"agent_output":"The file could not be found."}',
    ],
  ])('%s matches the example byte for byte', (_title, response, proposal_id, expected) => {
    expect(JSON.stringify(renderAgentOutput({ ...response, proposal_id }))).toBe(expected);
  });

  test('S2-23: the response itself is passed on unchanged', () => {
    const response = succeeded('THINK', {});
    expect(renderAgentOutput(response).runtime_response).toBe(response);
  });
});

describe('the sentence for the agent', () => {
  test.each(Object.keys(POLICY_CAUSES) as PolicyCause[])(
    'S2-23: is the same for every denial, also for %s',
    (cause) => {
      expect(say(failed('POLICY_VIOLATION', cause))).toBe(DENIED);
      expect(say(failed('ACTION_NOT_ALLOWED'))).toBe(DENIED);
    },
  );

  test.each<readonly [string, JsonObject, string]>([
    ['READ_FILE', { content: '' }, 'The file content is:\n\n'],
    ['READ_FILE', { content: 'a\nb' }, 'The file content is:\n\na\nb'],
    ['THINK', {}, 'The thought was noted.'],
    ['FINISH', { response: 'All done.' }, 'All done.'],
    ['WRITE_FILE', { bytes_written: 3 }, 'The file was written.'],
    ['CREATE_DIRECTORY', {}, 'The directory was created.'],
    ['DELETE_FILE', {}, 'The file was deleted.'],
    ['RENAME_FILE', {}, 'The file was renamed.'],
    ['LIST_FILES', { entries: [] }, 'The directory is empty.'],
    [
      'LIST_FILES',
      {
        entries: [
          { name: 'a.txt', type: 'file' },
          { name: 'docs', type: 'directory' },
        ],
      },
      'The directory contains:\n\na.txt\ndocs/',
    ],
    ['SOMETHING_ELSE', {}, 'The action was carried out.'],
    ['constructor', {}, 'The action was carried out.'],
  ])('S2-22: for %s with %j', (action, result, sentence) => {
    expect(say(succeeded(action, result))).toBe(sentence);
  });

  test('S2-22: exists for every code and every cause', () => {
    const responses = [
      ...FAULT_CODES.map((code) => failed(code)),
      ...(Object.keys(EXECUTION_CAUSES) as ExecutionCause[]).map((cause) => failed('EXECUTION_ERROR', cause)),
    ];
    for (const response of responses) expect(say(response)).toMatch(/^[A-Z].*\.$/);
    expect(say(failed('INVALID_JSON'))).toBe('The request was not valid, so nothing was done.');
    expect(say(failed('AUDIT_FAILURE'))).toBe('The work was stopped because it could not be recorded.');
    expect(say(failed('EXECUTION_ERROR', 'IO_ERROR'))).toBe('The action could not be completed.');
  });

  test.each<readonly [ExecutionCause, string]>([
    ['FILE_NOT_FOUND', 'The file could not be found.'],
    ['IS_A_DIRECTORY', 'The path names a directory, not a file.'],
    ['NOT_A_DIRECTORY', 'The path does not name a directory.'],
    ['ALREADY_EXISTS', 'Something of that name already exists.'],
    ['NOT_TEXT', 'The file is not a text file.'],
    ['TOO_LARGE', 'The file is too large to be read.'],
    ['OUTCOME_UNKNOWN', 'It is not known whether the action was carried out.'],
    ['INTERNAL', 'The action could not be completed.'],
  ])('S2-22: for a failure because of %s', (cause, sentence) => {
    expect(say(failed('EXECUTION_ERROR', cause))).toBe(sentence);
  });

  test('S2-22: for a failure without an error', () => {
    expect(say({ ...failed('EXECUTION_ERROR'), error: null })).toBe('The action could not be completed.');
  });

  test('S2-22: for a success without an action', () => {
    expect(say({ ...succeeded('THINK', {}), action: null })).toBe('The action was carried out.');
  });

  test('S2-22: omits parts of a result that are not texts, and entries that are not objects', () => {
    expect(say(succeeded('FINISH', { response: 7 }))).toBe('');
    expect(say(succeeded('READ_FILE', {}))).toBe('The file content is:\n\n');
    const entries = ['x', { name: 'a.txt', type: 'file' }, null, { name: 7, type: 'directory' }];
    expect(say(succeeded('LIST_FILES', { entries }))).toBe('The directory contains:\n\na.txt\n/');
  });

  test.each<readonly [string, string, JsonObject | null, string]>([
    ['DENY', 'DELETE_FILE', null, 'The request was refused, so nothing was done.'],
    ['ALLOW', 'READ_FILE', null, 'The action could not be completed.'],
    ['ALLOW', 'READ_FILE', { content: 'a' }, 'The file content is:\n\na'],
  ])('S2-12 S2-22: if only the decision is shown, for %s %s with %j', (decision, action, result, sentence) => {
    const response = { proposal_id: null, action, decision: decision as 'ALLOW' | 'DENY', result };
    expect(renderAgentOutput(response)).toEqual({ runtime_response: response, agent_output: sentence });
  });
});
