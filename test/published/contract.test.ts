/** @modules own */
import { expect, test } from '@jest/globals';
import * as contract from '../../src/published/contract.js';
import { ENTRY_TYPES } from '../fixtures/features.js';

test('the entry point `turnpike/contract` exports the codes, states and phases of the contract', () => {
  expect(contract.FAULT_CODES).toContain('INVALID_JSON');
  expect(contract.PHASES).toHaveLength(9);
  expect(contract.RUN_STATES).toContain('denied');
});

test('its types of entries are those of core and of all features', () => {
  expect([...contract.ENTRY_TYPES].sort()).toEqual([...ENTRY_TYPES].sort());
});
