/** @modules own */
import { describe, expect, test } from '@jest/globals';
import { loadPolicy } from '../../../../src/core/policy/files/check-policy.js';
import { mayHaveKey } from '../../../../src/core/policy/files/may-have-key.js';
import { shippedBytes } from '../../../fixtures/shipped-policy.js';

const FILES = shippedBytes();
const lanes = Buffer.from(FILES.lanes).toString();
const actions = Buffer.from(FILES.actions).toString();
const UNSUPPORTED = expect.objectContaining({ code: 'POLICY_UNSUPPORTED' });

test('the shipped files have neither call rules nor decision points', () => {
  expect([mayHaveKey(FILES.lanes, 'calls'), mayHaveKey(FILES.actions, 'decision_points')]).toEqual([false, false]);
});

describe('every key that the parser takes is found', () => {
  test.each(['calls', "'calls'", '"calls"', '"c\\x61lls"', '"\\u0063alls"'])('%s', (key) => {
    const rule = '[{ id: reads, tools: [sandbox.read_file], decision: allow }]';
    const bytes = Buffer.from(lanes.replace('    scope:', `    ${key}: ${rule}\n    scope:`));
    expect(mayHaveKey(bytes, 'calls')).toBe(true);
    expect(() => loadPolicy({ ...FILES, lanes: bytes })).toThrow(UNSUPPORTED);
  });

  test.each(['decision_points', '"decision\\x5fpoints"'])('%s', (key) => {
    const point = '{ name: fraud, protocol: opa, url: "https://a.example", actions: [WRITE_FILE], timeout_ms: 50 }';
    const bytes = Buffer.from(`${actions}\n${key}: [${point}]\n`);
    expect(mayHaveKey(bytes, 'decision_points')).toBe(true);
    expect(() => loadPolicy({ ...FILES, actions: bytes })).toThrow(UNSUPPORTED);
  });
});

test('a part of a larger buffer is searched alone', () => {
  const bytes = Buffer.from('calls: []');
  expect([mayHaveKey(bytes.subarray(1), 'calls'), mayHaveKey(bytes.subarray(0, 5), 'calls')]).toEqual([false, true]);
});
