import { expect, test } from '@jest/globals';
import * as contract from '../../../src/core/contract/index.js';

test('the entry point `turnpike/contract` exports the codes, states and phases of the contract', () => {
  expect(contract.FAULT_CODES).toContain('INVALID_JSON');
  expect(contract.PHASES).toHaveLength(9);
  expect(contract.RUN_STATES).toContain('denied');
});
